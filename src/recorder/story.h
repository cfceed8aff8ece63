// A story is a turn with its requests and their results: several records joined into one value.
//
// Records are read from the newest to the oldest. The results of a turn are therefore known when
// the turn itself is read, and a search for causes takes one pass.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/format.h"
#include "recorder/raw_body.h"
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

// An object at one version; version zero: at any.
struct ObjectVersion {
  std::string group;
  std::string kind;  // Empty if only the resource is known.
  std::string namespace_;
  std::string name;
  std::uint64_t version = 0;

  friend auto operator<=>(const ObjectVersion&, const ObjectVersion&) = default;
};

struct Cause {
  Waking::Cause what = Waking::Cause::Line;
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  std::string event;     // The event of a machine; empty: not a machine.
  ObjectVersion object;  // With Added, Modified and Deleted.
};

// The body of a write, without what looks secret.
struct RecordedBody {
  BodyState state = BodyState::Whole;
  std::string text;     // JSON of printable ASCII; incomplete if it was cut.
  SecretNames secrets;  // Those that the guest may have had in memory when it wrote the body.
};

struct Request {
  std::uint64_t id = 0;
  Verb verb = Verb::Other;
  std::string resource;  // Plural; empty: not a resource; see `path`.
  std::string subresource;
  std::string path;
  std::string field_manager;
  bool is_dry_run = false;
  std::uint64_t version_before = 0;
  std::uint64_t bytes = 0;  // Size of its body.
  WallTime at;
  // Unset: no answer was recorded. A write may have been carried out nevertheless.
  std::optional<Duration> took;
  std::uint64_t status = 0;  // Zero: the guest no longer waited.
  std::uint64_t answer_bytes = 0;
  // The object of the request, at the version in the answer.
  ObjectVersion object;
  std::optional<RecordedBody> body = {};  // Nothing: bodies of its guest were not recorded.

  [[nodiscard]] bool is_write() const;
  // Whether it may have changed the object: it is a write by a known verb, not a dry run, and was
  // not refused.
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
  Instant ended{};    // By the clock that its process alone has; not passed on as JSON.
  Duration waited{};  // Wait for one of the slots for turns.
  Duration ran{};     // Including `resume`.
  Duration resume{};
  Duration cpu{};
  bool was_asleep = false;
  std::uint64_t memory_bytes = 0;
  std::uint64_t printed_bytes = 0;
  Turn::Outcome outcome = Turn::Outcome::Waits;
  std::vector<Cause> causes;
  std::uint64_t causes_left_out = 0;
  std::vector<std::uint64_t> timers;

  std::vector<Request> requests;    // By their ids.
  std::optional<Duration> suspend;  // Unset: it was not suspended after this turn.
  std::uint64_t disk_bytes = 0;

  [[nodiscard]] Duration took() const { return waited + ran; }
};

// Joins records into stories. Takes records from the newest to the oldest.
class Storyteller {
 public:
  // If the record is a turn, returns its story.
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
    std::map<std::uint64_t, Answer> answers;       // By ids of requests that are not read yet.
    std::map<std::uint64_t, RecordedBody> bodies;  // The same.
    std::map<std::uint64_t, std::vector<Request>> requests;  // By turns that are not read yet.
    std::map<std::uint64_t, std::pair<Duration, std::uint64_t>> sleeps;
  };
  [[nodiscard]] Seen& seen(const Place& place, const Guest& guest);

  std::map<Instance, Seen> seen_;
};

// A namespace that gave up its older records to make room for those of other namespaces.
struct Shortened {
  std::string namespace_;
  std::uint64_t records = 0;  // How many it gave up.
  WallTime until;             // Its records are complete only after this.

  friend bool operator==(const Shortened&, const Shortened&) = default;
};

// Which records were read, and what is missing.
struct ReadDirectory {
  std::uint64_t files = 0;
  std::optional<WallTime> since;  // Time of the oldest block; unset: no blocks.
  std::uint64_t lost_records = 0;
  std::vector<Shortened> shortened;   // By their names.
  std::vector<std::string> problems;  // Truncated or damaged files, with the reason.
};
// Calls `on_story` with each turn, newest first, until it returns false; `since` is then the time
// of the last block that was read. NotFound when the directory does not exist. Blocks on the disk.
[[nodiscard]] Result<ReadDirectory> read_directory(
    const std::filesystem::path& directory, const std::function<bool(Story story)>& on_story);
// The same for one file.
[[nodiscard]] Result<ReadDirectory> read_file(const std::filesystem::path& file,
                                              const std::function<bool(Story story)>& on_story);

}  // namespace hangar::recorder
