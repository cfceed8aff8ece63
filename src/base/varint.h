// Numbers in as few bytes as they need: seven bits a byte, the lowest first; all but the last byte
// have the eighth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar {

void append_varint(std::string& bytes, std::uint64_t value);

// Takes one from the front. Nothing, and the bytes stay, when there is none, when it is longer than
// it needs to be or has more than 64 bits.
[[nodiscard]] std::optional<std::uint64_t> take_varint(std::string_view& bytes);

}  // namespace hangar
