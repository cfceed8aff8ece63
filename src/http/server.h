// A small HTTP/1.1 server on the loop thread: /metrics, probes and admission webhooks. It is
// not for the open internet, but no client can hold up the process or make its memory grow
// without bound.
#pragma once

#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/limits.h"
#include "io/loop.h"
#include "io/task.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::http {

struct ServerRequest {
  std::string method;
  std::string path;   // As sent, without the query.
  std::string query;  // What follows the '?', or "".
  Headers headers;
  std::string body;
  // The common name in the client's verified certificate; empty when the certificate has none or
  // several. std::nullopt: the client presented no certificate.
  std::optional<std::string> client_name = {};
  std::vector<std::string> client_organizations = {};  // From the certificate, in its order.
  // The other end of the connection is 127.0.0.1 or ::1: the usual loopback addresses, without the
  // rest of 127.0.0.0/8, from which proxies of service meshes forward requests of other machines.
  bool is_from_loopback = false;
  // The sender, as far as its address identifies it: an IPv4 address, or the /64 of an
  // IPv6 address.
  std::string source = {};
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // "0.0.0.0" and "::" for every interface.
  std::uint16_t port = 0;             // Zero: any free port, see Server::port().

  struct Tls {
    std::string certificate_pem;  // With its chain of intermediates.
    std::string key_pem;
    // When set, a client's certificate must be signed by one of these authorities.
    std::string client_ca_pem = {};
    // Whether a client may connect without a certificate.
    bool client_is_optional = false;
  };
  std::optional<Tls> tls = {};

  std::uint64_t body_bytes_max = limits::kObjectBytesMax;
  // The bound for all request bodies, complete or not, that have no response yet. Beyond it the
  // server closes the connection that has been sending the longest, among those of the source that
  // holds the most, with a 503 if that one is sending now.
  std::uint64_t bodies_bytes_max = 64 * limits::kMiB;
  // Beyond it, a new connection replaces the one that has waited longest for its client, among
  // those of the source that has the most; if all wait for the handler, the new one is closed
  // at once.
  std::size_t connections_max = limits::kServerConnectionsMax;
  // The same two bounds for one source (ServerRequest::source), so that other sources find room.
  std::size_t source_connections_max = std::numeric_limits<std::size_t>::max();
  std::uint64_t source_bodies_bytes_max = std::numeric_limits<std::uint64_t>::max();
  // The bound for the bodies of all responses that clients are taking, and of those to one source.
  // Beyond it the server closes the connection that has been taking its response the longest, among
  // those of the source that holds the most. If as much has been closed that is not freed yet, the
  // new response is a 503. One response alone may be larger.
  std::uint64_t responses_bytes_max = 64 * limits::kMiB;
  std::uint64_t source_responses_bytes_max = std::numeric_limits<std::uint64_t>::max();
  std::chrono::milliseconds read_max = limits::kServerReadMax;    // For one whole request.
  std::chrono::milliseconds write_max = limits::kServerWriteMax;  // For one whole response.
  std::chrono::milliseconds idle_max = limits::kServerIdleMax;    // Between two requests.
};

// Loop thread only.
class Server {
 public:
  // Called for each request, several at a time; its response is sent unchanged, with
  // Content-Length. The handler outlives the server's connections: the server keeps a copy until
  // its last task has finished.
  using Handler = std::function<io::Task<Response>(ServerRequest request)>;

  Server(io::Loop& loop, ServerOptions options, Handler handler, Log log = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Closes the connections that are still open.
  ~Server();

  // Listens from here on. InvalidInput for an address or certificate that is not valid, Unavailable
  // when the port is in use.
  [[nodiscard]] Result<> start();

  // New connections use this certificate. InvalidInput when it is not valid; the old one stays.
  [[nodiscard]] Result<> set_certificate(const ServerOptions::Tls& tls);

  // Stops accepting, lets requests in flight finish for `grace`, then closes.
  [[nodiscard]] io::Task<> stop(Duration grace);

  // The port it listens on, after start().
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::size_t connection_count() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // Shared with its connections.
};

// Checks whether a server could present this certificate. InvalidInput if not.
[[nodiscard]] Result<> check_certificate(const ServerOptions::Tls& tls);

// For a server whose certificate is renewed. The first call constructs the server and listens at
// `address`, as parse_listen_address() reads it; later calls only set the certificate of `options`.
// Errors as for start() and set_certificate(); a server that cannot listen is not kept.
[[nodiscard]] Result<> listen_with(std::unique_ptr<Server>& server, io::Loop& loop,
                                   std::string_view address, ServerOptions options,
                                   Server::Handler handler, Log log);

}  // namespace hangar::http
