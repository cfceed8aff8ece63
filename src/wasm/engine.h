// The WebAssembly engine of the process: where instances get their memory and stacks, how guests
// take turns on the workers, and the tick that bounds how long they run.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
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

// What each instance may take beside its memory and tables: its frames on a stack, and what
// wasmtime knows of it. Frames of host functions, and the second stack of a guest that is called
// back, are the host's own.
inline constexpr std::uint64_t kInstanceBytes = limits::kGuestStackBytesMax + 256 * limits::kKiB;

// Says whether a guest may have so much in all, kInstanceBytes included; the error is why not. On
// the worker that runs it, which waits.
using AskMemory = std::function<Result<>(std::uint64_t bytes)>;

// Files of /proc about this process, for one that opens none any more. The engine does not close
// them. Negative: it opens them itself.
struct OwnProcFiles {
  int pagemap = -1;
  int statm = -1;
};

// Created once, before modules are loaded; destroyed after all of them, when no guest runs. Any
// thread, unless a function says otherwise.
class Engine {
 public:
  struct Options {
    // Guests that have begun and not ended; more wait for their turn.
    std::uint32_t runs_max = limits::kGuestRunsMax;
    // Look for written pages as on Linux before 6.7, which is slower.
    bool scans_page_entries = false;
    OwnProcFiles proc_files = {};
    // Code that only guests have that sleep stays loaded for so long.
    Duration sleeping_code_kept = limits::kSleepingCodeKept;
    // What all guests in memory may take, by namespace. Outlives the engine, which listens to it.
    // Null: each is bounded for itself only.
    budget::Accounts* memory = nullptr;
  };

  Engine(io::Loop& loop, io::Workers& workers, Options options);
  Engine(io::Loop& loop, io::Workers& workers) : Engine(loop, workers, Options{}) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] io::Loop& loop() const { return loop_; }
  [[nodiscard]] io::Workers& workers() const { return workers_; }

  // False where address space for the pool could not be had: everything is allocated on demand.
  [[nodiscard]] bool has_pool() const;
  // Guests that have begun and not ended.
  [[nodiscard]] std::size_t running_count() const;

  // Memory for a guest that has none yet: its linear memory at the beginning, `memory_bytes`, and
  // what every one takes. Errors as those of ReservationQueue::reserve, with `on_wait` called once
  // if it has to wait. Nothing is reserved without accounts. Loop thread.
  [[nodiscard]] io::Task<Result<std::optional<budget::Reservation>>> reserve(
      budget::Consumer consumer, std::uint64_t memory_bytes, std::stop_token stop,
      std::function<void(const budget::Shortage&)> on_wait = {});
  // Null without accounts.
  [[nodiscard]] const budget::Accounts* accounts() const;
  // The same, for what is no guest and takes memory all the same. Loop thread.
  [[nodiscard]] budget::ReservationQueue* memory() const;

  // For wasm/ only.
  struct Native;
  [[nodiscard]] Native& native() const { return *native_; }

 private:
  io::Loop& loop_;
  io::Workers& workers_;
  std::unique_ptr<Native> native_;
};

// Gives what is free in the host's heap and in wasmtime's own back to the system. Takes some
// milliseconds; any thread.
void trim_heaps();

}  // namespace hangar::wasm
