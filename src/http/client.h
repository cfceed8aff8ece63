// The one HTTP client of the process: HTTP/2 and HTTP/1.1 over libcurl's multi interface, on the
// loop thread, thousands of concurrent streams without a thread each.
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

// How to reach and trust a server. Immutable once used. Requests share connections when they share
// the very same Transport object, and never otherwise: no request can travel on a connection that
// was authenticated as somebody else. Connections of a Transport that is gone are closed when the
// next request begins.
struct Transport {
  std::string ca_pem;           // Trusted instead of the system's when given.
  std::string certificate_pem;  // With key_pem: client certificate.
  std::string key_pem;
  std::string server_name;  // For SNI and verification, when it differs from the URL's host.
  bool skip_verify = false;
  // Empty: from the environment (HTTPS_PROXY, NO_PROXY) as curl reads it when the Client is made. A
  // proxy resolves the server's name, also one of SOCKS.
  std::string proxy_url;
  // Never through a proxy, whatever the environment says.
  bool direct = false;
  // Prior knowledge HTTP/2 is never used; over TLS it is negotiated unless forbidden here.
  bool allow_http2 = true;
  // Which addresses it may connect to, whatever the URL or a redirect says. With a proxy it is the
  // proxy that decides.
  AddressPolicy addresses = {};
};

// A body that is not in memory as a whole, such as a file's.
struct BodySource {
  std::uint64_t size_bytes = 0;
  // Fills `into` with what the body has from `offset` on, which is not its end; how many bytes it
  // was, and never none. It may be asked for the same bytes again. Inside of the transfer.
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
  // Until the whole response is there; zero: no limit (streams).
  std::chrono::milliseconds total_timeout{60'000};
  // A stream that delivers nothing for so long is broken; zero: never.
  std::chrono::milliseconds idle_timeout{0};
  // From the first line of the answer on, each window has to bring so many bytes; zero: none.
  std::chrono::milliseconds pace_window{0};
  std::uint64_t pace_bytes_min = 0;
  // Zero: limits::kResponseBytesMax for send(), no limit for stream().
  std::uint64_t response_bytes_max = 0;
  // How much of the body send() has collected, whenever that changes; from the beginning again when
  // the request is repeated. Inside of the transfer: it may request the stop, no more.
  std::function<void(std::uint64_t bytes)> on_progress;
  // Asked when there is a connection, right before the first byte, and before each further piece of
  // the body. False ends the request: Unavailable. Inside of the transfer.
  std::function<bool()> may_send;
  // Redirects followed, of GET and HEAD: never from https to http, and the headers Authorization
  // and Cookie do not go to another host.
  int redirects_max = 0;
  // The tenant (a namespace) that it is made for: host names are looked up for each tenant apart.
  // Empty: the host itself.
  std::string requester;
};

struct Response {
  int status = 0;
  Headers headers;  // Of the last response when redirected.
  std::string body;
};

// Whether a request failed before any of it was sent (no address, connection refused, TLS refused):
// it may be repeated whatever its method. Only for errors of Client.
[[nodiscard]] bool was_never_sent(const Error& error);

struct ClientOptions {
  // Name servers in place of those of /etc/resolv.conf: "address:port", commas in between.
  std::string name_servers;
};

// Loop thread only. No cookies, no .netrc, no decompression (the body is what was sent; set
// Accept-Encoding and look at Content-Encoding), http and https only. Messages name the method and
// the URL without its query and user.
class Client {
 public:
  explicit Client(io::Loop& loop, ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // What is still under way ends with Cancelled.
  ~Client();

  // The whole response, whatever its status: an answer is never an error here. So Unavailable
  // (connection, TLS, time-out, an answer that was cut) means that no whole answer arrived, and
  // only was_never_sent() that nothing can have been done. Other errors: Denied (an address
  // that the transport's policy refuses), LimitExceeded (body or headers too large, too many
  // redirects), InvalidInput (no http URL, a line end in a header), Cancelled.
  [[nodiscard]] io::Task<Result<Response>> send(Request request, std::stop_token stop);

  // Calls `on_headers` once, then `on_bytes` for each piece of the body as it arrives, and returns
  // when the body ends (the Response without body). Either may request the stop, and neither is
  // called after it. Errors as send(), and whatever either callback returns as an error, which ends
  // the stream. Without a call of `on_headers` there was no answer at all.
  struct StreamHandler {
    std::function<Result<>(int status, const Headers& headers)> on_headers;
    std::function<Result<>(std::string_view bytes)> on_bytes;
  };
  [[nodiscard]] io::Task<Result<Response>> stream(Request request, StreamHandler handler,
                                                  std::stop_token stop);

  // Connections with requests under way.
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

  std::shared_ptr<Impl> impl_;  // Shared with what waits in the loop.
};

}  // namespace hangar::http
