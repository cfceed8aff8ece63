// The state machine contract: a machine decides, the host executes. The host passes a state and an
// event to the machine, and the machine answers with its new state and the actions to carry out.
// docs/abi/statemachine.md describes it in full.
//
// A machine has one of three shapes: a module with the published entry point (`handle_event`), a
// WASI command that reads one JSON document and prints one (as Javy builds them), or a JavaScript
// bundle that runs in the host's own QuickJS module. All knowledge of XState (both major versions)
// is here and in that module; for the code above, a state is an opaque document.
#pragma once

#include "abi/statemachine/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/digest.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

enum class Shape : std::uint8_t { HandleEvent, Command, Bundle };

// The member of an event that names its actor. Without it, the event is for the machine itself.
inline constexpr std::string_view kActorMember = "hangar.actor";

struct Action {
  std::string type;
  std::string params;  // A JSON object, compact; "{}" when the machine gave none.
  // The actor of the machine that requests the action and receives its result as an event. Empty:
  // the machine itself.
  std::string actor = {};
};

// XState's `after` and delayed raise/sendTo(self): an event that the machine wants to receive
// later. The host keeps the timer (its deadline is in the status), because XState loses it when a
// state is restored.
struct Timer {
  std::string id;  // The machine cancels it by this id.
  Duration delay{};
  std::string event;     // A JSON object with a `type`.
  bool replaces = true;  // Replaces running timers with the same id.
};

// A machine that another machine has invoked or spawned.
struct Actor {
  // The path of ids from the machine down, with the number of its session: "worker#1",
  // "worker/disk#4". An id may be reused, a session may not. Safe to print.
  std::string id;
  std::string value;       // As in Step::value.
  std::string status;      // "done", "error", ... Empty: it is running.
  std::string definition;  // As of Machine::definition(). Empty: not requested, or unknown.

  bool operator==(const Actor&) const = default;
};

// The effect of one event.
struct Step {
  // The whole state, compact JSON, as the machine wants it back. For XState: State#toJSON() in v4,
  // getPersistedSnapshot() in v5.
  std::string state;
  // False when the state does not know the event: then nothing changed (`state` is the old one),
  // and there are no actions or timers.
  bool is_handled = true;
  // The actions of the states entered and the transitions taken, in order of execution. Not those
  // of states that were active before and remain so.
  std::vector<Action> actions;
  // A timer in both lists was set again: the host first cancels timers, then starts timers.
  std::vector<Timer> timers_started;
  std::vector<std::string> timers_cancelled;
  // The present actors of the machine, parents before children; also when nothing changed.
  std::vector<Actor> actors;
  // Actors that have stopped. The host drops their waiting actions and their timers
  // ("<actor>:<id>").
  std::vector<std::string> actors_stopped;
  // For people: XState's state value ("idle" or {"parallel": ...}), compact JSON.
  std::string value;
  bool is_final = false;
  std::optional<std::string> output;  // Compact JSON; only for a final state with an output.
  std::string log;                    // Its output (console.log, stderr), bounded; for people.
};

// The cost of one call of a machine, whatever its result.
struct Cost {
  Duration cpu{};                  // Processor time on the workers.
  std::uint64_t memory_bytes = 0;  // The size of its memory at the end.
};

// The party on whose behalf a machine is asked.
struct Asker {
  // The machine waits for memory as this consumer, and uses its share of the workers.
  budget::Consumer consumer = budget::unnamed_consumer();
  Cost* cost = nullptr;  // Receives the cost of the call. Outlives the task. Null: not needed.
};

struct MachineLimits {
  Duration cpu_time_max = limits::kMachineStepMax;  // For one step.
  std::uint64_t memory_bytes_max = limits::kMachineMemoryBytesMax;
};

// One module, ready to decide for any number of workflows: it keeps no state between calls. Loop
// thread; calls may overlap, and must return before it is destroyed. Errors of all calls:
// InvalidInput when the answer is not valid (not JSON, no newState, an `error` member), GuestFault
// when the machine threw or trapped (with its message, bounded), LimitExceeded for time, memory,
// and an answer or state that is too large, Cancelled, Unavailable when the machine could not be
// asked or its answer is lost: it may be asked again.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  [[nodiscard]] virtual Shape shape() const = 0;

  // The machine's use of the disk: the digest of its compiled code, and the bytes of its images.
  // None for a bundle, which runs in the host's own module.
  struct OnDisk {
    wasm::Digest code;
    std::uint64_t image_bytes = 0;
  };
  [[nodiscard]] virtual std::optional<OnDisk> on_disk() const { return std::nullopt; }

  // If machines are asked elsewhere (program.h): returns the errors that loading it here would have
  // found, InvalidInput, GuestFault or LimitExceeded.
  [[nodiscard]] virtual io::Task<Result<>> try_out(std::stop_token /*stop*/, Asker /*asker*/) {
    co_return Result<>();
  }

  // The initial state with `input` (a JSON object) as the machine's context or input, and the
  // actions for entering it. No event has been sent yet.
  [[nodiscard]] virtual io::Task<Result<Step>> start(std::string input, std::stop_token stop,
                                                     Asker asker) = 0;
  [[nodiscard]] io::Task<Result<Step>> start(std::string input, std::stop_token stop) {
    return start(std::move(input), std::move(stop), Asker());
  }

  // `state` comes from an earlier step, possibly of an older version of the machine: InvalidInput
  // when this version does not know it.
  [[nodiscard]] virtual io::Task<Result<Step>> step(std::string state, std::string event,
                                                    std::stop_token stop, Asker asker) = 0;
  [[nodiscard]] io::Task<Result<Step>> step(std::string state, std::string event,
                                            std::stop_token stop) {
    return step(std::move(state), std::move(event), std::move(stop), Asker());
  }

  // The machine as JSON for drawing: {"id", "initial", "states": {name: {"type", "on": {event:
  // [{"target"}]}, "after", "states", ...}}} as XState writes a definition; delayed transitions
  // also have their "event" (delays.h). NotFound for shapes that have no definition.
  [[nodiscard]] virtual io::Task<Result<std::string>> definition(std::stop_token stop,
                                                                 Asker asker) = 0;
  [[nodiscard]] io::Task<Result<std::string>> definition(std::stop_token stop) {
    return definition(std::move(stop), Asker());
  }

  // The actors in `state`, with their definitions. Empty for shapes that cannot list them.
  [[nodiscard]] virtual io::Task<Result<std::vector<Actor>>> actors(std::string /*state*/,
                                                                    std::stop_token /*stop*/,
                                                                    Asker /*asker*/) {
    co_return std::vector<Actor>();
  }
  [[nodiscard]] io::Task<Result<std::vector<Actor>>> actors(std::string state,
                                                            std::stop_token stop) {
    return actors(std::move(state), std::move(stop), Asker());
  }
};

}  // namespace hangar::abi::statemachine
