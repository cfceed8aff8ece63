#include "wasm/run.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "io/cpu_time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/fault.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/host_functions_native.h"
#include "wasm/internal/run_state.h"
#include "wasm/module.h"

#include <fmt/format.h>
#include <wasmtime/async.h>
#include <wasmtime/error.h>
#include <wasmtime/extern.h>
#include <wasmtime/instance.h>
#include <wasmtime/memory.h>
#include <wasmtime/store.h>
#include <wasmtime/trap.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::wasm {

namespace {

constexpr std::string_view kMemoryName = "memory";

// Of processor time, before a guest makes room for others. Ordinary evaluations are over by then:
// were it shorter, all that wait would begin before the first has ended, each with its memory.
constexpr std::chrono::milliseconds kSlice{100};

}  // namespace

Run::Run(Engine& engine, const Module& module, const HostFunctions& functions, HostState& state,
         std::string entry, RunLimits limits)
    : engine_(engine),
      module_(module),
      functions_(functions),
      state_(state),
      entry_(std::move(entry)),
      limits_(limits),
      done_(engine.loop()),
      asks_ended_(engine.loop()) {}

void Run::begin() {
  engine_.native().ticker.begin();
  engine_.native().ready.push(ReadyQueue::Place::New, [this] { step(); });
}

void Run::stop(Stop reason) {
  {
    const std::scoped_lock lock(mutex_);
    if (is_stopped()) return;
    stop_ = reason;
  }
  stop_asks_.request_stop();
  wake();
}

io::Task<RunReport> Run::wait() {
  RunReport report = co_await done_.wait();
  // Tasks on the loop may still refer to what the caller keeps alive for them, and to this object.
  while (asks_ > 0) {
    const Result<> ended = co_await asks_ended_.wait({});
    HANGAR_ASSERT(ended.has_value(), "nobody can stop this wait");
  }
  co_return report;
}

Result<GuestMemory> Run::memory(wasmtime_caller* caller) {
  if (!memory_) {
    wasmtime_extern_t item;
    if (!wasmtime_caller_export_get(caller, kMemoryName.data(), kMemoryName.size(), &item)) {
      return fail(ErrorKind::GuestFault, "the module exports no memory");
    }
    if (item.kind != WASMTIME_EXTERN_MEMORY) {
      wasmtime_extern_delete(&item);
      return fail(ErrorKind::GuestFault, "the module's export memory is not a memory");
    }
    memory_ = item.of.memory;
  }
  return GuestMemory({reinterpret_cast<std::byte*>(wasmtime_memory_data(context_, &*memory_)),
                      wasmtime_memory_data_size(context_, &*memory_)});
}

wasm_trap_t* Run::trap(const std::string& function, Error error) {
  if (!fault_) {
    // Limits name themselves; what the guest did wrong needs the function that it called.
    fault_ =
        error.kind() == ErrorKind::GuestFault ? std::move(error).in(function) : std::move(error);
  }
  constexpr std::string_view kText = "ended by the host";
  return wasmtime_trap_new(kText.data(), kText.size());
}

void Run::begin_wait() {
  const std::scoped_lock lock(mutex_);
  is_waiting_ = true;
  is_woken_ = false;
}

void Run::spawn_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) {
  engine_.loop().post([this, task = std::move(task)]() mutable { begin_ask(std::move(task)); });
}

wasmtime_error_t* Run::on_epoch(wasmtime_context_t* /*context*/, void* self, std::uint64_t* ticks,
                                wasmtime_update_deadline_kind_t* kind) {
  Run& run = *static_cast<Run*>(self);
  if (io::Loop::now() >= run.deadline_) {
    const std::scoped_lock lock(run.mutex_);
    if (!run.is_stopped()) run.stop_ = Stop::TimedOut;
  }
  if (run.is_stopped()) return wasmtime_error_new("stopped");
  *ticks = 1;
  const bool is_over = io::thread_cpu_time() - run.slice_began_ >= kSlice &&
                       run.engine_.native().ready.is_contended();
  *kind = is_over ? WASMTIME_UPDATE_DEADLINE_YIELD : WASMTIME_UPDATE_DEADLINE_CONTINUE;
  return nullptr;
}

