// The state machine contract: a machine decides, the host executes. A machine is given its state
// and an event, and says what its state is now and which actions that asks for.
// docs/abi/statemachine.md has it in full.
//
// A machine comes in three shapes: a module with the published entry point (`handle_event`), a WASI
// command that reads one JSON document and prints one (as Javy builds them), or a JavaScript bundle
// that runs in the host's own QuickJS module. What is known about XState (both majors) is known
// here and in that module; above, a state is a document that nobody looks into.
#pragma once

#include "abi/statemachine/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"

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

// The member of an event that names the actor it is for. Without it, it is for the machine itself.
inline constexpr std::string_view kActorMember = "hangar.actor";

struct Action {
  std::string type;
  std::string params;  // A JSON object, compact; "{}" when it gave none.
  // Which of the machine's actors asks for it, and gets the event that it ends in. Empty: the
  // machine itself.
  std::string actor = {};
};

// XState's `after` and delayed raise/sendTo(self): an event that the machine wants to get later.
// The host keeps it (deadline in the status), since XState loses it when a state is restored.
struct Timer {
  std::string id;  // What cancels it.
  Duration delay{};
  std::string event;     // A JSON object with a `type`.
  bool replaces = true;  // Those of the same id that run already.
};

// A machine that a machine has invoked or spawned.
struct Actor {
  // The path of ids from the machine down and the number of its session: "worker#1",
  // "worker/disk#4". An id may be used again, a session is not. Safe to print.
  std::string id;
  std::string value;       // As Step::value has it.
  std::string status;      // "done", "error", ... Empty: it runs.
  std::string definition;  // As Machine::definition(). Empty: not asked for, or not known.

  bool operator==(const Actor&) const = default;
};

// What one event did.
struct Step {
  // The whole state, compact JSON, as the machine wants it back. XState: v4 State#toJSON(), v5
  // getPersistedSnapshot().
  std::string state;
  // False when the state does not know the event: then nothing changed (`state` is what was given),
  // and nothing is asked for.
  bool is_handled = true;
  // Of the states that were entered and of the transitions taken, in the order of execution. Not of
  // states that were active before and stay so.
  std::vector<Action> actions;
  // A timer that is in both was set anew: first the cancelled ones go, then the started ones run.
  std::vector<Timer> timers_started;
  std::vector<std::string> timers_cancelled;
  // The machine's actors now, parents before their children. Also when nothing changed.
  std::vector<Actor> actors;
  // Those that have ended. What they wait for and their timers ("<actor>:<id>") are given up.
  std::vector<std::string> actors_stopped;
  // For people: XState's state value ("idle" or {"parallel": ...}), compact JSON.
  std::string value;
  bool is_final = false;
  std::optional<std::string> output;  // Compact JSON; of a final state that has one.
  std::string log;                    // What it printed (console.log, stderr), bounded; for people.
};

// What one call of a machine took, whatever came of it.
struct Cost {
  Duration cpu{};                  // On the workers.
  std::uint64_t memory_bytes = 0;  // Of its memory, at the end.
};

struct MachineLimits {
  Duration cpu_time_max = limits::kMachineStepMax;  // Of one step.
  std::uint64_t memory_bytes_max = limits::kMachineMemoryBytesMax;
};

// One module, ready to decide for any number of workflows: it remembers nothing between calls. Loop
// thread; calls may overlap, and end before it does. Errors of all calls: InvalidInput when its
// answer is no answer (not JSON, no newState, an `error` of its own), GuestFault when it threw or
// trapped (the text it gave, bounded), LimitExceeded for time, memory and too large an answer or
// state, Cancelled.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  [[nodiscard]] virtual Shape shape() const = 0;

  // The initial state with `input` (a JSON object) as the machine's context or input, and what
  // entering it asks for. No event was sent yet. `cost`, unless it is null, outlives the task.
  [[nodiscard]] virtual io::Task<Result<Step>> start(std::string input, std::stop_token stop,
                                                     Cost* cost) = 0;
  [[nodiscard]] io::Task<Result<Step>> start(std::string input, std::stop_token stop) {
    return start(std::move(input), std::move(stop), nullptr);
  }

  // `state` as an earlier step gave it, possibly of an older version of the machine: InvalidInput
  // when this one does not know it.
  [[nodiscard]] virtual io::Task<Result<Step>> step(std::string state, std::string event,
                                                    std::stop_token stop, Cost* cost) = 0;
  [[nodiscard]] io::Task<Result<Step>> step(std::string state, std::string event,
                                            std::stop_token stop) {
    return step(std::move(state), std::move(event), std::move(stop), nullptr);
  }

  // The machine as JSON for drawing: {"id", "initial", "states": {name: {"type", "on": {event:
  // [{"target"}]}, "after", "states", ...}}} as XState writes a definition; delayed transitions
  // have their "event", too (delays.h). NotFound for shapes that cannot tell.
  [[nodiscard]] virtual io::Task<Result<std::string>> definition(std::stop_token stop) = 0;

  // The actors in `state`, with their definitions. None for shapes that cannot tell.
  [[nodiscard]] virtual io::Task<Result<std::vector<Actor>>> actors(std::string /*state*/,
                                                                    std::stop_token /*stop*/) {
    co_return std::vector<Actor>();
  }
};

}  // namespace hangar::abi::statemachine
