// Custom sections with their positions in a module, for data that tools write into a built module
// and remove again without changing any other byte.
//
// The bytes are untrusted. Only the list of sections is read, by the compiler's own rules: a
// section found here is a custom section for the compiler, too, or the compiler refuses the module.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {

struct PlacedSection {
  std::string_view name;
  std::string_view contents;
  // The position of the whole section, header included: module[begin, end).
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The sections whose names begin with `prefix`, in the module's order, as views into its bytes.
// InvalidInput, with the offset, when it is not a module or its list of sections is damaged;
// LimitExceeded when there are more than limits::kModuleItemsMax. Work and memory are bounded by
// the module's size. Any thread.
[[nodiscard]] Result<std::vector<PlacedSection>> custom_sections_of(
    std::span<const std::byte> module, std::string_view prefix);

// Requires: name and contents together have less than 4 GiB.
void append_custom_section(std::string& module, std::string_view name, std::string_view contents);

}  // namespace hangar::wasm