void Run::step() {
  slice_began_ = io::thread_cpu_time();
  const Progress progress = advance();
  if (progress == Progress::Ended) {
    report_.ended = outcome();
    finish();
  }
  report_.cpu_time += io::thread_cpu_time() - slice_began_;
  switch (progress) {
    case Progress::Ended: {
      engine_.native().ticker.end();
      // The loop may destroy this object from here on.
      engine_.loop().post([this] { done_.set(std::move(report_)); });
      return;
    }
    case Progress::Yielded:
      engine_.native().ready.push(ReadyQueue::Place::Yielded, [this] { step(); });
      return;
    case Progress::Waiting:
      if (!suspend()) engine_.native().ready.push(ReadyQueue::Place::Begun, [this] { step(); });
      return;
  }
}

Run::Progress Run::advance() {
  if (phase_ == Phase::New) {
    if (limits_.timeout) deadline_ = io::Loop::now() + *limits_.timeout;
    if (Result<> begun = instantiate(); !begun) {
      fault_ = std::move(begun).error();
      return Progress::Ended;
    }
    phase_ = Phase::Instantiating;
  }
  while (true) {
    if (!wasmtime_call_future_poll(future_.get())) {
      return is_waiting_ ? Progress::Waiting : Progress::Yielded;
    }
    future_.reset();
    if (trap_ != nullptr || error_ != nullptr || phase_ == Phase::Running) return Progress::Ended;
    if (Result<> begun = call_entry(); !begun) {
      fault_ = std::move(begun).error();
      return Progress::Ended;
    }
    phase_ = Phase::Running;
  }
}

Result<> Run::instantiate() {
  if (module_.memory_bytes_min() > limits_.memory_bytes_max) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the module has {} MiB of memory at its start, its limit is {} MiB",
                            module_.memory_bytes_min() / limits::kMiB,
                            limits_.memory_bytes_max / limits::kMiB));
  }
  Engine::Native& native = engine_.native();
  store_.reset(wasmtime_store_new(native.engine(module_.allocation()), this, nullptr));
  context_ = wasmtime_store_context(store_.get());
  wasmtime_store_limiter(store_.get(), static_cast<std::int64_t>(limits_.memory_bytes_max),
                         limits::kGuestTableElementsMax, 1, -1, 1);
  // Before anything of the guest runs: its start function and initialisation are bounded too.
  wasmtime_context_set_epoch_deadline(context_, 1);
  wasmtime_store_epoch_deadline_callback(store_.get(), &Run::on_epoch, this, nullptr);

  const wasmtime_linker_t* const linker = functions_.native().linker(module_.allocation());
  wasmtime_instance_pre_t* prepared = nullptr;
  if (const internal::ErrorHandle error(
          wasmtime_linker_instantiate_pre(linker, module_.native(), &prepared));
      error != nullptr) {
    return fail(ErrorKind::InvalidInput, internal::describe(*error));
  }
  prepared_.reset(prepared);
  future_.reset(wasmtime_instance_pre_instantiate_async(prepared_.get(), context_, &instance_,
                                                        &trap_, &error_));
  return {};
}

Result<> Run::call_entry() {
  wasmtime_extern_t item;
  if (wasmtime_instance_export_get(context_, &instance_, kMemoryName.data(), kMemoryName.size(),
                                   &item)) {
    if (item.kind == WASMTIME_EXTERN_MEMORY) memory_ = item.of.memory;
    wasmtime_extern_delete(&item);
  }
  const Export* const entry = module_.find_export(entry_);
  if (entry == nullptr || entry->signature != "() -> ()" ||
      !wasmtime_instance_export_get(context_, &instance_, entry_.data(), entry_.size(), &item)) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("the module exports no function {} that takes and returns nothing", entry_));
  }
  entry_function_ = item.of.func;
  future_.reset(wasmtime_func_call_async(context_, &entry_function_, nullptr, 0, nullptr, 0, &trap_,
                                         &error_));
  return {};
}

