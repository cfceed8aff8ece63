#include "wasm/engine.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/code_config.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/guest_account.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/resident_code.h"
#include "wasm/internal/watched_memory.h"
#include "wasm/limits.h"
#include "wasm/snapshot/memory_slots.h"
#include "wasm/snapshot/written_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <wasm.h>
#include <wasmtime/async.h>
#include <wasmtime/config.h>
#include <wasmtime/engine.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#if __has_feature(thread_sanitizer)
// Traps are synchronous signals. wasmtime's handler allocates to take a backtrace: that is
// intended, and safe, because no trap interrupts an allocation.
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "report_signal_unsafe=0";
}
#endif

// Defined in third_party/wasmtime/runtime.
extern "C" {
extern const bool hangar_wasmtime_has_own_heap;
// The sanitizers have to see wasmtime's allocations, too.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
const bool hangar_wasmtime_has_own_heap = false;
#else
const bool hangar_wasmtime_has_own_heap = true;
#endif
void hangar_wasmtime_trim_heap();
}

namespace hangar::wasm {

void trim_heaps() {
  ::malloc_trim(0);
  hangar_wasmtime_trim_heap();
}

namespace {

// The stack of host functions, below the guest's frames.
constexpr std::uint64_t kHostStackBytes = limits::kMiB;

// The second stack is for an answer that needs a call of the guest's allocator.
constexpr std::uint32_t kStacksPerRun = 2;

wasm_config_t* make_config() {
  wasm_config_t* const config = wasm_config_new();
  apply_code_config(config);
  wasmtime_config_max_wasm_stack_set(config, limits::kGuestStackBytesMax);
  wasmtime_config_async_stack_size_set(config, limits::kGuestStackBytesMax + kHostStackBytes);
  return config;
}

// wasmtime aborts the process if it cannot reserve the pool, so this tries first. Some containers
// limit address space.
bool can_reserve(std::uint64_t bytes) {
  void* const address =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address != MAP_FAILED && ::munmap(address, bytes) == 0;
}

internal::EngineHandle make_pooled(std::uint32_t runs_max) {
  // The size of memories and tables, and as much again for stacks and rounding.
  const std::uint64_t slot_bytes = kMemoryReservationBytes + 2 * kMemoryGuardBytes +
                                   limits::kGuestTableElementsMax * sizeof(void*);
  if (!can_reserve(runs_max * slot_bytes + 1024 * limits::kMiB)) return nullptr;

  wasm_config_t* const config = make_config();
  auto* const pool = wasmtime_pooling_allocation_config_new();
  wasmtime_pooling_allocation_config_total_core_instances_set(pool, runs_max);
  wasmtime_pooling_allocation_config_total_memories_set(pool, runs_max);
  wasmtime_pooling_allocation_config_total_tables_set(pool, runs_max);
  wasmtime_pooling_allocation_config_total_stacks_set(pool, kStacksPerRun * runs_max);
  wasmtime_pooling_allocation_config_max_memories_per_module_set(pool, 1);
  wasmtime_pooling_allocation_config_max_tables_per_module_set(pool, 1);
  wasmtime_pooling_allocation_config_max_memory_size_set(pool, kMemoryReservationBytes);
  wasmtime_pooling_allocation_config_table_elements_set(pool, limits::kGuestTableElementsMax);
  wasmtime_pooling_allocation_config_max_core_instance_size_set(pool, 16 * limits::kMiB);
  // A slot stays mapped for its module, which costs nothing, but keeps no pages. Resetting kept
  // pages would copy the whole image of the module, which is more than a guest writes to (Go: 6 MiB
  // against 2 MiB), and would help only when the same module comes next.
  wasmtime_pooling_allocation_config_max_unused_warm_slots_set(pool, runs_max);
  wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, 0);
  wasmtime_pooling_allocation_config_table_keep_resident_set(pool, 64 * limits::kKiB);
  wasmtime_pooling_allocation_strategy_set(config, pool);
  wasmtime_pooling_allocation_config_delete(pool);
  return internal::EngineHandle(wasm_engine_new_with_config(config));
}

// Modules of this engine have no data segments. wasmtime therefore makes no images, which our
// memories could not use; and the same native code serves all engines.
internal::EngineHandle make_sleepable(MemorySlots& slots) {
  wasm_config_t* const config = make_config();
  wasmtime_memory_creator_t creator = slots.creator();
  wasmtime_config_host_memory_creator_set(config, &creator);
  return internal::EngineHandle(wasm_engine_new_with_config(config));
}

}  // namespace

