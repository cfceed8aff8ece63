// One line of a source file, replaced: what `hangar build go` does to files that it has copied.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::go_build {

struct Edit {
  std::string_view line;         // As it stands in the file, its tabs included.
  std::string_view replacement;  // Any number of lines, without the end of the last.
};

struct Edited {
  std::string text;
  std::size_t line_number = 0;  // Of the line, from 1.
};

// InvalidInput unless the text has the line exactly once.
[[nodiscard]] Result<Edited> apply(const Edit& edit, std::string_view text);

}  // namespace hangar::go_build
