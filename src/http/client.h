// The one HTTP client of the process: HTTP/2 and HTTP/1.1 over libcurl's multi interface, on the
// loop thread, thousands of concurrent streams on that one thread.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "http/address_policy.h"
#include "io/loop.h"
#include "io/task.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::http {

namespace internal {
class Transfer;
}

using Headers = std::vector<std::pair<std::string, std::string>>;

// The first header with that name, case-insensitively.
[[nodiscard]] std::optional<std::string_view> find_header(const Headers& headers,
                                                          std::string_view name);

// How to reach and trust a server. Immutable once used. Requests share connections only when they
// share the very same Transport object, so no request can travel on a connection that was
// authenticated for someone else. The connections of a destroyed Transport are closed when the next
// request begins.
struct Transport {
  std::string ca_pem;           // When set, trusted instead of the system's.
  std::string certificate_pem;  // With key_pem: client certificate.
  std::string key_pem;
  std::string server_name;  // For SNI and verification, when it differs from the host of the URL.
  bool skip_verify = false;
  // Empty: taken from the environment (HTTPS_PROXY, NO_PROXY), as curl reads it, when the Client is
  // constructed. A proxy, also a SOCKS one, resolves the server's name.
  std::string proxy_url;
  // Uses no proxy, whatever the environment says.
  bool direct = false;
  // HTTP/2 is negotiated over TLS unless forbidden here; it is never used with prior knowledge.
  bool allow_http2 = true;
  // The addresses it may connect to, whatever the URL or a redirect says. With a proxy, the proxy
  // decides instead.
  AddressPolicy addresses = {};
};

// A body that is not in memory as a whole, such as that of a file.
struct BodySource {
  std::uint64_t size_bytes = 0;
  // Fills `into` with bytes of the body from `offset` on, which is before its end, and returns
  // their number, never zero. It may be called again for the same bytes. Called inside
  // the transfer.
  std::function<Result<std::size_t>(std::uint64_t offset, std::span<char> into)> read;
};

struct Request {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::string body;
  std::optional<BodySource> body_source;              // In place of `body`.
  std::shared_ptr<const Transport> transport;         // Null: defaults.
  std::chrono::milliseconds connect_timeout{10'000};  // The lookup of the name included.
  // The time for the whole response; zero: no limit (streams).
  std::chrono::milliseconds total_timeout{60'000};
  // A stream that delivers nothing for this long fails; zero: never.
  std::chrono::milliseconds idle_timeout{0};
  // From the first line of the response on, each window must bring `pace_bytes_min` bytes; zero: no
  // such check.
  std::chrono::milliseconds pace_window{0};
  std::uint64_t pace_bytes_min = 0;
  // Zero: limits::kResponseBytesMax for send(), no limit for stream().
  std::uint64_t response_bytes_max = 0;
  // Called with the size of the body that send() has collected, each time it changes; restarts from
  // zero when the request is repeated. Called inside the transfer: it may request the stop,
  // nothing more.
  std::function<void(std::uint64_t bytes)> on_progress;
  // Called when the connection is established, right before the first byte and before each further
  // piece of the body. False fails the request with Unavailable. Called inside the transfer.
  std::function<bool()> may_send;
  // How many redirects of GET and HEAD are followed: never from https to http, and the headers
  // Authorization and Cookie do not go to another host.
  int redirects_max = 0;
  // The tenant (a namespace) for which the request is made: host names are looked up separately for
  // each tenant. Empty: the host itself.
  std::string requester;
};

struct Response {
  int status = 0;
  Headers headers;  // Headers of the last response when redirected.
  std::string body;
};

// True for a request that failed before any of it was sent (no address, connection refused, TLS
// refused): it may be repeated whatever its method. Only for errors of Client.
[[nodiscard]] bool was_never_sent(const Error& error);

struct ClientOptions {
  // Name servers to use instead of those of /etc/resolv.conf: "address:port", separated by commas.
  std::string name_servers;
};

// Loop thread only. No cookies, no .netrc; http and https only. No decompression: the body is
// returned as sent; a caller that sets Accept-Encoding must check Content-Encoding. Messages name
// the method and the URL without its query and user.
class Client {
 public:
  explicit Client(io::Loop& loop, ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Requests in flight end with Cancelled.
  ~Client();

  // Returns the whole response, whatever its status: a response is never an error here. So
  // Unavailable (connection, TLS, time-out, a truncated response) means that no whole response
  // arrived; only was_never_sent() says that the server cannot have acted. Other errors: Denied (an
  // address that the transport's policy refuses), LimitExceeded (body or headers too large, too
  // many redirects), InvalidInput (not an http URL, a line end in a header), Cancelled.
  [[nodiscard]] io::Task<Result<Response>> send(Request request, std::stop_token stop);

  // Calls `on_headers` once, then `on_bytes` for each piece of the body as it arrives, and returns
  // when the body ends (the Response without body). Either callback may request the stop, and
  // neither is called after it. Errors as for send(), and any error that a callback returns, which
  // ends the stream. If `on_headers` was not called, there was no response at all.
  struct StreamHandler {
    std::function<Result<>(int status, const Headers& headers)> on_headers;
    std::function<Result<>(std::string_view bytes)> on_bytes;
  };
  [[nodiscard]] io::Task<Result<Response>> stream(Request request, StreamHandler handler,
                                                  std::stop_token stop);

  // How many connections have requests in flight.
  [[nodiscard]] std::size_t busy_connection_count() const;

 private:
  class Impl;
  static io::Task<Result<Response>> run(io::Loop& loop, std::weak_ptr<Impl> impl, Request request,
                                        std::optional<StreamHandler> handler, std::stop_token stop);
  static io::Task<Result<Response>> carry_out(io::Loop& loop, std::weak_ptr<Impl> impl,
                                              std::shared_ptr<internal::Transfer> transfer,
                                              std::stop_token stop);
  static io::Task<Result<>> resolve(std::weak_ptr<Impl> impl,
                                    std::shared_ptr<internal::Transfer> transfer,
                                    std::stop_token stop);

  std::shared_ptr<Impl> impl_;  // Shared with the handlers that wait in the loop.
};

}  // namespace hangar::http
