// Messages out of bytes that arrive in pieces.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::guest_protocol {

// Holds at most one message and a piece of the next: nothing is allocated for a length that was
// only announced.
class Frames {
 public:
  struct Frame {
    std::uint8_t type = 0;
    std::string_view payload;  // Lasts until the next call of add().
  };

  explicit Frames(std::size_t payload_bytes_max) : payload_bytes_max_(payload_bytes_max) {}

  void add(std::string_view bytes);

  // The next whole message, or nothing yet. InvalidInput when one is announced that is too large;
  // so are all that follow.
  [[nodiscard]] Result<std::optional<Frame>> next();

  // Bytes that wait for the rest of their message.
  [[nodiscard]] std::size_t waiting_bytes() const { return bytes_.size() - begin_; }

 private:
  const std::size_t payload_bytes_max_;
  std::string bytes_;
  std::size_t begin_ = 0;  // Of the next message.
};

}  // namespace hangar::guest_protocol
