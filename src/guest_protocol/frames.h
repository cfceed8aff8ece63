// Splits a stream of bytes, which arrives in pieces, into messages.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::guest_protocol {

// Holds at most one message and a part of the next. Allocates memory for received bytes, not for an
// announced length.
class Frames {
 public:
  struct Frame {
    std::uint8_t type = 0;
    std::string_view payload;  // Valid until the next call.
  };

  explicit Frames(std::size_t payload_bytes_max) : payload_bytes_max_(payload_bytes_max) {}

  void add(std::string_view bytes);

  // The next whole message, or std::nullopt while it is incomplete. InvalidInput when a header
  // announces a message that is too large, and from then on.
  [[nodiscard]] Result<std::optional<Frame>> next();

  // How many bytes wait for the rest of their message.
  [[nodiscard]] std::size_t waiting_bytes() const { return bytes_.size() - begin_; }

 private:
  const std::size_t payload_bytes_max_;
  std::string bytes_;
  std::size_t begin_ = 0;  // Start of the next message.
};

}  // namespace hangar::guest_protocol
