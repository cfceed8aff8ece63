// Finds turns and writes in the recorder's files. Blocks on the disk; any thread.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "recorder/story.h"
#include "seeing/why_search.h"

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
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
  // "backends.examples.com": also the turns of all guests of this resource, in `namespace_` or, if
  // that is empty, in all. Empty: only those of `name`.
  std::string instances = {};

  friend bool operator==(const TurnsQuestion&, const TurnsQuestion&) = default;
};
struct FoundTurns {
  // Oldest first, or slowest first. Those of several guests in the order in which they began.
  std::vector<recorder::Story> stories;
  recorder::ReadDirectory read;
};
// The guests of a question about several that its reader may see.
struct ShownGuests {
  bool named = true;  // The guest `name`.
  // Their names as recorded. std::nullopt: all instances.
  std::optional<std::set<kube::ObjectKey>> instances = std::nullopt;
};
// NotFound if no turn of that guest is recorded; the message says how far back records go.
[[nodiscard]] Result<FoundTurns> find_turns(const RecordsPlace& place,
                                            const TurnsQuestion& question, const ReadBounds& bounds,
                                            const ShownGuests& shown = {});
// The instances that have turns, at most kInstancesMax; those of the newest turns first.
[[nodiscard]] Result<std::set<kube::ObjectKey>> find_instances(const RecordsPlace& place,
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
