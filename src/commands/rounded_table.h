// A table for a terminal, as yoke's command draws its own (go-pretty's rounded style): columns of
// numbers to the right, the header in capital letters.
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

// Each row has a cell for every column. Cells are shown as
// printable() has it.
[[nodiscard]] std::string rounded_table(const std::vector<Column>& columns,
                                        const std::vector<std::vector<std::string>>& rows);

}  // namespace hangar::commands
