// One guest on its way through the workers: the common part of a run of a command and a turn of an
// instance. Derived classes decide which calls are made. This class makes the calls, counts their
// time, suspends the guest while it waits, and stops it when it must stop.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/internal/guest_account.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/ready_queue.h"
#include "wasm/internal/watched_memory.h"
#include "wasm/module.h"

#include <wasmtime/extern.h>
#include <wasmtime/memory.h>
#include <wasmtime/store.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::wasm {

// Lives in the frame of a coroutine on the loop. Between begin() and the end of wait() one worker
// at a time owns it; members that both sides use are marked.
class Execution {
 public:
  enum class Stop : std::uint8_t { No, TimedOut, Cancelled };

  Execution(Engine& engine, const Module& module, HostState& state, budget::Consumer consumer);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  virtual ~Execution() = default;

  // Loop thread.
  void begin();
  void stop(Stop reason);
  // Waits until no worker has it and no task that it started on the loop is running.
  [[nodiscard]] io::Task<void> wait();

  // For HostCall, on the worker.
  [[nodiscard]] Engine& engine() const { return engine_; }
  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] HostState& state() const { return state_; }
  [[nodiscard]] bool is_stopped() const { return stop_.load() != Stop::No; }
  [[nodiscard]] Result<GuestMemory> memory(wasmtime_caller* caller);
  // Sets the error with which the execution fails once the returned trap has reached wasmtime's
  // caller. The first error counts.
  [[nodiscard]] wasm_trap_t* trap(const std::string& function, Error error);
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  // An error once the disk has failed to return a page of the guest's memory: nothing that the
  // guest does after that may have an effect.
  [[nodiscard]] Result<> readable() const;
  void leave() { has_left_ = true; }
  void begin_wait();
  void end_wait() { is_waiting_ = false; }
  void spawn_ask(std::move_only_function<io::Task<void>(std::stop_token)> task);
  // At most one call into the guest from a host function at a time: each takes a stack.
  [[nodiscard]] bool enter_guest_call() { return !std::exchange(is_in_guest_call_, true); }
  void exit_guest_call() { is_in_guest_call_ = false; }

 protected:
  // All of these run on the worker.

  // Starts the next call with call() or instantiate(); false when there is none. All calls before
  // have succeeded.
  [[nodiscard]] virtual Result<bool> next() = 0;
  // True when the guest has used up its time. Called while the guest runs.
  [[nodiscard]] virtual bool is_time_over() const = 0;
  [[nodiscard]] virtual std::string timeout_text() const = 0;
  // Called on the worker after the last call or a failure; `ended` as in RunReport::ended.
  virtual void conclude(Result<> ended) = 0;

  // A store with this module's limits and epochs, whose guest belongs to this execution.
  // LimitExceeded when the module's initial memory is larger than the limit.
  [[nodiscard]] Result<internal::StoreHandle> make_store(internal::GuestAccount& account);
  // Makes this execution the owner of the guest of `context`.
  void adopt(wasmtime_context_t* context);
  // `prepared` and `instance` must live until the next call of next().
  void instantiate(const wasmtime_instance_pre_t& prepared, wasmtime_instance_t& instance);
  // The same for an instance without a start function. It needs no stack, so it is complete when
  // this returns.
  [[nodiscard]] Result<> instantiate_at_once(const wasmtime_instance_pre_t& prepared,
                                             wasmtime_instance_t& instance);
  // The arguments' referents must live until the next call of next().
  void call(const wasmtime_func_t& function, std::span<const wasmtime_val_t> arguments,
            std::span<wasmtime_val_t> results);

  [[nodiscard]] wasmtime_context_t* context() const { return context_; }
  [[nodiscard]] const std::optional<wasmtime_memory_t>& memory_handle() const { return memory_; }
  void set_memory(const wasmtime_memory_t& memory);
  [[nodiscard]] GuestMemory memory_view() const;

  [[nodiscard]] bool has_left() const { return has_left_; }
  [[nodiscard]] bool has_timed_out() const { return stop_.load() == Stop::TimedOut; }
  // On the workers, so far.
  [[nodiscard]] Duration cpu_time() const;

  // The time until which the guest may wait for the present answer; then it is stopped.
  [[nodiscard]] virtual Instant wait_until() const = 0;
  // The time it has waited for answers so far.
  [[nodiscard]] Duration waited() const { return waited_.load(); }

 private:
  enum class Progress : std::uint8_t { Ended, Yielded, Waiting };

  static wasmtime_error_t* on_epoch(wasmtime_context_t* context, void* unused, std::uint64_t* ticks,
                                    wasmtime_update_deadline_kind_t* kind);

  // Any thread. A worker may already run it before this returns.
  void queue(internal::ReadyQueue::Place place);
  // Whether it has used more than a short run before the current slice.
  [[nodiscard]] bool is_long() const;

  // Worker.
  // Returns how long the step took, in nanoseconds of processor time.
  std::uint64_t step();
  Progress advance();
  [[nodiscard]] Result<> outcome();
  // False when there already is a reason to continue.
  [[nodiscard]] bool suspend();

  // Loop thread.
  void wake();
  void begin_ask(Instant until, std::move_only_function<io::Task<void>(std::stop_token)> task);
  [[nodiscard]] io::Task<void> run_ask(
      std::move_only_function<io::Task<void>(std::stop_token)> task);

  Engine& engine_;
  const Module& module_;
  HostState& state_;
  const budget::Consumer consumer_;

  // Worker.
  wasmtime_context_t* context_ = nullptr;
  std::optional<wasmtime_memory_t> memory_;
  internal::WatchedMemory watched_;
  wasm_trap_t* trap_ = nullptr;        // Written by wasmtime, owned by us.
  wasmtime_error_t* error_ = nullptr;  // The same.
  internal::FutureHandle future_;      // Refers to trap_ and error_.
  std::optional<Error> fault_;
  bool has_left_ = false;
  bool is_waiting_ = false;
  bool is_in_guest_call_ = false;
  internal::ReadyQueue* lane_ = nullptr;  // That it was pushed to last.
  Duration cpu_before_{};                 // Before the current slice.
  Duration slice_began_{};                // By the clock of the current worker's processor time.

  // Both sides.
  std::atomic<Stop> stop_ = Stop::No;
  std::atomic<Duration> waited_ = Duration::zero();
  std::mutex mutex_;
  bool is_suspended_ = false;  // No worker has it; the thread that wakes it clears this and queues
                               // it.
  bool is_woken_ = false;      // An answer arrived while a worker still had it.

  // Loop thread.
  io::OneShot<bool> done_;
  std::size_t asks_ = 0;  // Tasks that were started for the guest and have not ended.
  io::Event asks_ended_;
  std::stop_source stop_asks_;
  io::Loop::Timer deadline_timer_;  // Set while the guest waits; else epochs do it.
};

}  // namespace hangar::wasm
