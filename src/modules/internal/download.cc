#include "modules/internal/download.h"

#include "base/limits.h"
#include "base/result.h"
#include "http/client.h"
#include "http/status.h"
#include "io/task.h"
#include "modules/limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::modules {

namespace {

constexpr std::size_t kErrorBodyBytesMax = 64 * limits::kKiB;

// Reserved for a module whose server does not state its size.
constexpr std::uint64_t kBodyBytesMin = limits::kMiB;

// A server that sends more slowly is dropped: it would hold a slot of its tenant as long as a
// download may take. A usual module of 4 MB arrives within that time at this rate.
constexpr std::chrono::seconds kPaceWindow{20};
constexpr std::uint64_t kPaceBytesMin = 20 * 16 * limits::kKiB;

std::unexpected<Error> fail_too_large(std::string_view bytes, std::uint64_t bytes_max) {
  return fail(ErrorKind::LimitExceeded,
              fmt::format("{} bytes are more than the {} that are allowed", bytes, bytes_max));
}

// Collects a body, whose size may be known in advance.
class Body {
 public:
  Body(std::uint64_t bytes_max, OnBytes on_bytes, MayHold may_hold)
      : bytes_max_(bytes_max), on_bytes_(std::move(on_bytes)), may_hold_(std::move(may_hold)) {}

  Result<> on_headers(int status, const http::Headers& headers) {
    is_wanted_ = status == http::kOk;
    bytes_.clear();
    if (!is_wanted_) return {};
    const std::optional<std::string_view> text = http::find_header(headers, "Content-Length");
    std::uint64_t length = 0;
    if (!text) return {};
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
    // A number that overflows is too large as well.
    if (error == std::errc::result_out_of_range || length > bytes_max_) {
      return fail_too_large(*text, bytes_max_);
    }
    if (error == std::errc()) {
      HANGAR_TRY(hold(length));
      expected_bytes_ = length;
    }
    return {};
  }

  Result<> on_bytes(std::string_view bytes) {
    seen_bytes_ += bytes.size();
    if (seen_bytes_ > bytes_max_) return fail_too_large("its", bytes_max_);
    if (!is_wanted_) {
      bytes = bytes.substr(0, kErrorBodyBytesMax - std::min(kErrorBodyBytesMax, bytes_.size()));
    } else if (seen_bytes_ > held_bytes_) {
      HANGAR_TRY(hold(std::min(bytes_max_, std::max(2 * seen_bytes_, kBodyBytesMin))));
    }
    bytes_.append(bytes);
    if (is_wanted_ && on_bytes_) on_bytes_(bytes_.size(), expected_bytes_);
    return {};
  }

  std::string take() { return std::move(bytes_); }

 private:
  Result<> hold(std::uint64_t bytes) {
    if (may_hold_) HANGAR_TRY(may_hold_(bytes));
    bytes_.reserve(bytes);
    held_bytes_ = bytes;
    return {};
  }

  const std::uint64_t bytes_max_;
  const OnBytes on_bytes_;
  const MayHold may_hold_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t expected_bytes_ = 0;
  std::uint64_t seen_bytes_ = 0;
  std::string bytes_;
  bool is_wanted_ = false;
};

}  // namespace

io::Task<Result<http::Response>> download(http::Client* client, http::Request request,
                                          std::uint64_t bytes_max, OnBytes on_bytes,
                                          MayHold may_hold, std::stop_token stop) {
  request.total_timeout = limits::kModuleDownloadMax;
  request.idle_timeout = limits::kModuleDownloadIdleMax;
  request.pace_window = kPaceWindow;
  request.pace_bytes_min = kPaceBytesMin;
  request.response_bytes_max = bytes_max;
  Body body(bytes_max, std::move(on_bytes), std::move(may_hold));
  http::Client::StreamHandler handler{
      .on_headers = [&body](
                        int status,
                        const http::Headers& headers) { return body.on_headers(status, headers); },
      .on_bytes = [&body](std::string_view bytes) { return body.on_bytes(bytes); }};
  Result<http::Response> response =
      co_await client->stream(std::move(request), std::move(handler), std::move(stop));
  if (!response) {
    Error error = std::move(response).error();
    const bool is_answered =
        error.kind() != ErrorKind::Unavailable && error.kind() != ErrorKind::Denied;
    if (is_answered) co_return std::unexpected(std::move(error));
    co_return std::unexpected(std::move(error).with_reason(std::string(kNotReached)));
  }
  response->body = body.take();
  co_return response;
}

}  // namespace hangar::modules
