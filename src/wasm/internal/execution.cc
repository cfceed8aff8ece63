#include "wasm/internal/execution.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/cpu_time.h"
#include "io/event.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/fault.h"
#include "wasm/internal/guest_account.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/thread_sanitizer.h"
#include "wasm/module.h"

#include <fmt/format.h>
#include <wasmtime/async.h>
#include <wasmtime/error.h>
#include <wasmtime/extern.h>
#include <wasmtime/func.h>
#include <wasmtime/instance.h>
#include <wasmtime/memory.h>
#include <wasmtime/store.h>
#include <wasmtime/trap.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
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

// The limit need not be a multiple of a MiB.
std::string size_text(std::uint64_t bytes) {
  if (bytes % limits::kMiB == 0) return fmt::format("{} MiB", bytes / limits::kMiB);
  if (bytes % limits::kKiB == 0) return fmt::format("{} KiB", bytes / limits::kKiB);
  return fmt::format("{} bytes", bytes);
}

}  // namespace

Execution::Execution(Engine& engine, const Module& module, HostState& state,
                     budget::Consumer consumer)
    : engine_(engine),
      module_(module),
      state_(state),
      consumer_(std::move(consumer)),
      done_(engine.loop()),
      asks_ended_(engine.loop()) {}

void Execution::queue(internal::ReadyQueue::Place place) {
  // Set first: as soon as it is pushed, another worker may run it.
  lane_ = is_long() ? &engine_.native().long_runs : &engine_.native().ready;
  lane_->push(consumer_, place, &module_, [this] { return step(); });
}

bool Execution::is_long() const {
  return cpu_before_ >= kShortRunMax;
}

void Execution::begin() {
  engine_.native().ticker.begin();
  queue(internal::ReadyQueue::Place::New);
}

// A running guest notices the stop at the next tick of the epoch (on_epoch). A waiting one is woken
// here. Its wait then fails, because every wait on the loop is over once the run is stopped.
void Execution::stop(Stop reason) {
  {
    const std::scoped_lock lock(mutex_);
    if (is_stopped()) return;
    stop_ = reason;
  }
  stop_asks_.request_stop();
  wake();
}

io::Task<void> Execution::wait() {
  co_await done_.wait();
  // Tasks on the loop may still refer to objects that the caller keeps alive, and to this object.
  while (asks_ > 0) {
    const Result<> ended = co_await asks_ended_.wait({});
    HANGAR_ASSERT(ended.has_value(), "nobody can stop this wait");
  }
}

Result<GuestMemory> Execution::memory(wasmtime_caller* caller) {
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
  return memory_view();
}

void Execution::set_memory(const wasmtime_memory_t& memory) {
  memory_ = memory;
  watched_.watch(memory_view().bytes());
}

Result<> Execution::readable() const {
  return watched_.readable();
}

GuestMemory Execution::memory_view() const {
  if (!memory_) return GuestMemory({});
  return GuestMemory({reinterpret_cast<std::byte*>(wasmtime_memory_data(context_, &*memory_)),
                      wasmtime_memory_data_size(context_, &*memory_)});
}

wasm_trap_t* Execution::trap(const std::string& function, Error error) {
  if (!fault_) {
    // An error about a limit names the limit; for a guest's mistake, the message needs the name of
    // the function that it called.
    fault_ =
        error.kind() == ErrorKind::GuestFault ? std::move(error).in(function) : std::move(error);
  }
  constexpr std::string_view kText = "ended by the host";
  return wasmtime_trap_new(kText.data(), kText.size());
}

void Execution::begin_wait() {
  const std::scoped_lock lock(mutex_);
  is_waiting_ = true;
  is_woken_ = false;
}

void Execution::spawn_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) {
  engine_.loop().post([this, until = wait_until(), task = std::move(task)]() mutable {
    begin_ask(until, std::move(task));
  });
}

Result<internal::StoreHandle> Execution::make_store(internal::GuestAccount& account) {
  if (module_.memory_bytes_min() > account.bytes_max()) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the module has {} of memory at its start, its limit is {}",
                            size_text(module_.memory_bytes_min()), size_text(account.bytes_max())));
  }
  internal::StoreHandle store(
      wasmtime_store_new(engine_.native().engine(module_.allocation()), this, nullptr));
  account.limit(*store);
  wasmtime_store_epoch_deadline_callback(store.get(), &Execution::on_epoch, nullptr, nullptr);
  adopt(wasmtime_store_context(store.get()));
  return store;
}

