#include "guest_protocol/frames.h"

#include "base/limits.h"
#include "base/result.h"
#include "guest_protocol/messages.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace hangar::guest_protocol {

namespace {

// A larger buffer is freed after its message: the messages that follow are small.
constexpr std::size_t kKeptBytesMax = 256 * limits::kKiB;

}  // namespace

void Frames::add(std::string_view bytes) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_.append(bytes);
}

Result<std::optional<Frames::Frame>> Frames::next() {
  // Now, because nothing may follow for a long time.
  if (begin_ == bytes_.size() && bytes_.capacity() > kKeptBytesMax) {
    bytes_.clear();
    bytes_.shrink_to_fit();
    begin_ = 0;
  }
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.size() < kFrameHeaderBytes) return std::optional<Frame>();
  std::uint32_t size = 0;
  std::memcpy(&size, rest.data(), sizeof size);
  if (size > payload_bytes_max_) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("a message of {} bytes, the most is {}", size, payload_bytes_max_));
  }
  if (rest.size() - kFrameHeaderBytes < size) return std::optional<Frame>();
  begin_ += kFrameHeaderBytes + size;
  return std::optional(Frame{.type = static_cast<std::uint8_t>(rest[sizeof size]),
                             .payload = rest.substr(kFrameHeaderBytes, size)});
}

}  // namespace hangar::guest_protocol
