// Splits a stream of bytes, which arrives in pieces, into messages.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::guest_protocol {

// Holds at most one message and a piece of the next. It allocates for bytes that have arrived, not
// for a length that was only announced.
class Frames {
 public:
  struct Frame {
    std::uint8_t type = 0;
    std::string_view payload;  // Valid until the next call of add().
  };

  explicit Frames(std::size_t payload_bytes_max) : payload_bytes_max_(payload_bytes_max) {}

  void add(std::string_view bytes);

  // The next whole message, or std::nullopt while it is incomplete. InvalidInput when a message
  // that is too large is announced, and for every later call.
  [[nodiscard]] Result<std::optional<Frame>> next();

  // How many bytes wait for the rest of their message.
  [[nodiscard]] std::size_t waiting_bytes() const { return bytes_.size() - begin_; }

 private:
  const std::size_t payload_bytes_max_;
  std::string bytes_;
  std::size_t begin_ = 0;  // Where the next message begins.
};

}  // namespace hangar::guest_protocol