void Execution::adopt(wasmtime_context_t* context) {
  context_ = context;
  wasmtime_context_set_data(context, this);
  // Set before any code of the guest runs: its start function and initialisation are bounded, too.
  wasmtime_context_set_epoch_deadline(context, 1);
}

void Execution::instantiate(const wasmtime_instance_pre_t& prepared,
                            wasmtime_instance_t& instance) {
  future_.reset(
      wasmtime_instance_pre_instantiate_async(&prepared, context_, &instance, &trap_, &error_));
}

// The C API instantiates only asynchronously. Without a start function no guest code runs, so
// nothing can suspend the fiber, and a single poll completes it.
Result<> Execution::instantiate_at_once(const wasmtime_instance_pre_t& prepared,
                                        wasmtime_instance_t& instance) {
  internal::FutureHandle future(
      wasmtime_instance_pre_instantiate_async(&prepared, context_, &instance, &trap_, &error_));
  const bool is_done = wasmtime_call_future_poll(future.get());
  future.reset();
  if (trap_ != nullptr || error_ != nullptr) return outcome();
  if (!is_done) return fail(ErrorKind::Unavailable, "an instance could not be made at once");
  return {};
}

void Execution::call(const wasmtime_func_t& function, std::span<const wasmtime_val_t> arguments,
                     std::span<wasmtime_val_t> results) {
  future_.reset(wasmtime_func_call_async(context_, &function, arguments.data(), arguments.size(),
                                         results.data(), results.size(), &trap_, &error_));
}

Duration Execution::cpu_time() const {
  return cpu_before_ + (io::thread_cpu_time() - slice_began_);
}

// wasmtime calls this on the guest's fiber when the epoch has passed the store's deadline, which is
// always one tick ahead. An error ends the guest; YIELD returns from the poll in advance();
// CONTINUE lets it run on. Processor time decides and not the number of ticks, because the kernel
// may have run other threads in between.
wasmtime_error_t* Execution::on_epoch(wasmtime_context_t* context, void* /*unused*/,
                                      std::uint64_t* ticks, wasmtime_update_deadline_kind_t* kind) {
  const internal::OnGuestStack on_guest_stack;
  Execution& self = *static_cast<Execution*>(wasmtime_context_get_data(context));
  if (self.is_time_over()) {
    const std::scoped_lock lock(self.mutex_);
    if (!self.is_stopped()) self.stop_ = Stop::TimedOut;
  }
  if (self.is_stopped() || self.watched_.has_failed()) return wasmtime_error_new("stopped");
  *ticks = 1;
  const std::optional<Duration> slice = self.lane_->slice(self.consumer_.tenant);
  const bool becomes_long = !self.is_long() && self.cpu_time() >= kShortRunMax;
  const bool is_over =
      becomes_long || (slice && io::thread_cpu_time() - self.slice_began_ >= *slice);
  *kind = is_over ? WASMTIME_UPDATE_DEADLINE_YIELD : WASMTIME_UPDATE_DEADLINE_CONTINUE;
  return nullptr;
}

// Runs one slice of the guest. Afterwards it has ended, or it is queued again, or it waits and no
// worker has it. As soon as queue() or suspend() has passed it on, another worker may run it and
// the loop may destroy this object: nothing of it may be used after that.
std::uint64_t Execution::step() {
  const Duration began = io::thread_cpu_time();
  slice_began_ = began;
  // Uses no member: the object may be destroyed by then.
  const auto took = [began] {
    return static_cast<std::uint64_t>((io::thread_cpu_time() - began).count());
  };
  Progress progress = Progress::Ended;
  {
    if (memory_) watched_.watch(memory_view().bytes());  // It may have grown.
    const internal::WatchedMemory::Use use(watched_);
    progress = advance();
    if (progress == Progress::Ended) conclude(outcome());
  }
  if (progress == Progress::Ended) {
    engine_.native().ticker.end();
    // From here on the loop may destroy this object.
    engine_.loop().post([this] { done_.set(true); });
    return took();
  }
  cpu_before_ = cpu_time();
  switch (progress) {
    case Progress::Ended:
      break;
    case Progress::Yielded:
      queue(internal::ReadyQueue::Place::Yielded);
      break;
    case Progress::Waiting:
      if (!suspend()) queue(internal::ReadyQueue::Place::Begun);
      break;
  }
  return took();
}

