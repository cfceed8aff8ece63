#include "commands/rounded_table.h"

#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

namespace {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

struct Border {
  std::string_view left, middle, right;
};

void append_border(std::string& out, const std::vector<std::size_t>& widths, const Border& border) {
  out += border.left;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    if (column > 0) out += border.middle;
    for (std::size_t i = 0; i < widths[column] + 2; ++i)
      out += "─";
  }
  out += border.right;
  out += '\n';
}

void append_row(std::string& out, const std::vector<Column>& columns,
                const std::vector<std::size_t>& widths, const std::vector<std::string>& cells) {
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const std::string padding(widths[column] - cells[column].size(), ' ');
    out += "│ ";
    if (columns[column].align == Align::Right) out += padding;
    out += cells[column];
    if (columns[column].align == Align::Left) out += padding;
    out += ' ';
  }
  out += "│\n";
}

}  // namespace

std::string rounded_table(const std::vector<Column>& columns,
                          const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns)
    lines.front().push_back(upper(column.header));
  for (const std::vector<std::string>& row : rows) {
    std::vector<std::string>& cells = lines.emplace_back();
    for (const std::string& cell : row)
      cells.push_back(printable(cell));
  }
  std::vector<std::size_t> widths(columns.size());
  for (const std::vector<std::string>& cells : lines) {
    for (std::size_t column = 0; column < columns.size(); ++column)
      widths[column] = std::max(widths[column], cells[column].size());
  }

  std::string out;
  append_border(out, widths, {"╭", "┬", "╮"});
  append_row(out, columns, widths, lines.front());
  append_border(out, widths, {"├", "┼", "┤"});
  for (std::size_t line = 1; line < lines.size(); ++line)
    append_row(out, columns, widths, lines[line]);
  append_border(out, widths, {"╰", "┴", "╯"});
  return out;
}

}  // namespace hangar::commands
