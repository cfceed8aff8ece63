#include "wasm/custom_sections.h"

#include "base/result.h"
#include "wasm/internal/module_answer.h"
#include "wasm/module_preamble.h"

#include <hangar_wasmparser.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {

namespace {

// LEB128.
void append_u32(std::string& out, std::size_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

}  // namespace

Result<std::vector<PlacedSection>> custom_sections_of(std::span<const std::byte> module,
                                                      std::string_view prefix) {
  HANGAR_TRY(check_preamble(module));
  const internal::ModuleAnswer answer = HANGAR_TRY(internal::checked(hangar_wasm_customs(
      internal::data_of(module), module.size(), internal::data_of(std::as_bytes(std::span(prefix))),
      prefix.size(), &internal::kBounds)));
  // Views into the module's bytes, so they outlive the answer.
  std::vector<PlacedSection> found;
  found.reserve(answer->custom_count);
  for (const auto& each : std::span(answer->customs, answer->custom_count)) {
    found.push_back({.name = internal::text_of(each.name),
                     .contents = internal::text_of(each.contents),
                     .begin = each.begin,
                     .end = each.end});
  }
  return found;
}

void append_custom_section(std::string& module, std::string_view name, std::string_view contents) {
  std::string head;
  append_u32(head, name.size());
  head += name;
  module += '\0';  // The id of custom sections.
  append_u32(module, head.size() + contents.size());
  module += head;
  module += contents;
}

}  // namespace hangar::wasm
