// Replaces one line of a source file, as `hangar build go` does in files that it has copied.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::go_build {

struct Edit {
  std::string_view line;         // Exactly as in the file, with tabs.
  std::string_view replacement;  // Any number of lines, without the last line end.
};

struct Edited {
  std::string text;
  std::size_t line_number = 0;  // The number of the line, from 1.
};

// InvalidInput unless the text contains the line exactly once.
[[nodiscard]] Result<Edited> apply(const Edit& edit, std::string_view text);

}  // namespace hangar::go_build
