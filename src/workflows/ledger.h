// The facts, requests and promises about one workflow: its status as the host reads and writes it,
// except for the conditions.
//
// The ledger makes effects happen exactly once: an action is in the outbox before it is carried
// out, and leaves it in the same write that stores its resulting event. Everything that must
// survive the host is here; deploy/crds/statefulworkflows.workflows.example.com.yaml describes each
// field.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

// The origin of an event.
enum class Origin : std::uint8_t {
  Host,     // PROVISION, and events of the host itself.
  Action,   // The result of an action.
  Timer,    // A delay of the machine is over.
  Timeout,  // A state or the workflow took too long.
  Signal,   // A person or another workflow.
  Change,   // An object of the workflow has changed.
};
[[nodiscard]] std::string_view name_of(Origin origin);

struct QueuedEvent {
  Origin origin = Origin::Host;
  json::Value body;  // An object with a `type`.
  // For the recorder, not stored in the status: the version of the workflow that a signal came
  // with, or number_of_timer(). Zero: not known.
  std::uint64_t source = 0;
  // The size of the body as text; zero: not measured yet.
  mutable std::size_t body_bytes = 0;
};
[[nodiscard]] std::string_view type_of(const json::Value& event);
// The machine's actor that receives the event; empty: the machine itself.
[[nodiscard]] std::string_view actor_of(const json::Value& event);

// An action that was requested and has not finished.
struct PendingAction {
  std::int64_t id = 0;  // In the order of requests, from 1.
  std::string type;
  json::Value params;  // An object.
  WallTime requested_at;
  std::optional<WallTime> deadline;
  std::uint32_t attempts = 0;          // Failed ones.
  std::optional<WallTime> not_before;  // The next attempt.
  std::string last_error;
  // The uid of the object that the action is about, once it is known and needed.
  std::string target;
  // The machine's actor that requested it; empty: the machine itself.
  std::string actor = {};
};

// Numbers a timer by its id, above all ids of actions; stable within a process.
[[nodiscard]] std::uint64_t number_of_timer(std::string_view id);

struct RunningTimer {
  std::string id;
  Origin origin = Origin::Timer;
  WallTime due;
  json::Value event;
};

// One of the machine's actors, for people: its own state is in the machine's state.
struct RunningActor {
  std::string id;      // As abi::statemachine::Actor.
  std::string value;   // As people read it; shortened.
  std::string status;  // Empty: it is running.
  WallTime entered_at;
};

// An object that the workflow made, or is about to.
struct OwnedResource {
  std::string api_version;
  std::string kind;
  std::string namespace_;  // Empty: cluster-scoped.
  std::string name;
  // The resourceVersion that the machine knows; empty: it knows none; "deleted": it knows that the
  // object is gone.
  std::string seen;
};
inline constexpr std::string_view kSeenDeleted = "deleted";

struct HistoryEntry {
  std::int64_t sequence = 0;
  WallTime time;
  std::string event;  // Its type.
  Origin origin = Origin::Host;
  std::string from;  // State values as people read them; empty: before the first.
  std::string to;
  std::vector<std::string> actions;  // "CREATE_PVC#3".
  std::vector<std::string> actors;   // "worker#1: making -> made".
};

struct Migration {
  std::string request;  // The annotation's value.
  bool is_done = false;
  std::string message;
};

struct Ledger {
  std::string state;     // Opaque text of the machine; empty: it has not started.
  std::string value;     // The present state, as people read it: idle, or {"a":"b"}.
  std::string sha256;    // The digest of the module that decides.
  std::string resolved;  // Its exact origin.
  // Distinguishes this run from an earlier one of the same object (whose status was removed).
  std::string run;
  // At most limits::kWorkflowNumberMax, both.
  std::int64_t transitions = 0;
  std::int64_t next_action = 1;
  std::vector<QueuedEvent> inbox;     // Oldest first.
  std::vector<PendingAction> outbox;  // By id.
  std::vector<RunningTimer> timers;
  std::vector<RunningActor> actors;
  std::vector<OwnedResource> resources;
  std::vector<HistoryEntry> history;  // Oldest first.
  std::vector<std::string> signals;   // Ids taken in, oldest first.
  std::optional<WallTime> started_at;
  std::optional<WallTime> entered_at;
  std::optional<WallTime> finished_at;
  bool has_failed = false;            // With finished_at: a FAILURE brought it there.
  std::optional<json::Value> output;  // With finished_at.
  std::string failure;  // A FAILURE that its state ignored; kept until one is handled.
  std::string ignored;  // The type of the last signal, if its state ignored it.
  std::optional<Migration> migration;
  // Another client wrote `state`.
  bool is_foreign = false;

  [[nodiscard]] bool has_begun() const { return !state.empty(); }
  [[nodiscard]] bool is_finished() const { return finished_at.has_value(); }
  // The host will neither ask the machine nor act for the workflow any more: a machine that has
  // finished may have actions that are still to be carried out.
  [[nodiscard]] bool is_at_rest() const { return is_finished() && outbox.empty(); }
  [[nodiscard]] PendingAction* find_action(std::int64_t id);
};

// Reads a status, or null. InvalidInput says what is wrong with it.
[[nodiscard]] Result<Ledger> parse_ledger(const json::Value* status);

// Writes the ledger into `status`, whose other members (conditions) stay.
void put_ledger(json::Value& status, const Ledger& ledger);

// Whether `manifest`, the API server's answer to a write of the ledger, still has everything that
// must not get lost: the server drops fields that its schema does not have.
[[nodiscard]] bool is_kept_in(const json::Value& manifest, const Ledger& ledger);

// A state value (compact JSON) in readable form: idle for "idle".
[[nodiscard]] std::string readable_value(std::string_view value_json);
// The inverse; empty for an empty one.
[[nodiscard]] std::string value_json(std::string_view readable);
// The path of each active state of a readable value: "a", "a.b". None if all of them have more than
// limits::kWorkflowPathBytesMax.
[[nodiscard]] std::vector<std::string> active_states(std::string_view readable);
// The bytes of these paths together.
[[nodiscard]] std::uint64_t state_path_bytes(std::string_view readable);

}  // namespace hangar::workflows
