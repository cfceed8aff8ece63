#include "kube/line_splitter.h"

#include "base/result.h"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

Result<> LineSplitter::feed(std::string_view piece,
                            const std::function<Result<>(std::string_view line)>& on_line) {
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    const std::string_view part = piece.substr(0, newline);
    if (partial_.size() + part.size() > line_bytes_max_) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("a line of the stream is longer than {} bytes", line_bytes_max_));
    }
    if (newline == std::string_view::npos) {
      partial_ += part;
      return {};
    }
    piece.remove_prefix(newline + 1);
    // Most lines lie within one piece, and are not copied.
    if (partial_.empty()) {
      if (!part.empty()) HANGAR_TRY(on_line(part));
      continue;
    }
    partial_ += part;
    // A stream that is open for hours does not keep the memory of its longest line.
    const std::string line = std::exchange(partial_, {});
    HANGAR_TRY(on_line(line));
  }
  return {};
}

}  // namespace hangar::kube
