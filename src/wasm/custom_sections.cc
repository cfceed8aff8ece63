#include "wasm/custom_sections.h"

#include "base/invalid.h"
#include "base/result.h"
#include "wasm/internal/byte_cursor.h"
#include "wasm/internal/section_list.h"
#include "wasm/internal/sections.h"
#include "wasm/limits.h"
#include "wasm/module_preamble.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {

namespace {

using internal::ByteCursor;

std::unexpected<Error> damaged(const ByteCursor& cursor) {
  const bool ends_early = cursor.failure() == ByteCursor::Failure::EndsEarly;
  return invalid(fmt::format("{} at offset {}", ends_early ? "ends early" : "number too large",
                             cursor.offset()));
}

}  // namespace

Result<std::vector<PlacedSection>> custom_sections_of(std::span<const std::byte> module,
                                                      std::string_view prefix) {
  HANGAR_TRY(check_preamble(module));
  std::vector<PlacedSection> found;
  ByteCursor cursor(module.subspan(internal::kPreambleBytes), internal::kPreambleBytes);
  while (!cursor.at_end()) {
    const std::uint64_t begin = cursor.offset();
    const std::uint8_t id = cursor.byte();
    const std::uint32_t size = cursor.u32();
    const std::uint64_t start = cursor.offset();
    const auto bytes = cursor.take(size);
    if (cursor.has_failed()) return damaged(cursor);
    if (id != internal::section::kCustom) continue;
    ByteCursor section(bytes, start);
    const std::string_view name = internal::text_of(section.take(section.u32()));
    if (section.has_failed()) return damaged(section);
    if (!name.starts_with(prefix)) continue;
    if (found.size() >= limits::kModuleItemsMax) {
      return fail(ErrorKind::LimitExceeded, "too many custom sections");
    }
    found.push_back({.name = name,
                     .contents = internal::text_of(section.take(section.left())),
                     .begin = begin,
                     .end = cursor.offset()});
  }
  return found;
}

void append_custom_section(std::string& module, std::string_view name, std::string_view contents) {
  std::string section;
  internal::append_text(section, name);
  section += contents;
  internal::append_section(module, internal::section::kCustom, section);
}

}  // namespace hangar::wasm