Ticker::Ticker(std::function<void()> tick)
    : tick_(std::move(tick)), thread_([this](const std::stop_token& stop) { work(stop); }) {}

Ticker::~Ticker() {
  HANGAR_ASSERT(running_count() == 0, "guests end before the engine does");
  thread_.request_stop();
  thread_.join();  // Before the members that the thread uses are destroyed.
}

void Ticker::begin() {
  {
    const std::scoped_lock lock(mutex_);
    if (++running_ > 1) return;
  }
  changed_.notify_one();
}

void Ticker::end() {
  const std::scoped_lock lock(mutex_);
  --running_;
}

std::size_t Ticker::running_count() const {
  const std::scoped_lock lock(mutex_);
  return running_;
}

void Ticker::work(const std::stop_token& stop) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return running_ > 0; })) return;
    }
    std::this_thread::sleep_for(kEpochTick);
    tick_();
  }
}

EngineParts::Native::Native(std::uint32_t runs_max)
    : pooled(make_pooled(runs_max)),
      on_demand(wasm_engine_new_with_config(make_config())),
      sleepable(make_sleepable(memory_slots)) {}

EngineParts::EngineParts(std::uint32_t runs_max) : native_(std::make_unique<Native>(runs_max)) {}

EngineParts::~EngineParts() = default;

Engine::Native::Native(io::Loop& loop, io::Workers& workers, const Options& options)
    : sleeping_code_kept(options.sleeping_code_kept),
      rates(options.rates),
      code_loads(loop),
      written_pages(
          options.scans_page_entries ? WrittenPages::Method::Entries : WrittenPages::Method::Scan,
          options.proc_files.pagemap),
      own_parts(options.parts == nullptr ? std::make_unique<const EngineParts>(options.runs_max)
                                         : nullptr),
      parts(options.parts == nullptr ? *own_parts : *options.parts),
      ticker([this] {
        const EngineParts::Native& engines = parts.native();
        if (engines.pooled != nullptr) wasmtime_engine_increment_epoch(engines.pooled.get());
        wasmtime_engine_increment_epoch(engines.on_demand.get());
        wasmtime_engine_increment_epoch(engines.sleepable.get());
      }),
      long_run_workers(loop, workers.thread_count(), io::Workers::Priority::Last),
      long_runs(long_run_workers),
      ready(workers),
      // A single namespace may use half of the pool.
      slots(loop, {.slots = options.runs_max}),
      code(limits::kFilePagesBytesMax,
           [statm = options.proc_files.statm] { return internal::resident_file_bytes(statm); }) {
  if (options.memory != nullptr) memory.emplace(loop, *options.memory);
  if (rates == nullptr) return;
  slots.brake(*rates);
  const auto charge = [to = rates](const budget::Tenant& tenant, Duration processor_time) {
    to->charge(tenant, static_cast<std::uint64_t>(processor_time.count()), io::Loop::now());
  };
  workers.set_on_work(charge);
  long_run_workers.set_on_work(charge);
}

Engine::Engine(io::Loop& loop, io::Workers& workers, Options options)
    : loop_(loop), workers_(workers), native_(std::make_unique<Native>(loop, workers, options)) {
  internal::WatchedMemory::handle_signals();
}

Engine::~Engine() {
  // The workers outlive the rates.
  if (native_->rates != nullptr) workers_.set_on_work(nullptr);
}

bool Engine::has_pool() const {
  return native_->parts.native().pooled != nullptr;
}

std::size_t Engine::running_count() const {
  return native_->ticker.running_count();
}

io::Task<Result<std::optional<budget::Reservation>>> Engine::reserve(
    budget::Consumer consumer, std::uint64_t memory_bytes, std::stop_token stop,
    std::function<void(const budget::Shortage&)> on_wait) {
  if (!native_->memory) co_return std::nullopt;
  const std::uint64_t bytes = memory_bytes + kInstanceBytes;
  co_return HANGAR_CO_TRY(co_await native_->memory->reserve(std::move(consumer), bytes,
                                                            std::move(stop), std::move(on_wait)));
}

const budget::Accounts* Engine::accounts() const {
  return native_->memory ? &native_->memory->accounts() : nullptr;
}

budget::ReservationQueue* Engine::memory() const {
  return native_->memory ? &*native_->memory : nullptr;
}

const io::Workers& Engine::long_run_workers() const {
  return native_->long_run_workers;
}

const EngineParts& Engine::parts() const {
  return native_->parts;
}

budget::Rates* Engine::rates() const {
  return native_->rates;
}

}  // namespace hangar::wasm
