// Enforces the limits of a search (find.h) while it reads.
#pragma once

#include "base/time.h"
#include "io/loop.h"
#include "recorder/story.h"
#include "seeing/find.h"
#include "seeing/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hangar::seeing::internal {

// The end of the turn by the wall clock of that time.
[[nodiscard]] inline WallTime ended_at(const recorder::Story& story) {
  return story.arrived + std::chrono::duration_cast<WallTime::duration>(story.took());
}

// Counts time and entries.
class Reading {
 public:
  explicit Reading(const ReadBounds& bounds) : bounds_(bounds), began_(io::Loop::now()) {}

  // Call it for each turn that is read.
  [[nodiscard]] bool has_time() {
    // The clock is read once in a while only, since a search may read a million turns.
    constexpr std::size_t kLookEvery = 256;
    if (!bounds_.time_max || ++met_ % kLookEvery != 0) return true;
    is_late_ = io::Loop::now() - began_ > *bounds_.time_max;
    return !is_late_;
  }
  // Call it for each turn that is kept; drop() takes back one that is no longer kept.
  [[nodiscard]] bool has_room(const recorder::Story& story) {
    entries_ += entries_of(story);
    is_full_ = entries_ > bounds_.entries_max;
    return !is_full_;
  }
  void drop(const recorder::Story& story) { entries_ -= entries_of(story); }
  // Whether the turn ended before that time; then all turns that are read later did, too. Call it
  // for each turn that is read: turns are read from the newest to the oldest. The age of a turn is
  // that by the monotonic clock of its process, since the wall clock may have been set back.
  [[nodiscard]] bool ended_before(const recorder::Story& story, WallTime time) {
    if (!newest_ || newest_->host != story.host) {
      newest_ = {
          .host = story.host, .ended = story.ended, .wall = std::min(latest_, ended_at(story))};
    }
    const Duration age = newest_->ended - story.ended;
    latest_ =
        std::min(latest_, newest_->wall - std::chrono::duration_cast<WallTime::duration>(age));
    return latest_ < time;
  }

  void tell(recorder::ReadDirectory& read) const {
    if (is_late_) {
      read.problems.push_back(
          fmt::format("Reading stopped after {}: older records were not read.",
                      to_go_duration(std::chrono::duration_cast<std::chrono::seconds>(
                          bounds_.time_max.value_or(Duration::zero())))));
    }
    if (is_full_) {
      read.problems.push_back(fmt::format(
          "The answer is limited to {} turns, causes and requests: the rest is left out.",
          bounds_.entries_max));
    }
  }

 private:
  static std::size_t entries_of(const recorder::Story& story) {
    std::size_t pieces = 0;
    for (const recorder::Request& request : story.requests)
      if (request.body) pieces += 1 + request.body->text.size() / kBodyPieceBytes;
    return 1 + story.causes.size() + story.requests.size() + story.timers.size() + pieces;
  }

  const ReadBounds bounds_;
  const Instant began_;
  std::size_t met_ = 0;
  std::size_t entries_ = 0;
  // The newest turn of the process whose turns are being read.
  struct Newest {
    std::uint64_t host = 0;
    Instant ended;
    WallTime wall;
  };
  std::optional<Newest> newest_;
  WallTime latest_ = WallTime::max();  // No turn that is read later ended after that.
  bool is_late_ = false;
  bool is_full_ = false;
};

inline void drop_bodies(recorder::Story& story) {
  for (recorder::Request& request : story.requests)
    request.body.reset();
}

// Keeps only the entry of this namespace.
inline void leave_only(recorder::ReadDirectory& read, const std::string& namespace_) {
  std::erase_if(read.shortened, [&namespace_](const recorder::Shortened& one) {
    return one.namespace_ != namespace_;
  });
}

}  // namespace hangar::seeing::internal
