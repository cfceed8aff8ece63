// A module as a list of its sections, and the assembly of sections into another module.
#pragma once

#include "wasm/internal/byte_cursor.h"
#include "wasm/internal/sections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm::internal {

inline constexpr std::size_t kPreambleBytes = 8;

struct Section {
  std::uint8_t id = 0;
  std::uint64_t offset = 0;  // Of the contents, within the module.
  std::span<const std::byte> bytes;
};

// In the module's order. The header of `module` must have been read without an error.
[[nodiscard]] inline std::vector<Section> sections_of(std::span<const std::byte> module) {
  std::vector<Section> sections;
  ByteCursor cursor(module.subspan(kPreambleBytes), kPreambleBytes);
  while (!cursor.at_end() && !cursor.has_failed()) {
    Section section{.id = cursor.byte()};
    const std::uint32_t size = cursor.u32();
    section.offset = cursor.offset();
    section.bytes = cursor.take(size);
    sections.push_back(section);
  }
  return sections;
}

// The position of sections with that id among the others.
[[nodiscard]] inline std::ptrdiff_t rank_of(std::uint8_t id) {
  return std::ranges::find(section::kOrder, id) - section::kOrder.begin();
}

[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void append_u32(std::string& out, std::uint32_t value) {
  do {
    auto next = static_cast<std::uint8_t>(value & 0x7fU);
    value >>= 7U;
    if (value != 0) next |= 0x80U;
    out += static_cast<char>(next);
  } while (value != 0);
}

inline void append_text(std::string& out, std::string_view text) {
  append_u32(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

inline void append_section(std::string& out, std::uint8_t id, std::string_view bytes) {
  out += static_cast<char>(id);
  append_text(out, bytes);
}

}  // namespace hangar::wasm::internal
