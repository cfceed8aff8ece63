// The WebAssembly engine of the process: provides instances with memory and stacks, schedules
// guests on the workers, and ticks to bound how long they run.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/limits.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::wasm {

// The memory of each instance besides its linear memory and tables: its frames on a stack, and
// wasmtime's own data about it. Not included, and not charged to the guest: frames of host
// functions, and the second stack of a guest that is called back.
inline constexpr std::uint64_t kInstanceBytes = limits::kGuestStackBytesMax + 256 * limits::kKiB;

// Returns success if a guest may have that many bytes in all, kInstanceBytes included; otherwise
// the reason. Called on the guest's worker, which blocks meanwhile.
using AskMemory = std::function<Result<>(std::uint64_t bytes)>;

// Open files of /proc about this process, for a process that can no longer open them. The engine
// does not close them. Negative: the engine opens them itself.
struct OwnProcFiles {
  int pagemap = -1;
  int statm = -1;
};

// What an engine has without a thread, a guest, or anything of its process: wasmtime's engines, and
// the address space of the pool. A process that forks others makes it once, for all of them.
class EngineParts {
 public:
  // `runs_max` as in Engine::Options.
  explicit EngineParts(std::uint32_t runs_max = limits::kGuestRunsMax);
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;
  ~EngineParts();

  // For wasm/ only.
  struct Native;
  [[nodiscard]] Native& native() const { return *native_; }

 private:
  std::unique_ptr<Native> native_;
};

// Constructed once, before modules are loaded; destroyed after all of them, when no guest runs. Any
// thread, unless a function says otherwise.
class Engine {
 public:
  struct Options {
    // The number of guests that have started and not finished; others wait for their turn.
    std::uint32_t runs_max = limits::kGuestRunsMax;
    // Finds written pages as on Linux before 6.7, which is slower.
    bool scans_page_entries = false;
    OwnProcFiles proc_files = {};
    // Used by this engine only, in this process, and made for `runs_max`. Outlives the engine.
    // Null: it makes its own.
    const EngineParts* parts = nullptr;
    // How long code stays loaded after all guests that use it fell asleep.
    Duration sleeping_code_kept = limits::kSleepingCodeKept;
    // Counts the memory of all guests, by namespace. Outlives the engine, which listens to it.
    // Null: each guest has only its own bound.
    budget::Accounts* memory = nullptr;
    // Charged with the processor time of all jobs of the workers, guests' among them, and of
    // compiling modules; a namespace that has used up its rate starts no run. Outlives the engine.
    // Null: there are no rates.
    budget::Rates* rates = nullptr;
  };

  Engine(io::Loop& loop, io::Workers& workers, Options options);
  Engine(io::Loop& loop, io::Workers& workers) : Engine(loop, workers, Options{}) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] io::Loop& loop() const { return loop_; }
  [[nodiscard]] io::Workers& workers() const { return workers_; }

  // False if the address space for the pool could not be reserved: instances are then allocated
  // on demand.
  [[nodiscard]] bool has_pool() const;
  // The number of guests that have started and not finished.
  [[nodiscard]] std::size_t running_count() const;

  // Reserves memory for a guest that has none yet: `memory_bytes` of initial linear memory, and the
  // fixed part. Errors as for ReservationQueue::reserve; `on_wait` is called once if it has to
  // wait. Without accounts nothing is reserved. Loop thread.
  [[nodiscard]] io::Task<Result<std::optional<budget::Reservation>>> reserve(
      budget::Consumer consumer, std::uint64_t memory_bytes, std::stop_token stop,
      std::function<void(const budget::Shortage&)> on_wait = {});
  // Null without accounts.
  [[nodiscard]] const budget::Accounts* accounts() const;
  // The same queue, for memory other than that of guests. Null without accounts. Loop thread.
  [[nodiscard]] budget::ReservationQueue* memory() const;

  // Threads that continue guests that have computed for long, at a lower priority than workers().
  [[nodiscard]] const io::Workers& long_run_workers() const;

  [[nodiscard]] const EngineParts& parts() const;

  // For code that lets guests take turns. Null without rates.
  [[nodiscard]] budget::Rates* rates() const;

  // For wasm/ only.
  struct Native;
  [[nodiscard]] Native& native() const { return *native_; }

 private:
  io::Loop& loop_;
  io::Workers& workers_;
  std::unique_ptr<Native> native_;
};

// Returns free memory of the host's heap and of wasmtime's own heap to the system. Takes a few
// milliseconds; any thread.
void trim_heaps();

}  // namespace hangar::wasm
