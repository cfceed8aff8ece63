// Finds turns and writes in the recorder's files. Blocks on the disk; any thread.
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

// The files to read.
struct RecordsPlace {
  std::filesystem::path directory;
  std::filesystem::path file;  // Read only this file; empty: the directory.
};

// Limits of one search. If turns are left out because of them, the problems of the result say so.
struct ReadBounds {
  std::optional<Duration> time_max;
  // Turns, causes, requests, timers and pieces of bodies together.
  std::size_t entries_max = std::numeric_limits<std::size_t>::max();
};

struct TurnsQuestion {
  std::string namespace_;  // Empty for an operator of `hangar run`.
  std::string name;
  std::size_t turns_max = 20;
  bool slowest = false;  // The slowest turns instead of the last ones.
  bool bodies = false;   // With recorded bodies.

  friend bool operator==(const TurnsQuestion&, const TurnsQuestion&) = default;
};
struct FoundTurns {
  std::vector<recorder::Story> stories;  // Oldest first, or slowest first.
  recorder::ReadDirectory read;
};
// NotFound if no turn of that guest is recorded; the message says how far back records go.
[[nodiscard]] Result<FoundTurns> find_turns(const RecordsPlace& place,
                                            const TurnsQuestion& question,
                                            const ReadBounds& bounds);

struct WritesQuestion {
  WhyTarget target;
  WhySearch::Limits limits;
  std::optional<WallTime> since;  // Ignores turns that ended before.
  bool bodies = false;            // With recorded bodies.

  friend bool operator==(const WritesQuestion&, const WritesQuestion&) = default;
};
struct FoundWrites {
  WallTime at;  // When the search began; it has seen all records that had been written by then.
  WhyFindings findings;
  recorder::ReadDirectory read;
};
[[nodiscard]] Result<FoundWrites> find_writes(const std::filesystem::path& directory,
                                              const WritesQuestion& question,
                                              const ReadBounds& bounds);

}  // namespace hangar::seeing
