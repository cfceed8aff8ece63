// Reads forwards through the bytes of a module, none of which is trusted.
//
// The first failure is permanent: every later read returns zero and does not move, so that a loop
// over code may check once per instruction instead of once per byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hangar::wasm::internal {

class ByteCursor {
 public:
  enum class Failure : std::uint8_t { None, EndsEarly, NumberTooLarge };

  // `offset`: the position of the first byte in the whole module, for messages.
  explicit ByteCursor(std::span<const std::byte> bytes, std::uint64_t offset = 0)
      : bytes_(bytes), start_(offset) {}

  [[nodiscard]] Failure failure() const { return failure_; }
  [[nodiscard]] bool has_failed() const { return failure_ != Failure::None; }
  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - position_; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::uint64_t offset() const { return start_ + position_; }

  std::uint8_t byte() {
    if (has_failed()) return 0;
    if (at_end()) {
      failure_ = Failure::EndsEarly;
      return 0;
    }
    return static_cast<std::uint8_t>(bytes_[position_++]);
  }

  // LEB128. An encoding that is longer or wider than the specification allows is a failure.
  std::uint32_t u32() { return static_cast<std::uint32_t>(unsigned_leb(32)); }
  std::uint64_t u64() { return unsigned_leb(64); }
  std::int32_t i32() { return static_cast<std::int32_t>(signed_leb(32)); }
  std::int64_t i64() { return signed_leb(64); }
  std::int64_t i33() { return signed_leb(33); }

  std::span<const std::byte> take(std::uint64_t count) {
    if (has_failed()) return {};
    if (count > left()) {
      failure_ = Failure::EndsEarly;
      return {};
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

 private:
  std::uint64_t unsigned_leb(unsigned bits) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
      const std::uint8_t next = byte();
      const std::uint64_t low = next & 0x7fU;
      if (bits - shift < 7 && low >> (bits - shift) != 0) break;
      value |= low << shift;
      if ((next & 0x80U) == 0) return has_failed() ? 0 : value;
    }
    if (!has_failed()) failure_ = Failure::NumberTooLarge;
    return 0;
  }

  std::int64_t signed_leb(unsigned bits) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80U) != 0) continue;
      if (has_failed()) return 0;
      const unsigned read = shift + 7;
      if (read < 64 && (next & 0x40U) != 0) value |= ~std::uint64_t{0} << read;
      const auto result = static_cast<std::int64_t>(value);
      // Bits beyond the type must repeat its sign. Of 64 bits the last byte holds one.
      const bool fits = bits == 64 ? read <= 63 || (next & 0x7fU) == 0 || (next & 0x7fU) == 0x7fU
                                   : result >= -(std::int64_t{1} << (bits - 1)) &&
                                         result < std::int64_t{1} << (bits - 1);
      if (fits) return result;
      break;
    }
    if (!has_failed()) failure_ = Failure::NumberTooLarge;
    return 0;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t start_;
  std::size_t position_ = 0;
  Failure failure_ = Failure::None;
};

}  // namespace hangar::wasm::internal
