// Differences of two texts for people to read: the output of `run-flight --diff`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::json {

struct DiffOptions {
  std::size_t context_lines = 3;
  // The names of the two sides in the first two lines: "--- left", "+++ right".
  std::string left_name = "live";
  std::string right_name = "wanted";
};

// The unified form of diff(1): the fewest changed lines when at most limits::kDiffLinesMax lines
// differ; beyond that, one replacement of all that lies between the equal ends. Empty when the
// texts are equal.
[[nodiscard]] std::string diff_lines(std::string_view left, std::string_view right,
                                     const DiffOptions& options = {});

}  // namespace hangar::json
