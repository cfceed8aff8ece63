// A small HTTP/1.1 server on the loop thread: /metrics and probes, later admission webhooks. Not
// for the open internet, but no client of it can hold up the process or grow it without bound.
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
  // The common name of the client's certificate, which was verified; empty when it has none, or
  // several. Nothing: the client showed none.
  std::optional<std::string> client_name = {};
  std::vector<std::string> client_organizations = {};  // Of that certificate, in its order.
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // "0.0.0.0" and "::" for every interface.
  std::uint16_t port = 0;             // Zero: any free one, see Server::port().

  struct Tls {
    std::string certificate_pem;  // With its chain.
    std::string key_pem;
    // When given, a client's certificate must be signed by one of these.
    std::string client_ca_pem = {};
    // Whether a client may show none.
    bool client_is_optional = false;
  };
  std::optional<Tls> tls = {};

  std::uint64_t body_bytes_max = limits::kObjectBytesMax;
  // Of all bodies that have come, in part or whole, and have no response yet. Beyond it, whoever
  // has sent for longest is closed, and 503 says so where that is the one that sends now.
  std::uint64_t bodies_bytes_max = 64 * limits::kMiB;
  // A further one takes the place of the one that has waited longest for its client; where all wait
  // for the handler, it is closed at once.
  std::size_t connections_max = limits::kServerConnectionsMax;
  std::chrono::milliseconds read_max = limits::kServerReadMax;    // For one whole request.
  std::chrono::milliseconds write_max = limits::kServerWriteMax;  // For one whole response.
  std::chrono::milliseconds idle_max = limits::kServerIdleMax;    // Between two requests.
};

// Loop thread only.
class Server {
 public:
  // Called for each request, several at a time; its response is sent as it is, with Content-Length.
  // It outlives the server's connections: a copy is kept until the last of its tasks has ended.
  using Handler = std::function<io::Task<Response>(ServerRequest request)>;

  Server(io::Loop& loop, ServerOptions options, Handler handler, Log log = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Closes what is still open.
  ~Server();

  // Listens from here on. InvalidInput for an address or certificate that is none, Unavailable when
  // the port is taken.
  [[nodiscard]] Result<> start();

  // New connections use this certificate. InvalidInput, and the old one stays, when it is none.
  [[nodiscard]] Result<> set_certificate(ServerOptions::Tls tls);

  // Accepts nothing any more, lets requests under way finish for `grace`, then closes.
  [[nodiscard]] io::Task<> stop(Duration grace);

  // The port it listens on, after start().
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::size_t connection_count() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // Shared with its connections.
};

// For a server whose certificate is renewed: the first call makes it and listens at `address`, as
// parse_listen_address() reads it; from then on the certificate of `options` is all that counts.
// Errors as start() and set_certificate(); a server that cannot listen is not kept.
[[nodiscard]] Result<> listen_with(std::unique_ptr<Server>& server, io::Loop& loop,
                                   std::string_view address, ServerOptions options,
                                   Server::Handler handler, Log log);

}  // namespace hangar::http
