// The one HTTP client of the process: HTTP/2 and HTTP/1.1 over libcurl's multi interface, on the
// loop thread, thousands of concurrent streams without a thread each.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The first header with that name, case-insensitively.
[[nodiscard]] std::optional<std::string_view> find_header(const Headers& headers,
                                                          std::string_view name);

// How to reach and trust a server. Shared by many requests; immutable once used.
struct Transport {
  std::string ca_pem;           // Empty: the system's.
  std::string certificate_pem;  // With key_pem: client certificate.
  std::string key_pem;
  std::string server_name;  // For SNI and verification, when it differs from the URL's host.
  bool skip_verify = false;
  // Empty: from the environment (HTTPS_PROXY, NO_PROXY) as curl reads it.
  std::string proxy_url;
  // Prior knowledge HTTP/2 is never used; over TLS it is negotiated unless forbidden here.
  bool allow_http2 = true;
};

struct Request {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::string body;
  std::shared_ptr<const Transport> transport;  // Null: defaults.
  std::chrono::milliseconds connect_timeout{10'000};
  // Until the whole response is there; zero: no limit (streams).
  std::chrono::milliseconds total_timeout{60'000};
  // A stream that delivers nothing for so long is broken; zero: never.
  std::chrono::milliseconds idle_timeout{0};
  std::uint64_t response_bytes_max = 0;  // Zero: limits::kResponseBytesMax.
  // Redirects followed; credentials are not sent to another host.
  int redirects_max = 0;
};

struct Response {
  int status = 0;
  Headers headers;  // Of the last response when redirected.
  std::string body;
};

class Client {
 public:
  explicit Client(io::Loop& loop);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // The whole response, whatever its status. Errors: Unavailable (connection, TLS, time-out),
  // LimitExceeded (body too large), Cancelled.
  [[nodiscard]] io::Task<Result<Response>> send(Request request, std::stop_token stop);

  // Calls `on_headers` once, then `on_bytes` for each piece of the body as it arrives, and returns
  // when the body ends (the Response without body). The callbacks may request the stop. Errors as
  // send(), and whatever either callback returns as an error, which ends the stream.
  struct StreamHandler {
    std::function<Result<>(int status, const Headers& headers)> on_headers;
    std::function<Result<>(std::string_view bytes)> on_bytes;
  };
  [[nodiscard]] io::Task<Result<Response>> stream(Request request, StreamHandler handler,
                                                  std::stop_token stop);

 private:
  class Multi;
  std::unique_ptr<Multi> multi_;
};

}  // namespace hangar::http
