// Turns and writes that are asked for, out of the recorder's files. Blocks on the disk; any thread.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/story.h"
#include "seeing/why_search.h"

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hangar::seeing {

// Where records are read.
struct RecordsPlace {
  std::filesystem::path directory;
  std::filesystem::path file;  // This one instead; empty: none.
};

// What is left out because of these is told among the problems of what was read.
struct ReadBounds {
  std::optional<Duration> time_max;
  std::size_t entries_max = std::numeric_limits<std::size_t>::max();  // Turns, causes and requests.
};

struct TurnsQuestion {
  std::string namespace_;  // Empty: of an operator of `hangar run`.
  std::string name;
  std::size_t turns_max = 20;
  bool slowest = false;  // Those that took longest, instead of the last.

  friend bool operator==(const TurnsQuestion&, const TurnsQuestion&) = default;
};
struct FoundTurns {
  std::vector<recorder::Story> stories;  // The oldest first, or the slowest first.
  recorder::ReadDirectory read;
};
// NotFound, with what is known, when no turn of that one is held.
[[nodiscard]] Result<FoundTurns> find_turns(const RecordsPlace& place,
                                            const TurnsQuestion& question,
                                            const ReadBounds& bounds);

struct WritesQuestion {
  WhyTarget target;
  WhySearch::Limits limits;
  std::optional<WallTime> since;  // Turns that ended before are not looked at.

  friend bool operator==(const WritesQuestion&, const WritesQuestion&) = default;
};
struct FoundWrites {
  WallTime at;  // When reading began: all that had been written by then was looked at.
  WhyFindings findings;
  recorder::ReadDirectory read;
};
[[nodiscard]] Result<FoundWrites> find_writes(const std::filesystem::path& directory,
                                              const WritesQuestion& question,
                                              const ReadBounds& bounds);

}  // namespace hangar::seeing
