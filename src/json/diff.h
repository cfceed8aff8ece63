// Differences of two texts for people to read: what `run-flight --diff` prints.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::json {

struct DiffOptions {
  std::size_t context_lines = 3;
  // What the two sides are called in the first two lines: "--- left", "+++ right".
  std::string left_name = "live";
  std::string right_name = "wanted";
};

// The unified form of diff(1): the fewest changed lines when there are at most
// limits::kDiffLinesMax, one whole replacement between the equal ends beyond that. Empty when the
// texts are equal.
[[nodiscard]] std::string diff_lines(std::string_view left, std::string_view right,
                                     const DiffOptions& options = {});

}  // namespace hangar::json
