#include "kube/line_splitter.h"

#include "base/result.h"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

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
    const Result<> done = on_line(partial_);
    partial_.clear();
    HANGAR_TRY(done);
  }
  return {};
}

}  // namespace hangar::kube
