#include "wasm/guest_memory.h"

#include "base/result.h"
#include "wasm/internal/watched_memory.h"

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace hangar::wasm {

// wasm is little-endian, and so is every machine for which wasmtime generates code here.
static_assert(std::endian::native == std::endian::little);

bool GuestMemory::has_range(std::uint32_t address, std::uint64_t size_bytes) const {
  return address <= bytes_.size() && size_bytes <= bytes_.size() - address;
}

Result<std::span<std::byte>> GuestMemory::range(std::uint32_t address,
                                                std::uint64_t size_bytes) const {
  if (!has_range(address, size_bytes)) {
    return fail(ErrorKind::GuestFault,
                fmt::format("{} bytes at address {} do not lie in the guest's {} bytes of memory",
                            size_bytes, address, bytes_.size()));
  }
  return bytes_.subspan(address, size_bytes);
}

Result<> GuestMemory::readable() {
  return internal::WatchedMemory::readable_here();
}

Result<std::string> GuestMemory::read_string(std::uint32_t address,
                                             std::uint64_t size_bytes) const {
  const std::span<std::byte> bytes = HANGAR_TRY(range(address, size_bytes));
  std::string read(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  HANGAR_TRY(readable());
  return read;
}

Result<std::uint32_t> GuestMemory::read_u32(std::uint32_t address) const {
  std::uint32_t value = 0;
  std::memcpy(&value, HANGAR_TRY(range(address, sizeof value)).data(), sizeof value);
  HANGAR_TRY(readable());
  return value;
}

Result<> GuestMemory::write_u32(std::uint32_t address, std::uint32_t value) const {
  std::memcpy(HANGAR_TRY(range(address, sizeof value)).data(), &value, sizeof value);
  return {};
}

Result<> GuestMemory::write_u64(std::uint32_t address, std::uint64_t value) const {
  std::memcpy(HANGAR_TRY(range(address, sizeof value)).data(), &value, sizeof value);
  return {};
}

Result<> GuestMemory::write(std::uint32_t address, std::string_view bytes) const {
  const std::span<std::byte> place = HANGAR_TRY(range(address, bytes.size()));
  if (!bytes.empty()) std::memcpy(place.data(), bytes.data(), bytes.size());
  return {};
}

}  // namespace hangar::wasm
