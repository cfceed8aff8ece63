#include "cli/last_line.h"

#include "base/text.h"
#include "commands/streams.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace hangar::cli {

void show_on_last_line(std::string_view text) {
  constexpr std::size_t kWidth = 100;  // Keeps it on one line; terminals are usually wider.
  std::string line = printable(text);
  if (line.size() > kWidth) line.resize(kWidth);
  fmt::print(stderr, "\r\x1b[K{}", line);
}

commands::Say last_line() {
  if (::isatty(STDERR_FILENO) != 1) return {};
  return show_on_last_line;
}

}  // namespace hangar::cli
