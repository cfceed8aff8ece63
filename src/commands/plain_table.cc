#include "commands/plain_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

std::vector<std::string> plain_table(const std::vector<std::vector<std::string>>& rows,
                                     const PlainTable& layout) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& cells : rows) {
    widths.resize(cells.size());
    for (std::size_t at = 0; at < cells.size(); ++at)
      widths[at] = std::max(widths[at], std::min(cells[at].size(), layout.width_max));
  }
  std::vector<std::string> lines;
  for (const std::vector<std::string>& cells : rows) {
    std::string line;
    for (std::size_t at = 0; at < cells.size(); ++at) {
      std::string cell = cells[at];
      if (cell.size() > widths[at]) cell = cell.substr(0, widths[at] - 2) + "..";
      if (at > 0) line += "  ";
      line += at < layout.texts ? fmt::format("{:<{}}", cell, widths[at])
                                : fmt::format("{:>{}}", cell, widths[at]);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace hangar::commands