// Polling the future runs the guest on its fiber until the call has finished, a host function
// waits, or on_epoch() yields. In the last two cases the poll returns false, and the fiber keeps
// the guest's frames until the next poll, on whichever worker. is_waiting_, which the host function
// has set, tells the two apart.
Execution::Progress Execution::advance() {
  while (true) {
    if (future_ != nullptr) {
      if (!wasmtime_call_future_poll(future_.get())) {
        return is_waiting_ ? Progress::Waiting : Progress::Yielded;
      }
      future_.reset();
      if (trap_ != nullptr || error_ != nullptr) return Progress::Ended;
    }
    if (watched_.has_failed()) return Progress::Ended;
    const Result<bool> has_next = next();
    if (!has_next) fault_ = has_next.error();
    if (!has_next || !*has_next) return Progress::Ended;
  }
}

// The order of the tests matters. A stopped guest also has the error of on_epoch(), which says less
// than why it was stopped; and the error of a host function says more than the trap by which it
// ended the guest.
Result<> Execution::outcome() {
  const internal::TrapHandle trap(std::exchange(trap_, nullptr));
  const internal::ErrorHandle error(std::exchange(error_, nullptr));
  const std::string where = trap != nullptr    ? internal::describe(*trap)
                            : error != nullptr ? internal::describe(*error)
                                               : std::string();
  HANGAR_TRY(watched_.readable());
  const bool has_failed = fault_ || trap != nullptr || error != nullptr;
  if (!has_failed || (has_left_ && trap == nullptr)) return {};
  if (stop_ == Stop::Cancelled) return fail(ErrorKind::Cancelled, "the run was stopped");
  if (stop_ == Stop::TimedOut) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("execution timeout ({}) exceeded{}{}", timeout_text(),
                    where.starts_with("at ") ? "; " : "", where.starts_with("at ") ? where : ""));
  }
  if (fault_ && fault_->kind() == ErrorKind::GuestFault && where.starts_with("at ")) {
    return fail(ErrorKind::GuestFault, fault_->message() + "; " + where);
  }
  if (fault_) return std::unexpected(*std::move(fault_));
  if (trap != nullptr) return fail(ErrorKind::GuestFault, "wasm trap: " + where);
  // "memory minimum size of 1024 pages exceeds memory limits": the limits of the store, checked
  // before any code of the guest has run.
  const bool is_limit = where.find("exceeds memory limits") != std::string::npos ||
                        where.find("exceeds table limits") != std::string::npos;
  return fail(is_limit ? ErrorKind::LimitExceeded : ErrorKind::GuestFault,
              "cannot be instantiated: " + where);
}

// An answer may arrive between the poll that did not find it and this call. wake() then found no
// suspended guest to queue, and has set is_woken_; so the caller queues the guest instead. Both
// decide under the mutex: no answer is lost, and the guest is queued once.
bool Execution::suspend() {
  const std::scoped_lock lock(mutex_);
  if (is_woken_ || is_stopped()) {
    is_woken_ = false;
    return false;
  }
  is_suspended_ = true;
  return true;
}

void Execution::wake() {
  {
    const std::scoped_lock lock(mutex_);
    is_woken_ = true;
    if (!std::exchange(is_suspended_, false)) return;
  }
  queue(internal::ReadyQueue::Place::Begun);
}

void Execution::begin_ask(Instant until,
                          std::move_only_function<io::Task<void>(std::stop_token)> task) {
  ++asks_;
  if (until != Instant::max()) {
    const Duration left = std::max(Duration::zero(), Duration(until - io::Loop::now()));
    deadline_timer_ = engine_.loop().after(left, [this, left] {
      waited_ = waited_.load() + left;  // Set first: the guest's error depends on it.
      stop(Stop::TimedOut);
    });
  }
  engine_.loop().spawn(run_ask(std::move(task)));
}

io::Task<void> Execution::run_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) {
  const Instant began = io::Loop::now();
  // After an exception the guest gets no answer, so the run itself must end.
  const Result<> done = co_await io::contained(task(stop_asks_.get_token()));
  if (!done) stop(Stop::Cancelled);
  if (!is_stopped()) waited_ = waited_.load() + (io::Loop::now() - began);
  deadline_timer_.cancel();
  wake();
  if (--asks_ == 0) asks_ended_.notify_all();
}

}  // namespace hangar::wasm
