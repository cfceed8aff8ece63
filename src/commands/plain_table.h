// A table of aligned columns without lines, for a terminal or a file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hangar::commands {

struct PlainTable {
  std::size_t texts = 0;  // The first columns are texts, aligned to the left; the others numbers.
  std::size_t width_max = 0;  // Longer cells are cut, so that one cannot take the space of others.
};
// The lines of the table. Each row has the same number of cells; they are printable ASCII.
[[nodiscard]] std::vector<std::string> plain_table(
    const std::vector<std::vector<std::string>>& rows, const PlainTable& layout);

}  // namespace hangar::commands
