// Records of guests' turns, as values.
//
// Texts are views: in a record to write, of the guest's texts; in a record that was read, of the
// bytes of the file. docs/formats/recorder.md specifies the encoding. A request is two records
// because a host may be killed between them; the first one still shows that a write was requested.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::recorder {

enum class Contract : std::uint8_t { Operator, Workflow, Airway };

// The guest whose turn it is.
struct Guest {
  Contract contract = Contract::Operator;
  std::string_view namespace_;
  std::string_view name;
  // Number of the instance: two instances of one name on one host never have the same number. Zero
  // for guests that do not live between turns. Ids of requests and timers belong to an instance.
  std::uint64_t instance = 0;
};

// An object at one of its versions.
struct Object {
  std::string_view group;
  std::string_view kind;
  std::string_view namespace_;
  std::string_view name;
  std::uint64_t version = 0;  // resourceVersion; zero: unknown.
};

// One of the reasons for a turn.
struct Waking {
  enum class Cause : std::uint8_t {
    Added,  // An event of a watch.
    Modified,
    Deleted,
    Line,    // A line of a stream that is none of the above.
    Answer,  // A complete answer to a request.
    Head,    // The start of a stream.
    End,     // The end of a stream.
    Timer,
    Event,  // Any other reason; `event` names it.
  };
  Cause cause = Cause::Line;
  std::uint64_t id = 0;  // Id of the request or timer.
  std::uint64_t bytes = 0;
  // The event of a machine: "signal APPROVED". A request into an operator: "review", "metrics".
  std::string_view event = {};
  Object object = {};  // With Added, Modified and Deleted.
  // The trace that the object's annotation names; only for observers, and only while there are
  // traces. Unchecked.
  std::string_view traceparent = {};
};

// A timer that a turn set, or an action that a machine requested: a later turn may begin with it.
struct Timer {
  std::uint64_t id = 0;
  Duration after{};
};

// One turn; recorded when it has ended.
struct Turn {
  enum class Outcome : std::uint8_t { Waits, Completed, Failed };

  Guest guest;
  std::string_view uid;      // Uid of the guest's object; empty with `hangar run`.
  std::string_view user;     // The user of its requests; empty: the host's own.
  std::string_view module;   // SHA-256, hexadecimal.
  std::uint64_t number = 0;  // Ascends; a new instance continues the count.
  Instant arrived;           // When the first of its reasons arrived.
  Instant began;             // When it got one of the slots for turns.
  Instant ended;
  Duration resume{};  // Time to resume from sleep; part of the turn.
  Duration cpu{};
  bool was_asleep = false;
  std::uint64_t memory_bytes = 0;  // Memory of the guest at the end of the turn.
  Outcome outcome = Outcome::Waits;
  std::uint64_t printed_bytes = 0;
  std::uint64_t asked = 0;  // Number of requests.
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

// A request; recorded when it is forwarded.
struct Asked {
  Guest guest;
  std::uint64_t turn = 0;
  std::uint64_t id = 0;
  Instant at;
  Verb verb = Verb::Other;
  std::string_view group;
  std::string_view resource;  // Plural. Empty: not a resource; see `path`.
  std::string_view namespace_;
  std::string_view name;
  std::string_view subresource;
  std::string_view path;           // Without its query.
  std::string_view field_manager;  // The field manager in the request, if any.
  bool is_dry_run = false;
  std::uint64_t version = 0;  // resourceVersion in the request; zero: none.
  std::uint64_t bytes = 0;
};

// The end of a request: its answer is complete, or will not arrive.
struct Answered {
  Guest guest;
  std::uint64_t id = 0;
  Instant at;
  std::uint64_t status = 0;  // HTTP status; zero: the guest no longer waited.
  std::uint64_t bytes = 0;
  bool has_object = false;
  // In the answer: the object that was written or read; of a list, without a name, its version.
  Object object;
};

// A guest that was suspended after a turn, or could not be.
struct Slept {
  Guest guest;
  std::uint64_t turn = 0;
  Instant at;
  Duration took{};
  std::uint64_t disk_bytes = 0;
  bool is_asleep = false;
};

// Records are missing at this place.
struct Lost {
  std::uint64_t count = 0;
  Instant since;
  Instant until;
};

// Older records that a namespace gave up to make room for those of other namespaces. Its records
// until then are not complete.
struct GivenUp {
  std::string_view namespace_;
  std::uint64_t count = 0;
  Instant until;
};

// What is known of the body of a request.
enum class BodyState : std::uint8_t {
  Whole,
  Cut,         // Only its beginning was written.
  Unreadable,  // Neither JSON nor short YAML, so it could not be searched for secrets.
  TooLarge,    // To be searched for secrets.
  NoRoom,      // Too much was waiting to be written, or the block was full.
  Withheld,    // Not in files: its reader may not see it.
};
inline constexpr BodyState kLastRecordedBodyState = BodyState::NoRoom;

// The Secrets of a namespace, or one of them.
struct SecretName {
  std::string_view namespace_;  // Empty: of all namespaces.
  std::string_view name;        // Empty: all.
};

// The body of a write, for operators that have theirs recorded.
struct Body {
  Guest guest;
  std::uint64_t id = 0;  // Of the request.
  Instant at;
  BodyState state = BodyState::Whole;
  // Those that the guest may have had in memory when it wrote the body.
  std::vector<SecretName> secrets;
  std::string_view text;  // JSON of printable ASCII, without what looks secret; empty: left out.
};

using Record = std::variant<Turn, Asked, Answered, Slept, Lost, GivenUp, Body>;

// The namespace that a record is accounted to; std::nullopt: none.
[[nodiscard]] std::optional<std::string_view> holder_of(const Record& record);
// When it happened; for Lost and GivenUp, the time of the last missing record.
[[nodiscard]] Instant time_of(const Record& record);

}  // namespace hangar::recorder
