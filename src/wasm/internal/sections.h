// The sections of a WebAssembly module.
#pragma once

#include <array>
#include <cstdint>

namespace hangar::wasm::internal::section {

// Section ids of the core specification.
enum Id : std::uint8_t {
  kCustom = 0,
  kType = 1,
  kImport = 2,
  kFunction = 3,
  kTable = 4,
  kMemory = 5,
  kGlobal = 6,
  kExport = 7,
  kStart = 8,
  kElement = 9,
  kCode = 10,
  kData = 11,
  kDataCount = 12,
  kTag = 13,
};

// The order in which sections must come; it differs from that of their ids.
inline constexpr std::array<std::uint8_t, 13> kOrder = {
    kType,   kImport, kFunction, kTable,     kMemory, kTag, kGlobal,
    kExport, kStart,  kElement,  kDataCount, kCode,   kData};

}  // namespace hangar::wasm::internal::section
