// A table for a terminal in the style of yoke (go-pretty's rounded style): numbers are aligned to
// the right, headers are in capital letters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hangar::commands {

enum class Align : std::uint8_t { Left, Right };

struct Column {
  std::string header;
  Align align = Align::Left;
};

// Each row must have a cell for every column. Cells are escaped by printable().
[[nodiscard]] std::string rounded_table(const std::vector<Column>& columns,
                                        const std::vector<std::vector<std::string>>& rows);

}  // namespace hangar::commands
