// A guest that lives from call to call, and can be suspended to disk in between.
//
// Between two calls a guest of this kind has no frame on any stack: its entire state is its linear
// memory and its globals. Suspending writes the difference from an image, which all instances of
// its module share, to the snapshot store, and destroys the instance. The next turn resumes it.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/limits.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleeping_instance.h"
#include "wasm/snapshot/snapshots.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::wasm {

// One call of an export. The export's type says whether each argument is i32 or i64.
struct Invocation {
  std::string function;
  std::vector<std::uint64_t> arguments;
};

// The calls that a guest makes in one turn, in order. Used on the worker.
class Turn {
 public:
  Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  virtual ~Turn() = default;

  // The next call, or std::nullopt at the end of the turn. `result` is what the last call
  // returned; zero if it returned nothing, and at the beginning of the turn. An error ends the
  // turn with that error.
  [[nodiscard]] virtual Result<std::optional<Invocation>> next(GuestMemory memory,
                                                               std::uint64_t result) = 0;
};

struct TurnLimits {
  // Bounds processor time, without that of resuming, plus the time that the guest waits within the
  // turn (poll_oneoff). std::nullopt: no limit.
  std::optional<Duration> cpu_time_max = limits::kGuestCallMax;
  // The consumer on whose behalf the guest runs, and whose share of the workers it uses.
  budget::Consumer consumer = budget::unnamed_consumer();
};

struct TurnReport {
  // As RunReport::ended. After an error the instance is lost: it holds no resources, and further
  // turns fail. Also successful when the guest left (HostCall::leave), which has_left reports.
  Result<> ended;
  bool has_left = false;
  bool has_timed_out = false;
  bool was_asleep = false;
  Duration resume_time{};      // Wall time from disk to memory, if it was asleep.
  Duration resume_cpu_time{};  // The processor time of that.
  Duration cpu_time{};         // On the workers, including resuming.
};

// Loop thread. The guest's instance is created at the first turn.
class Instance {
 public:
  // All arguments outlive it. During a turn only workers use `state`.
  Instance(Engine& engine, std::shared_ptr<const SleepableModule> module,
           const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max);
  // The same for a guest that starts from a checkpoint of another instance.
  Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
           const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max);
  // The same for a suspended instance, from take_asleep().
  Instance(Engine& engine, SleepingInstance asleep, const HostFunctions& functions,
           HostState& state);
  // The same, but only for run_afresh(). If its turns have written to more than `kept_bytes_max` of
  // memory, it keeps nothing between turns.
  Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
           const HostFunctions& functions, std::uint64_t memory_bytes_max,
           std::uint64_t kept_bytes_max);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();  // No turn, sleep() or checkpoint() may be in progress.

  // One turn at a time. `turn` outlives the task. Resumes the guest first if necessary; Unavailable
  // when the snapshot cannot be read or is damaged (the guest then has to restart).
  [[nodiscard]] io::Task<TurnReport> run(Turn& turn, TurnLimits limits, std::stop_token stop);

  // Runs a turn as if on a new instance that starts from the checkpoint: it sees nothing of earlier
  // turns, and leaves nothing for later ones. The memory that remains (resident_bytes()) only makes
  // the next turn cheaper; none remains if the instance could not be reset. Errors do not lose the
  // instance.
  [[nodiscard]] io::Task<TurnReport> run_afresh(Turn& turn, HostState& state, TurnLimits limits,
                                                std::stop_token stop);

  // The memory that the next turn needs to resume the guest; zero while it is in memory.
  [[nodiscard]] std::uint64_t memory_bytes_needed() const;
  // Passes the reservation of that memory (Engine::reserve) before the turn. Without it the turn
  // waits for one.
  void provide(std::optional<budget::Reservation> memory);
  // As in RunLimits: from now on `ask` replaces the engine's accounts.
  void ask_for_memory(AskMemory ask);

  // Suspends the guest to disk, and returns the processor time that it took. Unavailable when the
  // store has no room for it or its tenant, or the disk fails: the guest then stays resident,
  // unchanged. InvalidInput: the module cannot sleep (SleepableModule::obstacle).
  [[nodiscard]] io::Task<Result<Duration>> sleep(
      Snapshots& store, budget::Tenant tenant = budget::unnamed_consumer().tenant);
  // Takes out the state of a suspended instance; after that this object can only be destroyed.
  // std::nullopt when it is not asleep.
  [[nodiscard]] std::optional<SleepingInstance> take_asleep();

  // Copies the present state, from which other instances can start; this one continues. Call it
  // after a turn, while the guest is in memory. Unavailable when the disk has no room.
  // InvalidInput: the module cannot sleep.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Checkpoint>>> checkpoint(
      budget::Consumer whose);

  [[nodiscard]] bool is_asleep() const;
  // resident_bytes(): the private memory of the guest as far as it is known; exact after a turn
  // that was measured, zero while it sleeps. disk_bytes(): snapshot and layer on disk, zero
  // while the guest is in memory.
  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] std::uint64_t disk_bytes() const;

  // For wasm/ only.
  struct Native;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
