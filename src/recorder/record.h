// What is recorded of guests' turns, as values.
//
// Texts are views: of what is recorded into the guest's own, of what was read into the file's
// bytes. docs/formats/recorder.md says how they are written. A request is two records, because a
// host may be killed between them: that a write was asked for is known then.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::recorder {

enum class Contract : std::uint8_t { Operator, Workflow, Airway };

// Whose turn it is.
struct Guest {
  Contract contract = Contract::Operator;
  std::string_view namespace_;
  std::string_view name;
  // Which of its instances, by when that started: no two of one name and host have the same. The
  // ids of an instance's requests and timers are its own.
  std::uint64_t instance = 0;
};

// An object at one of its versions.
struct Object {
  std::string_view group;
  std::string_view kind;
  std::string_view namespace_;
  std::string_view name;
  std::uint64_t version = 0;  // resourceVersion; zero: not known.
};

// One thing that a turn began with.
struct Waking {
  enum class Cause : std::uint8_t {
    Added,  // An event of a watch.
    Modified,
    Deleted,
    Line,    // Of a stream, and none of the above.
    Answer,  // To a request, as a whole.
    Head,    // Of a stream.
    End,     // Of a stream.
    Timer,
    Event,  // `event` says all there is.
  };
  Cause cause = Cause::Line;
  std::uint64_t id = 0;  // Of the request, or of the timer.
  std::uint64_t bytes = 0;
  std::string_view event = {};  // What it was to a machine: "signal APPROVED".
  Object object = {};           // Added to Deleted.
};

// What a turn set that a later one may begin with: a timer, or an action that a machine asked for.
struct Timer {
  std::uint64_t id = 0;
  Duration after{};
};

// One turn, when it has ended.
struct Turn {
  enum class Outcome : std::uint8_t { Waits, Completed, Failed };

  Guest guest;
  std::string_view uid;      // Of the guest's object; empty: of `hangar run`.
  std::string_view user;     // As whom it asks; empty: as the host.
  std::string_view module;   // sha256, hexadecimal.
  std::uint64_t number = 0;  // Ascends, and goes on where an instance failed.
  Instant arrived;           // What it began with.
  Instant began;             // It had its place among those that have a turn.
  Instant ended;
  Duration resume{};  // Out of sleep; part of the turn.
  Duration cpu{};
  bool was_asleep = false;
  std::uint64_t memory_bytes = 0;  // Of the guest, at the end.
  Outcome outcome = Outcome::Waits;
  std::uint64_t printed_bytes = 0;
  std::uint64_t asked = 0;  // Requests.
  std::vector<Waking> wakings;
  std::uint64_t wakings_left_out = 0;
  std::vector<Timer> timers;
  std::uint64_t timers_left_out = 0;
};

enum class Verb : std::uint8_t {
  Get,
  List,
  Watch,
  Create,
  Update,
  Patch,
  Delete,
  DeleteCollection,
  Other
};
[[nodiscard]] constexpr bool is_write(Verb verb) {
  return verb != Verb::Get && verb != Verb::List && verb != Verb::Watch;
}

// A request, when it is passed on.
struct Asked {
  Guest guest;
  std::uint64_t turn = 0;
  std::uint64_t id = 0;
  Instant at;
  Verb verb = Verb::Other;
  std::string_view group;
  std::string_view resource;  // Plural. Empty: no resource, then `path` says what.
  std::string_view namespace_;
  std::string_view name;
  std::string_view subresource;
  std::string_view path;           // Without its query.
  std::string_view field_manager;  // As the request names it; empty: it does not.
  bool is_dry_run = false;
  std::uint64_t version = 0;  // The object's, as the guest takes it for; zero: it does not say.
  std::uint64_t bytes = 0;
};

// A request, when its answer has come as a whole, or will not.
struct Answered {
  Guest guest;
  std::uint64_t id = 0;
  Instant at;
  std::uint64_t status = 0;  // HTTP's; zero: nobody waited for it any more.
  std::uint64_t bytes = 0;
  bool is_write = false;
  Object object;  // As a write's answer has it.
};

// A guest that left memory after a turn, or did not.
struct Slept {
  Guest guest;
  std::uint64_t turn = 0;
  Instant at;
  Duration took{};
  std::uint64_t disk_bytes = 0;
  bool is_asleep = false;
};

// Records are missing here.
struct Lost {
  std::uint64_t count = 0;
  Instant since;
  Instant until;
};

using Record = std::variant<Turn, Asked, Answered, Slept, Lost>;

}  // namespace hangar::recorder
