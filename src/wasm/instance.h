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

// The calls that a guest makes while it is awake once, in order. Used on the worker.
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
  // Bounds processor time, without resuming, plus the time that the guest waits within the turn
  // (poll_oneoff). std::nullopt: no limit.
  std::optional<Duration> cpu_time_max = limits::kGuestCallMax;
  // On whose behalf it runs: it uses this consumer's share of the workers.
  budget::Consumer consumer = budget::unnamed_consumer();
};

struct TurnReport {
  // As RunReport::ended. After an error the instance is lost: it holds nothing any more, and
  // further turns fail. Also successful when the guest left (HostCall::leave), which
  // has_left reports.
  Result<> ended;
  bool has_left = false;
  bool has_timed_out = false;
  bool was_asleep = false;
  Duration resume_time{};  // Wall time from disk to memory, when it was asleep.
  Duration cpu_time{};     // On the workers, including resuming.
};

// Loop thread. The instance is not created before the first turn.
class Instance {
 public:
  // All arguments outlive it. During a turn only workers use `state`.
  Instance(Engine& engine, std::shared_ptr<const SleepableModule> module,
           const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max);
  // The same, but it starts from a checkpoint of another instance.
  Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
           const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max);
  // The same for a suspended instance that was taken out.
  Instance(Engine& engine, SleepingInstance asleep, const HostFunctions& functions,
           HostState& state);
  // The same, but only for run_afresh(). `kept_bytes_max` bounds the memory that its turns have
  // written to; beyond that it keeps nothing between turns.
  Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
           const HostFunctions& functions, std::uint64_t memory_bytes_max,
           std::uint64_t kept_bytes_max);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();  // No turn, sleep() or checkpoint() may be in progress.

  // One turn at a time. `turn` outlives the task. Resumes first if necessary; Unavailable when the
  // snapshot cannot be read or is damaged (the guest then has to start anew).
  [[nodiscard]] io::Task<TurnReport> run(Turn& turn, TurnLimits limits, std::stop_token stop);

  // A turn as if on a new instance that starts from the checkpoint: it sees nothing of earlier
  // turns, and leaves nothing for later ones. The memory that remains (resident_bytes()) only
  // makes the next turn cheaper; none remains if the instance could not be reset. No error loses
  // the instance.
  [[nodiscard]] io::Task<TurnReport> run_afresh(Turn& turn, HostState& state, TurnLimits limits,
                                                std::stop_token stop);

  // How much memory a turn needs to bring it into memory; zero while it is there.
  [[nodiscard]] std::uint64_t memory_bytes_needed() const;
  // The reservation for that (Engine::reserve), to be passed before the turn. Without it the turn
  // waits for one.
  void provide(std::optional<budget::Reservation> memory);
  // As in RunLimits: asked from now on instead of the engine's accounts.
  void ask_for_memory(AskMemory ask);

  // Suspends it to disk. Unavailable when the store has no room for it or its tenant, or
  // the disk fails: it then stays resident, unchanged. InvalidInput: the module cannot
  // sleep (SleepableModule::obstacle).
  [[nodiscard]] io::Task<Result<>> sleep(Snapshots& store,
                                         budget::Tenant tenant = budget::unnamed_consumer().tenant);
  // Takes out the state of a suspended instance; after that this object can only be destroyed.
  // std::nullopt when it is not asleep.
  [[nodiscard]] std::optional<SleepingInstance> take_asleep();

  // A copy of its present state, from which others can start; this instance continues. After a
  // turn, while it is awake. Unavailable when the disk has no room. InvalidInput: the module
  // cannot sleep.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Checkpoint>>> checkpoint(
      budget::Consumer whose);

  [[nodiscard]] bool is_asleep() const;
  // resident_bytes(): its private memory as far as it is known; exact after a turn that was
  // measured, zero while it sleeps. disk_bytes(): the size of its snapshot on disk, zero while it
  // is awake.
  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] std::uint64_t disk_bytes() const;

  // For wasm/ only.
  struct Native;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
