// Decides which requests the console's server answers.
//
// The server listens on a loopback address, where every program of the machine and every page of
// every browser can reach it. A request is answered only if it
// - comes from this machine and names the server's own address (`Host`), so that a foreign name
//   that resolves to 127.0.0.1 is refused;
// - does not come from a page of another origin (`Origin`, `Sec-Fetch-Site`); there is no CORS, so
//   a browser also keeps other pages from sending the header with the key;
// - presents the key of this start, unless it requests the page itself, which contains no data.
//
// Pure; the clock is a parameter.
#pragma once

#include "base/time.h"
#include "http/server.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::console {

// The header that contains the key.
inline constexpr std::string_view kKeyHeader = "Hangar-Console-Key";
// Exchanges the opening key for the key.
inline constexpr std::string_view kOpenPath = "/api/open";
inline constexpr std::string_view kSignalPath = "/api/signal";
inline constexpr std::string_view kApiPrefix = "/api/";

struct Refusal {
  int status = 403;
  std::string words;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

class Gate {
 public:
  struct Options {
    std::uint16_t port = 0;
    std::string key;  // Not empty.
    // Replaces the key in the address with which the browser is started, because other users of the
    // machine can read command lines. Valid once, and until `opening_until`: if a thief is faster
    // than the browser, its user notices. Empty: none.
    std::string opening_key;
    Instant opening_until{};
    bool allows_actions = false;
  };
  explicit Gate(Options options);

  // The reason why the request is refused; std::nullopt if it may be answered. Uses up a correct
  // opening key.
  [[nodiscard]] std::optional<Refusal> check(const http::ServerRequest& request, Instant now);

  [[nodiscard]] const std::string& key() const { return options_.key; }

 private:
  [[nodiscard]] std::optional<Refusal> check_origin(const http::ServerRequest& request) const;
  [[nodiscard]] std::optional<Refusal> check_method(const http::ServerRequest& request) const;
  [[nodiscard]] std::optional<Refusal> check_key(const http::ServerRequest& request, Instant now);

  Options options_;
};

// Headers of every response: the page may load only its own files, no other page may contain it,
// and no text is ever taken for HTML or script.
[[nodiscard]] http::Headers safe_headers(std::string_view content_type);

// 32 random bytes in hexadecimal.
[[nodiscard]] std::string new_key();

}  // namespace hangar::console
