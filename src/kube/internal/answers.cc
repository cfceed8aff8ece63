#include "kube/internal/answers.h"

#include "base/limits.h"
#include "base/number.h"
#include "base/result.h"
#include "base/text.h"
#include "base/utf8.h"
#include "http/client.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

// Guests decide how long the message of a Status is: the API server repeats the value that it
// refuses, megabytes of it. The loop has other work than to parse that.
constexpr std::size_t kStatusBytesMax = 256 * limits::kKiB;

// How much is shown of what is not parsed, or is not a Status.
constexpr std::size_t kGlanceBytes = 200;

Result<json::Value> parse_status(std::string_view body) {
  if (body.size() <= kStatusBytesMax) return json::parse(body);
  return fail(ErrorKind::LimitExceeded, "a Status is not as long");
}

ErrorKind kind_of(int http_status) {
  switch (http_status) {
    case 401:
    case 403:
      return ErrorKind::Denied;
    case 404:
      return ErrorKind::NotFound;
    case 409:
      return ErrorKind::Conflict;
    case 410:
      return ErrorKind::Expired;
    case 413:
      return ErrorKind::LimitExceeded;
    case 408:
    case 429:
      return ErrorKind::Unavailable;
    default:
      return http_status >= 400 && http_status < 500 ? ErrorKind::InvalidInput
                                                     : ErrorKind::Unavailable;
  }
}

}  // namespace

Error error_from_status(int http_status, std::string_view body) {
  const auto status = parse_status(body);
  const std::string_view message =
      status ? json::string_at(*status, {"message"}) : std::string_view();
  // The API server answers server-side apply of an object with a field of the wrong type with 500
  // and no reason. The object is at fault, and retrying cannot help.
  constexpr std::string_view kWrongType = "failed to create typed patch object";
  const bool says_so =
      status ? message.starts_with(kWrongType) : body.substr(0, kGlanceBytes).contains(kWrongType);
  const bool is_wrong_type = http_status == 500 && says_so;
  const ErrorKind kind = is_wrong_type ? ErrorKind::InvalidInput : kind_of(http_status);
  if (status && json::string_at(*status, {"kind"}) == "Status" && !message.empty()) {
    constexpr std::size_t kReasonBytesMax = 64;
    return Error(kind, std::string(utf8_beginning(message, limits::kServerMessageBytesMax)))
        .with_reason(
            std::string(utf8_beginning(json::string_at(*status, {"reason"}), kReasonBytesMax)));
  }
  // The text is not from the API server but, for instance, a proxy's page: its beginning suffices.
  std::string glance(utf8_beginning(body, kGlanceBytes));
  std::ranges::replace_if(
      glance, [](char character) { return static_cast<unsigned char>(character) < 0x20; }, ' ');
  while (glance.ends_with(' '))
    glance.pop_back();
  return Error(kind, fmt::format("the server answered {}{}{}", http_status,
                                 glance.empty() ? "" : ": ", glance));
}

std::string_view reason_of(const Error& error) {
  return error.reason();
}

namespace internal {

std::optional<std::chrono::seconds> retry_after(const http::Response& response) {
  if (const auto header = http::find_header(response.headers, "retry-after")) {
    // The other form of the header, a date, is useless without a common clock.
    return std::chrono::seconds(parse_number<std::uint32_t>(*header).value_or(1));
  }
  const auto status = parse_status(response.body);
  if (!status) return std::nullopt;
  const std::int64_t seconds = json::int_at(*status, {"details", "retryAfterSeconds"});
  if (seconds <= 0) return std::nullopt;
  return std::chrono::seconds(std::min<std::int64_t>(seconds, 3600));
}

std::vector<std::string> warnings(const http::Headers& headers) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : headers) {
    if (!equals_ignoring_case(name, "warning")) continue;
    // code agent "text", possibly several, with backslashes before quotes in the text.
    std::string text;
    bool in_text = false;
    for (std::size_t index = 0; index < value.size(); ++index) {
      const char character = value[index];
      if (in_text && character == '\\' && index + 1 < value.size()) {
        text += value[++index];
      } else if (character == '"') {
        if (in_text) texts.push_back(std::exchange(text, {}));
        in_text = !in_text;
      } else if (in_text) {
        text += character;
      }
    }
  }
  return texts;
}

}  // namespace internal

}  // namespace hangar::kube
