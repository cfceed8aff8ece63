// The host's view of a guest's memory. It checks every address and length that a guest passes.
//
// The view is valid only for a moment: memory.grow does not move the memory but may change its
// size, and a running guest changes the bytes. Make one inside each host call, never store it.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hangar::wasm {

class GuestMemory {
 public:
  explicit GuestMemory(std::span<std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size_bytes() const { return bytes_.size(); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  // The bytes at `address`; GuestFault unless all of them lie inside the memory.
  [[nodiscard]] Result<std::span<std::byte>> range(std::uint32_t address,
                                                   std::uint64_t size_bytes) const;
  [[nodiscard]] bool has_range(std::uint32_t address, std::uint64_t size_bytes) const;

  // Unavailable when the disk has failed to return a page of the memory, which is zeros since then.
  // Ask for it after reading from a range(), before the bytes have an effect. Worker.
  [[nodiscard]] static Result<> readable();

  [[nodiscard]] Result<std::string> read_string(std::uint32_t address,
                                                std::uint64_t size_bytes) const;
  [[nodiscard]] Result<std::uint32_t> read_u32(std::uint32_t address) const;
  [[nodiscard]] Result<> write_u32(std::uint32_t address, std::uint32_t value) const;
  [[nodiscard]] Result<> write_u64(std::uint32_t address, std::uint64_t value) const;
  [[nodiscard]] Result<> write(std::uint32_t address, std::string_view bytes) const;

 private:
  std::span<std::byte> bytes_;
};

}  // namespace hangar::wasm
