// The inside of run(): one guest on its way through the workers.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/internal/handles.h"
#include "wasm/module.h"
#include "wasm/run.h"

#include <wasmtime/extern.h>
#include <wasmtime/instance.h>
#include <wasmtime/memory.h>
#include <wasmtime/store.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::wasm {

// Lives in the frame of run(), on the loop. Between begin() and the moment `done` is set it is one
// worker's at a time; the members that both sides touch say so.
class Run {
 public:
  enum class Stop : std::uint8_t { No, TimedOut, Cancelled };

  Run(Engine& engine, const Module& module, const HostFunctions& functions, HostState& state,
      std::string entry, RunLimits limits);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  // Loop thread.
  void begin();
  void stop(Stop reason);
  [[nodiscard]] io::Task<RunReport> wait();

  // For HostCall, on the worker.
  [[nodiscard]] Engine& engine() const { return engine_; }
  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] HostState& state() const { return state_; }
  [[nodiscard]] bool is_stopped() const { return stop_.load() != Stop::No; }
  [[nodiscard]] Result<GuestMemory> memory(wasmtime_caller* caller);
  // What the run ends with when the trap that is returned reaches its end. The first one counts.
  [[nodiscard]] wasm_trap_t* trap(const std::string& function, Error error);
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  void leave() { has_left_ = true; }
  void begin_wait();
  void end_wait() { is_waiting_ = false; }
  void spawn_ask(std::move_only_function<io::Task<void>(std::stop_token)> task);
  // One call into the guest from a host function at a time: each takes a stack.
  [[nodiscard]] bool enter_guest_call() { return !std::exchange(is_in_guest_call_, true); }
  void exit_guest_call() { is_in_guest_call_ = false; }

 private:
  enum class Phase : std::uint8_t { New, Instantiating, Running };
  enum class Progress : std::uint8_t { Ended, Yielded, Waiting };

  static wasmtime_error_t* on_epoch(wasmtime_context_t* context, void* self, std::uint64_t* ticks,
                                    wasmtime_update_deadline_kind_t* kind);

  // Worker.
  void step();
  Progress advance();
  [[nodiscard]] Result<> instantiate();
  [[nodiscard]] Result<> call_entry();
  void finish();
  [[nodiscard]] Result<> outcome();
  // False when there is a reason to go on already.
  [[nodiscard]] bool suspend();

  // Loop thread.
  void wake();
  void begin_ask(std::move_only_function<io::Task<void>(std::stop_token)> task);
  [[nodiscard]] io::Task<void> run_ask(
      std::move_only_function<io::Task<void>(std::stop_token)> task);

  Engine& engine_;
  const Module& module_;
  const HostFunctions& functions_;
  HostState& state_;
  const std::string entry_;
  const RunLimits limits_;

  // Worker. `future_` refers to all that follow it here, so it goes first.
  Phase phase_ = Phase::New;
  internal::StoreHandle store_;
  wasmtime_context_t* context_ = nullptr;
  internal::InstancePreHandle prepared_;
  wasmtime_instance_t instance_{};
  wasmtime_func_t entry_function_{};
  std::optional<wasmtime_memory_t> memory_;
  wasm_trap_t* trap_ = nullptr;        // Written by wasmtime, owned by us.
  wasmtime_error_t* error_ = nullptr;  // The same.
  internal::FutureHandle future_;
  std::optional<Error> fault_;
  bool has_left_ = false;
  bool is_waiting_ = false;
  bool is_in_guest_call_ = false;
  Instant deadline_ = Instant::max();  // Set once, before anything waits.
  Duration slice_began_{};             // In processor time of the worker that has it.
  RunReport report_;

  // Both sides.
  std::atomic<Stop> stop_ = Stop::No;
  std::mutex mutex_;
  bool is_suspended_ = false;  // No worker has it; whoever wakes it clears this and queues it.
  bool is_woken_ = false;      // Something arrived while a worker still had it.

  // Loop thread.
  io::OneShot<RunReport> done_;
  std::size_t asks_ = 0;  // Tasks begun for the guest and not ended.
  io::Event asks_ended_;
  std::stop_source stop_asks_;
  io::Loop::Timer deadline_timer_;  // Only while the guest waits: epochs see to it otherwise.
};

}  // namespace hangar::wasm
