// A turn with what it asked for and what came of that: several records as one value, for people.
//
// Records are read from the newest to the oldest, so that what came of a turn is known when the
// turn itself is met, and so that a search for causes is one pass.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/format.h"
#include "recorder/record.h"

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::recorder {

// An object at one of its versions, or at any: zero.
struct ObjectVersion {
  std::string group;
  std::string kind;  // Empty where only the resource is known.
  std::string namespace_;
  std::string name;
  std::uint64_t version = 0;

  friend auto operator<=>(const ObjectVersion&, const ObjectVersion&) = default;
};

struct Cause {
  Waking::Cause what = Waking::Cause::Line;
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  std::string event;     // What it was to a machine; empty: it is not one.
  ObjectVersion object;  // Added to Deleted.
};

struct Request {
  std::uint64_t id = 0;
  Verb verb = Verb::Other;
  std::string resource;  // Plural; empty: `path` says what.
  std::string subresource;
  std::string path;
  std::string field_manager;
  bool is_dry_run = false;
  std::uint64_t version_before = 0;
  std::uint64_t bytes = 0;  // Of its body.
  WallTime at;
  // Nothing: no answer was recorded. A write may have been done nevertheless.
  std::optional<Duration> took;
  std::uint64_t status = 0;  // Zero: nobody waited for it any more.
  std::uint64_t answer_bytes = 0;
  // What it is about, at the version that the answer has.
  ObjectVersion object;

  [[nodiscard]] bool is_write() const;
  // Whether it may have changed the object: it was a write, for real, and was not refused.
  [[nodiscard]] bool may_have_changed() const;
};

struct Story {
  std::uint64_t host = 0;
  Contract contract = Contract::Operator;
  std::string namespace_;
  std::string name;
  std::uint64_t instance = 0;
  std::string uid;
  std::string user;
  std::string module;
  std::uint64_t number = 0;

  WallTime arrived;
  Duration waited{};  // For its place among those that have a turn.
  Duration ran{};     // Resume included.
  Duration resume{};
  Duration cpu{};
  bool was_asleep = false;
  std::uint64_t memory_bytes = 0;
  std::uint64_t printed_bytes = 0;
  Turn::Outcome outcome = Turn::Outcome::Waits;
  std::vector<Cause> causes;
  std::uint64_t causes_left_out = 0;
  std::vector<std::uint64_t> timers;

  std::vector<Request> requests;    // In the order of their ids.
  std::optional<Duration> suspend;  // Nothing: it stayed in memory, or the next turn came first.
  std::uint64_t disk_bytes = 0;

  [[nodiscard]] Duration took() const { return waited + ran; }
};

// Makes stories of records that come backwards.
class Storyteller {
 public:
  // The record, if it is a turn, with all that came after it.
  [[nodiscard]] std::optional<Story> add(const Place& place, const Record& record);

 private:
  struct Instance {
    std::uint64_t host = 0;
    Contract contract = Contract::Operator;
    std::string namespace_;
    std::string name;
    std::uint64_t number = 0;
    auto operator<=>(const Instance&) const = default;
  };
  struct Answer {
    Instant at;
    std::uint64_t status = 0;
    std::uint64_t bytes = 0;
    ObjectVersion object;
  };
  struct Seen {
    std::map<std::uint64_t, Answer> answers;  // By the ids of requests that are not met yet.
    std::map<std::uint64_t, std::vector<Request>> requests;  // By their turns.
    std::map<std::uint64_t, std::pair<Duration, std::uint64_t>> sleeps;
  };
  [[nodiscard]] Seen& seen(const Place& place, const Guest& guest);

  std::map<Instance, Seen> seen_;
};

// What of the directory could be read.
struct ReadDirectory {
  std::uint64_t files = 0;
  std::optional<WallTime> since;  // Of the oldest block; nothing: nothing is held.
  std::uint64_t lost_records = 0;
  std::vector<std::string> problems;  // Files that are cut or damaged, and why.
};
// The newest turn first. False: nothing more is wanted, then `since` is what it was up to there.
// NotFound when there is no such directory. Blocks on the disk.
[[nodiscard]] Result<ReadDirectory> read_directory(
    const std::filesystem::path& directory, const std::function<bool(Story story)>& on_story);
// The same of one file.
[[nodiscard]] Result<ReadDirectory> read_file(const std::filesystem::path& file,
                                              const std::function<bool(Story story)>& on_story);

}  // namespace hangar::recorder
