// Splits a stream, which arrives in pieces, into lines.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::kube {

class LineSplitter {
 public:
  // A line longer than `line_bytes_max` is LimitExceeded, before all of it is in memory.
  explicit LineSplitter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // Calls `on_line` for each line that ends within `piece`, without its newline; empty lines are
  // skipped. Stops at the first error that `on_line` returns. A last line without a newline is kept
  // until the next piece: the stream was cut there.
  [[nodiscard]] Result<> feed(std::string_view piece,
                              const std::function<Result<>(std::string_view line)>& on_line);

  // The memory of a line that has not ended; zero between two lines.
  [[nodiscard]] std::size_t held_bytes() const {
    return partial_.empty() ? 0 : partial_.capacity();
  }

 private:
  std::size_t line_bytes_max_;
  std::string partial_;
};

}  // namespace hangar::kube