void Run::finish() {
  if (memory_) report_.memory_bytes = wasmtime_memory_data_size(context_, &*memory_);
  future_.reset();
  prepared_.reset();
  store_.reset();
}

Result<> Run::outcome() {
  const internal::TrapHandle trap(std::exchange(trap_, nullptr));
  const internal::ErrorHandle error(std::exchange(error_, nullptr));
  const std::string where = trap != nullptr    ? internal::describe(*trap)
                            : error != nullptr ? internal::describe(*error)
                                               : std::string();
  const bool has_failed = fault_ || trap != nullptr || error != nullptr;
  if (!has_failed || (has_left_ && trap == nullptr)) return {};
  if (stop_ == Stop::Cancelled) return fail(ErrorKind::Cancelled, "the run was stopped");
  if (stop_ == Stop::TimedOut) {
    report_.has_timed_out = true;
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("execution timeout ({}) exceeded{}{}",
                    to_go_duration(limits_.timeout.value_or(Duration::zero())),
                    where.starts_with("at ") ? "; " : "", where.starts_with("at ") ? where : ""));
  }
  if (fault_ && fault_->kind() == ErrorKind::GuestFault && where.starts_with("at ")) {
    return fail(ErrorKind::GuestFault, fault_->message() + "; " + where);
  }
  if (fault_) return std::unexpected(*std::move(fault_));
  if (trap != nullptr) return fail(ErrorKind::GuestFault, "wasm trap: " + where);
  // "memory minimum size of 1024 pages exceeds memory limits": the store's limits, before any of
  // the guest's code has run.
  const bool is_limit = where.find("exceeds memory limits") != std::string::npos ||
                        where.find("exceeds table limits") != std::string::npos;
  return fail(is_limit ? ErrorKind::LimitExceeded : ErrorKind::GuestFault,
              "cannot be instantiated: " + where);
}

bool Run::suspend() {
  const std::scoped_lock lock(mutex_);
  if (is_woken_ || is_stopped()) {
    is_woken_ = false;
    return false;
  }
  is_suspended_ = true;
  return true;
}

void Run::wake() {
  {
    const std::scoped_lock lock(mutex_);
    is_woken_ = true;
    if (!std::exchange(is_suspended_, false)) return;
  }
  engine_.native().ready.push(ReadyQueue::Place::Begun, [this] { step(); });
}

void Run::begin_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) {
  ++asks_;
  if (deadline_ != Instant::max()) {
    const Duration left = std::max(Duration::zero(), Duration(deadline_ - io::Loop::now()));
    deadline_timer_ = engine_.loop().after(left, [this] { stop(Stop::TimedOut); });
  }
  engine_.loop().spawn(run_ask(std::move(task)));
}

io::Task<void> Run::run_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) {
  co_await task(stop_asks_.get_token());
  deadline_timer_.cancel();
  wake();
  if (--asks_ == 0) asks_ended_.notify_all();
}

io::Task<RunReport> run(Engine& engine, std::shared_ptr<const Module> module,
                        const HostFunctions& functions, HostState& state, std::string entry,
                        RunLimits limits, std::stop_token stop) {
  const io::Semaphore::Slot slot = co_await engine.native().slots.acquire();
  if (stop.stop_requested()) {
    co_return RunReport{.ended = fail(ErrorKind::Cancelled, "the run was stopped")};
  }
  Run guest(engine, *module, functions, state, std::move(entry), limits);
  guest.begin();
  const std::stop_callback on_stop(stop, [&guest] { guest.stop(Run::Stop::Cancelled); });
  RunReport report = co_await guest.wait();
  engine.native().code.has_run(module);
  co_return report;
}

}  // namespace hangar::wasm
