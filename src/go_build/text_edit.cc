#include "go_build/text_edit.h"

#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::go_build {

Result<Edited> apply(const Edit& edit, std::string_view text) {
  std::optional<std::size_t> found;
  std::size_t found_number = 0;
  std::size_t count = 0;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++number;
    if (text.substr(begin, end - begin) == edit.line) {
      ++count;
      found = begin;
      found_number = number;
    }
    begin = end + 1;
  }
  if (count != 1) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("expected the line \"{}\" once, found it {} times", edit.line, count));
  }
  std::string edited(text.substr(0, *found));
  edited += edit.replacement;
  edited += text.substr(*found + edit.line.size());
  return Edited{.text = std::move(edited), .line_number = found_number};
}

}  // namespace hangar::go_build
