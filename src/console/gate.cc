#include "console/gate.h"

#include "base/digest.h"
#include "base/random.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hangar::console {

namespace {

// If a header occurs twice, the check and the handler could read different values.
std::size_t count_of(const http::Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers, [&](const auto& header) { return equals_ignoring_case(header.first, name); }));
}

bool is_api(std::string_view path) {
  return path.starts_with(kApiPrefix);
}

}  // namespace

Gate::Gate(Options options) : options_(std::move(options)) {}

std::optional<Refusal> Gate::check(const http::ServerRequest& request, Instant now) {
  if (auto refusal = check_origin(request)) return refusal;
  if (auto refusal = check_method(request)) return refusal;
  if (!is_api(request.path)) return std::nullopt;
  return check_key(request, now);
}

std::optional<Refusal> Gate::check_origin(const http::ServerRequest& request) const {
  if (!request.is_from_loopback) {
    return Refusal{.words = "the console serves only browsers of its own machine"};
  }
  const auto host = http::find_header(request.headers, "Host");
  if (count_of(request.headers, "Host") != 1 ||
      (*host != fmt::format("127.0.0.1:{}", options_.port) &&
       *host != fmt::format("localhost:{}", options_.port))) {
    return Refusal{.status = 421,
                   .words = fmt::format("the console is at http://127.0.0.1:{} and under no other "
                                        "name",
                                        options_.port)};
  }
  const auto origin = http::find_header(request.headers, "Origin");
  if (count_of(request.headers, "Origin") > 1 ||
      (origin && *origin != fmt::format("http://{}", *host))) {
    return Refusal{.words = "the console answers no other origin's page"};
  }
  // "none": the user typed the address, or opened it from another program. A link on another page
  // may lead to the page, which contains no data.
  const auto site = http::find_header(request.headers, "Sec-Fetch-Site");
  if (site && *site != "same-origin" && *site != "none") {
    const bool is_link = !is_api(request.path) &&
                         http::find_header(request.headers, "Sec-Fetch-Mode") == "navigate" &&
                         http::find_header(request.headers, "Sec-Fetch-Dest") == "document";
    if (!is_link) return Refusal{.words = "the console answers no other site's page"};
  }
  return std::nullopt;
}

std::optional<Refusal> Gate::check_method(const http::ServerRequest& request) const {
  const bool is_post = request.path == kOpenPath || request.path == kSignalPath;
  if (request.method != (is_post ? "POST" : "GET")) {
    return Refusal{
        .status = 405,
        .words = fmt::format("{} is not a method of this path", printable(request.method))};
  }
  if (!is_post && !request.body.empty()) {
    return Refusal{.status = 400, .words = "a GET has no body here"};
  }
  if (request.path != kSignalPath) return std::nullopt;
  if (!options_.allows_actions) {
    return Refusal{.words = "the console is read-only: start it with --allow-actions"};
  }
  if (!http::find_header(request.headers, "Origin")) {
    return Refusal{.words = "only the console's page sends signals: there is no Origin"};
  }
  return std::nullopt;
}

std::optional<Refusal> Gate::check_key(const http::ServerRequest& request, Instant now) {
  const auto shown = http::find_header(request.headers, kKeyHeader);
  const bool is_one = count_of(request.headers, kKeyHeader) == 1;
  if (request.path == kOpenPath) {
    const bool is_valid = !options_.opening_key.empty() && now < options_.opening_until;
    if (is_one && is_valid && is_same_in_constant_time(*shown, options_.opening_key)) {
      options_.opening_key.clear();
      return std::nullopt;
    }
    return Refusal{.status = 401,
                   .words =
                       "this address was used before or is too old: open the address that "
                       "hangar console has printed. If you have not used it, somebody else has: "
                       "end hangar console"};
  }
  if (is_one && is_same_in_constant_time(*shown, options_.key)) return std::nullopt;
  return Refusal{.status = 401,
                 .words =
                     "the key is missing or is that of an earlier start: open the address that "
                     "hangar console has printed"};
}

http::Headers safe_headers(std::string_view content_type) {
  return {
      {"Content-Type", std::string(content_type)},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
       "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
       "require-trusted-types-for 'script'; trusted-types 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
      {"Cache-Control", "no-store"},
  };
}

std::string new_key() {
  return to_hex(random_key());
}

}  // namespace hangar::console
