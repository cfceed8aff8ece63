// A guest that lives from call to call, and leaves memory in between when it is told to.
//
// Between two calls a guest of this kind has no frame on any stack: all that it is lies in its
// linear memory and its globals. So it can be put to sleep then: what differs from the image that
// all instances of its module share is written to the snapshot store, and the instance is gone. The
// next turn brings it back.
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
#include "wasm/snapshot/snapshot_store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::wasm {

// One call of an export. Arguments are i32 or i64 as the export's type says.
struct Invocation {
  std::string function;
  std::vector<std::uint64_t> arguments;
};

// What a guest is asked to do while it is awake once: one call after the other. On the worker.
class Turn {
 public:
  Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  virtual ~Turn() = default;

  // The next call, or nothing at the end of the turn. `result` is what the call before returned;
  // zero when it returns nothing and at the turn's beginning. An error ends the turn with it.
  [[nodiscard]] virtual Result<std::optional<Invocation>> next(GuestMemory memory,
                                                               std::uint64_t result) = 0;
};

struct TurnLimits {
  // Of processor time, resuming not counted, and of what it waits for within the turn
  // (poll_oneoff). Nothing: for ever.
  std::optional<Duration> cpu_time_max = limits::kGuestCallMax;
  // For whom: whose share of the workers it uses.
  budget::Consumer consumer = budget::unnamed_consumer();
};

struct TurnReport {
  // As RunReport::ended. After an error the instance is lost: it holds nothing any more, and
  // further turns are an error. Fine too when the guest left (HostCall::leave): has_left says so.
  Result<> ended;
  bool has_left = false;
  bool has_timed_out = false;
  bool was_asleep = false;
  Duration resume_time{};  // Wall time from disk to memory, when it was asleep.
  Duration cpu_time{};     // On the workers, resuming included.
};

// Loop thread. Nothing is instantiated before the first turn.
class Instance {
 public:
  // All outlive it; `state` is touched by workers while a turn is under way and by nobody else.
  Instance(Engine& engine, std::shared_ptr<const SleepableModule> module,
           const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max);
  // The same for one that begins where another one was.
  Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
           const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max);
  // The same for one that was taken out while it slept.
  Instance(Engine& engine, SleepingInstance asleep, const HostFunctions& functions,
           HostState& state);
  // The same for run_afresh() and nothing else. `kept_bytes_max`: of memory that its turns have
  // written to; beyond that it holds nothing between two of them.
  Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
           const HostFunctions& functions, std::uint64_t memory_bytes_max,
           std::uint64_t kept_bytes_max);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();  // No turn, no sleep() and no checkpoint() under way.

  // One at a time. `turn` outlives the task. Resumes first where it must; Unavailable when the
  // snapshot cannot be read or is not what was written (the guest has to start anew).
  [[nodiscard]] io::Task<TurnReport> run(Turn& turn, TurnLimits limits, std::stop_token stop);

  // A turn as if on a new instance that begins at the checkpoint: nothing of an earlier turn is
  // left in it, and nothing of this one afterwards. What it holds then (resident_bytes()) is only
  // what makes the next turn cheap; nothing when it could not be put back. No error loses it.
  [[nodiscard]] io::Task<TurnReport> run_afresh(Turn& turn, HostState& state, TurnLimits limits,
                                                std::stop_token stop);

  // What it is going to take when a turn brings it into memory; zero while it is there.
  [[nodiscard]] std::uint64_t memory_bytes_needed() const;
  // Reserved for that (Engine::reserve), before the turn. Without it the turn waits for it.
  void provide(std::optional<budget::Reservation> memory);

  // Leaves memory. Unavailable when the store has no room for it or its tenant, or the disk fails:
  // it stays resident then, as it was. InvalidInput: the module cannot (SleepableModule::obstacle).
  [[nodiscard]] io::Task<Result<>> sleep(SnapshotStore& store,
                                         budget::Tenant tenant = budget::unnamed_consumer().tenant);
  // What is left of it while it sleeps. That is all there is of it then: it can be destroyed, and
  // nothing else. Nothing when it is not asleep.
  [[nodiscard]] std::optional<SleepingInstance> take_asleep();

  // What it is now, for others to begin with; it goes on. After a turn, while it is awake.
  // Unavailable when the disk has no room. InvalidInput: the module cannot sleep.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Checkpoint>>> checkpoint();

  [[nodiscard]] bool is_asleep() const;
  // Private memory that it holds now, as far as it is known: exact after a turn that was measured,
  // zero while it sleeps. And what its snapshot takes on disk, zero while it is awake.
  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] std::uint64_t disk_bytes() const;

  // For wasm/ only.
  struct Native;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
