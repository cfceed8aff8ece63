#include "wasm/code_cache.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/beneficiaries.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/compiler_process.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
#include "wasm/internal/overseer.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/private_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

namespace hangar::wasm {

namespace {

// Cheap checks before a process is started.
Result<> check(const Digest& digest, const std::string& wasm_bytes) {
  const auto bytes = std::as_bytes(std::span(wasm_bytes));
  std::ignore = HANGAR_TRY(read_module_header(bytes));
  if (Digest::of(bytes) != digest) {
    return fail(ErrorKind::InvalidInput, "the module is not the one its digest names");
  }
  return {};
}

// Blocking.
Result<PrivateFile> checked_file(const std::filesystem::path& directory, const Digest& digest,
                                 const std::string& wasm_bytes) {
  HANGAR_TRY(check(digest, wasm_bytes));
  PrivateFile file = HANGAR_TRY(PrivateFile::open(directory));
  HANGAR_TRY(file.write(0, std::as_bytes(std::span(wasm_bytes))));
  return file;
}

// Whether a compiler could make what prebuilt code failed to give.
bool may_be_compiled(const Error& error) {
  return error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::Denied ||
         error.kind() == ErrorKind::Corrupt;
}

}  // namespace

// The right to compile one module, and its cost: nanoseconds of processor time or of a wait for
// memory. Both are charged to the namespace as they pass.
class CodeCache::Turn {
 public:
  // `rates`: null, or charged with the processor time of compiling.
  Turn(budget::FairSlots::Slot slot, std::chrono::nanoseconds processor_max,
       std::chrono::nanoseconds memory_wait_max, budget::Rates* rates)
      : slot_(std::move(slot)),
        processor_max_(processor_max),
        memory_wait_max_(memory_wait_max),
        rates_(rates) {}

  [[nodiscard]] const budget::Consumer& consumer() const { return slot_.consumer(); }
  // `used`, `waited`: the totals so far.
  bool may_compute(std::chrono::nanoseconds used) {
    const std::uint64_t more = charge(used, computed_);
    if (rates_ != nullptr) rates_->charge(slot_.consumer().tenant, more, io::Loop::now());
    return used < processor_max_ || !slot_.is_ahead();
  }
  bool may_wait(std::chrono::nanoseconds waited) {
    (void)charge(waited, waited_);
    return waited < memory_wait_max_ || !slot_.is_ahead();
  }

 private:
  // Returns what was charged.
  std::uint64_t charge(std::chrono::nanoseconds now, std::chrono::nanoseconds& before) {
    if (now <= before) return 0;
    const auto more = static_cast<std::uint64_t>((now - before).count());
    slot_.charge(more);
    before = now;
    return more;
  }

  budget::FairSlots::Slot slot_;
  const std::chrono::nanoseconds processor_max_;
  const std::chrono::nanoseconds memory_wait_max_;
  budget::Rates* const rates_;
  std::chrono::nanoseconds computed_{0};
  std::chrono::nanoseconds waited_{0};
};

CodeCache::CodeCache(Engine& engine, Options options)
    : engine_(engine),
      options_(std::move(options)),
      loading_(engine.loop()),
      waiting_({.host_bytes_max = options_.all_waiting_bytes_max,
                .tenant_bytes_max = options_.waiting_bytes_max}),
      small_(engine.loop(),
             {.slots = kSmallCompilationsMax, .waiting_per_tenant_max = kCompilationsWaitingMax}),
      large_(engine.loop(),
             {.slots = kLargeCompilationsMax, .waiting_per_tenant_max = kCompilationsWaitingMax}),
      loads_ended_(engine.loop()) {
  if (options_.charges == nullptr) return;
  options_.charges->set_remover(
      budget::CacheCharges::Shelf::Code,
      [directory = options_.directory, charges = options_.charges](const std::string& key) {
        internal::remove_unused(directory, key, *charges);
      });
}

CodeCache::~CodeCache() {
  HANGAR_ASSERT(load_count_ == 0, "loads end before their cache does: stop() it");
}

Result<> CodeCache::open() {
  HANGAR_TRY(io::make_private_directory(options_.directory));
  internal::remove_leftovers(options_.directory);
  if (options_.seal) {
    HANGAR_TRY(io::make_private_directory(options_.seal->private_directory));
    internal::remove_leftovers(options_.seal->private_directory);
  }
  return {};
}

bool CodeCache::has(const Digest& digest) const {
  const auto live = live_.lower_bound({digest, Module::Allocation::Pooled});
  if (live != live_.end() && live->first.first == digest && !live->second.expired()) return true;
  const auto entry = internal::find_entry(options_.directory, internal::key_of(digest));
  return entry && is_trusted(*entry);
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load(
    Digest digest, std::shared_ptr<const std::string> wasm_bytes, std::stop_token stop,
    Module::Allocation allocation, budget::Beneficiaries beneficiaries) {
  ++load_count_;
  Loaded loaded = co_await load_shared({digest, allocation}, std::move(wasm_bytes), std::move(stop),
                                       std::move(beneficiaries));
  if (--load_count_ == 0) loads_ended_.notify_all();
  co_return loaded;
}

io::Task<Result<std::shared_ptr<const void>>> CodeCache::charge(Digest digest,
                                                                std::uint64_t image_bytes,
                                                                budget::Consumer consumer) {
  if (options_.charges == nullptr) co_return nullptr;
  co_return co_await engine_.workers().run(
      consumer,
      [this, digest, image_bytes,
       tenant = consumer.tenant]() -> Result<std::shared_ptr<const void>> {
        return internal::charge(*options_.charges, options_.directory, digest, image_bytes, tenant);
      });
}

Result<> CodeCache::check_disk(const std::vector<budget::Consumer>& consumers,
                               std::uint64_t code_bytes) const {
  if (options_.charges == nullptr) return {};
  Result<> checked;
  for (const budget::Consumer& consumer : consumers) {
    const auto fits = options_.charges->check(consumer.tenant, code_bytes);
    if (fits) return {};
    if (checked) checked = std::unexpected(budget::too_little_disk(fits.error()));
  }
  return checked;
}

Result<> CodeCache::check_refused(const Digest& digest,
                                  const budget::Beneficiaries& beneficiaries) const {
  const auto refused = refused_bytes_.find(digest);
  if (refused == refused_bytes_.end()) return {};
  return check_disk(beneficiaries.all(), refused->second);
}

io::Task<void> CodeCache::stop() {
  stop_.request_stop();
  while (load_count_ > 0) {
    const Result<> ended = co_await loads_ended_.wait({});
    HANGAR_ASSERT(ended.has_value(), "nobody can stop this wait");
  }
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load_shared(
    Key key, std::shared_ptr<const std::string> wasm_bytes, std::stop_token caller_stop,
    budget::Beneficiaries beneficiaries) {
  // Requested by the caller, or by stop() for all loads.
  std::stop_source stop;
  const std::stop_callback on_caller(caller_stop, [&stop] { stop.request_stop(); });
  const std::stop_callback on_all(stop_.get_token(), [&stop] { stop.request_stop(); });
  if (auto module = find_live(key)) co_return module;
  // If the task that has the turn fails, the next one tries again: with other bytes, and with
  // another reason to stop.
  const budget::SharedTurns<Key>::Turn turn =
      HANGAR_CO_TRY(co_await loading_.take(key, std::move(beneficiaries), stop.get_token()));
  if (auto module = find_live(key)) co_return module;
  // The stop may have been requested between the end of the turn before and this one.
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopped");
  Loaded loaded =
      co_await load_alone(key, std::move(wasm_bytes), stop.get_token(), turn.beneficiaries());
  std::erase_if(live_, [](const auto& entry) { return entry.second.expired(); });
  if (loaded && key.second != Module::Allocation::Sleepable) live_[key] = *loaded;
  co_return loaded;
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load_alone(
    Key key, std::shared_ptr<const std::string> wasm_bytes, std::stop_token stop,
    budget::Beneficiaries beneficiaries) {
  Loaded cached = co_await load_cached(key, beneficiaries);
  const bool is_missing = !cached && (cached.error().kind() == ErrorKind::NotFound ||
                                      cached.error().kind() == ErrorKind::Corrupt);
  if (!is_missing) co_return cached;
  if (options_.prebuilt != nullptr) {
    Loaded prebuilt = co_await load_prebuilt(key, beneficiaries);
    if (prebuilt) co_return prebuilt;
    if (options_.compile_program.empty()) {
      if (!may_be_compiled(prebuilt.error())) co_return prebuilt;
      co_return fail(ErrorKind::Unavailable,
                     fmt::format("this host has no compiler: {}", prebuilt.error().message()));
    }
  }
  if (wasm_bytes == nullptr) {
    co_return fail(ErrorKind::NotFound, "the module's native code is not cached");
  }
  HANGAR_CO_TRY(
      co_await compile_entry(key.first, std::move(wasm_bytes), std::move(stop), beneficiaries));
  co_return co_await load_cached(key, std::move(beneficiaries));
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load_cached(
    Key key, budget::Beneficiaries beneficiaries) {
  co_return co_await engine_.workers().run_for_any(beneficiaries.all(), [this, key]() -> Loaded {
    const auto& [digest, allocation] = key;
    const auto entry = internal::find_entry(options_.directory, internal::key_of(digest));
    if (!entry) return fail(ErrorKind::NotFound, "the module's native code is not cached");
    if (!is_trusted(*entry)) {
      std::error_code ignored;  // The next caller tries again.
      std::filesystem::remove(*entry, ignored);
      return fail(ErrorKind::NotFound, "the builder of the native code is not trusted any more");
    }
    return internal::load_entry(engine_, digest, allocation, *entry, options_.seal.get());
  });
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load_prebuilt(
    Key key, budget::Beneficiaries beneficiaries) {
  HANGAR_CO_TRY(check_refused(key.first, beneficiaries));
  const std::filesystem::path temporary = internal::temporary_name(private_directory());
  std::string builder = HANGAR_CO_TRY(co_await engine_.workers().run_for_any(
      beneficiaries.all(), [this, temporary, digest = key.first]() -> Result<std::string> {
        HANGAR_TRY(io::make_private_directory(private_directory()));
        Result<std::string> done =
            options_.prebuilt->copy_to(temporary, digest, options_.compiled_bytes_max);
        std::error_code ignored;
        if (!done) std::filesystem::remove(temporary, ignored);
        return done;
      }));
  HANGAR_CO_TRY(co_await keep(key.first, temporary, std::move(builder), beneficiaries));
  co_return co_await load_cached(key, std::move(beneficiaries));
}

io::Task<Result<>> CodeCache::compile_entry(Digest digest,
                                            std::shared_ptr<const std::string> wasm_bytes,
                                            std::stop_token stop,
                                            budget::Beneficiaries beneficiaries) {
  const std::size_t size = wasm_bytes->size();
  HANGAR_CO_TRY(check_refused(digest, beneficiaries));
  const auto room = waiting_.reserve(beneficiaries.first(), size);
  if (!room) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("the compilation queue is full: {}", to_text(room.error())));
  }
  // A waiting module is a file; none of its bytes are in memory.
  PrivateFile input = HANGAR_CO_TRY(co_await engine_.workers().run_for_any(
      beneficiaries.all(),
      [directory = private_directory(), digest, bytes = std::move(wasm_bytes)] {
        return checked_file(directory, digest, *bytes);
      }));
  budget::FairSlots& slots = size <= kSmallModuleBytesMax ? small_ : large_;
  budget::FairSlots::Slot slot = HANGAR_CO_TRY(co_await beneficiaries.acquire(
      slots, {.rank = static_cast<std::uint32_t>(std::bit_width(size))}, stop));
  Turn turn(std::move(slot), options_.turn_min + size / limits::kMiB * options_.turn_per_mib,
            options_.memory_wait_max, engine_.rates());
  co_return co_await compile_in_turn(digest, std::move(input), turn, size, std::move(stop),
                                     std::move(beneficiaries));
}

io::Task<Result<>> CodeCache::compile_in_turn(Digest digest, PrivateFile input, Turn& turn,
                                              std::uint64_t module_bytes, std::stop_token stop,
                                              budget::Beneficiaries beneficiaries) {
  const std::uint64_t memory_bytes = compiler_memory_bytes(module_bytes);
  std::optional<budget::Reservation> memory =
      HANGAR_CO_TRY(co_await reserve_memory(turn, memory_bytes, stop));
  const std::filesystem::path temporary = internal::temporary_name(private_directory());
  CompileJob job{.program = options_.compile_program,
                 .input = std::move(input),
                 .output = temporary,
                 .memory_bytes = memory_bytes,
                 .output_bytes = options_.compiled_bytes_max,
                 .deadline = options_.compile_deadline,
                 .may_go_on = [&turn](auto used) { return turn.may_compute(used); },
                 .asks_every = options_.turn_step};
  // Others wait for the slot, so this work does not queue behind the tenant's other work. The turn
  // bounds it.
  const budget::Consumer host = budget::Consumer::of_host("compile");
  const Result<> done =
      co_await compile(engine_.loop(), engine_.workers(), host, std::move(job), stop);
  memory.reset();
  if (!done) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    co_return done;
  }
  ++compiled_count_;
  co_return co_await keep(digest, temporary, {}, std::move(beneficiaries));
}

io::Task<Result<>> CodeCache::keep(Digest digest, std::filesystem::path temporary,
                                   std::string builder, budget::Beneficiaries beneficiaries) {
  Result<> done;
  std::error_code error;
  const std::uint64_t code_bytes = std::filesystem::file_size(temporary, error);
  if (!error) done = check_disk(beneficiaries.all(), code_bytes);
  if (!done) {
    if (refused_bytes_.size() >= limits::kRefusedCodeMax) refused_bytes_.clear();
    refused_bytes_[digest] = code_bytes;
  }
  if (done) {
    // Without this, code that was paid for could wait behind the tenant's other work.
    const budget::Consumer host = budget::Consumer::of_host("compile");
    done = co_await engine_.workers().run(
        host, [this, temporary, key = internal::key_of(digest), builder = std::move(builder)] {
          // Somebody may have removed it, because a cache may be removed.
          Result<> published = io::make_private_directory(options_.directory);
          if (published) {
            published =
                internal::publish(temporary, options_.directory, key, builder, options_.seal.get());
          }
          if (published) {
            internal::evict(options_.directory, options_.bytes_max, key, options_.charges);
          }
          return published;
        });
  }
  if (!done) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
  }
  co_return done;
}

// Reserved for the host: everyone who has the module shares the code, and the turns decide whose
// module is compiled. std::nullopt: there are no accounts.
io::Task<Result<std::optional<budget::Reservation>>> CodeCache::reserve_memory(
    Turn& turn, std::uint64_t bytes, std::stop_token stop) {
  budget::ReservationQueue* const queue = engine_.memory();
  if (queue == nullptr) co_return std::nullopt;
  std::stop_source ends;
  const std::stop_callback on_stop(stop, [&ends] { ends.request_stop(); });
  const Instant since = io::Loop::now();
  const internal::Overseer overseer(
      engine_.loop(), options_.turn_step,
      [&turn, since] { return turn.may_wait(io::Loop::now() - since); },
      [&ends] { ends.request_stop(); });
  Result<budget::Reservation> memory = co_await queue->reserve(
      {.tenant = budget::Tenant::host(), .name = "compile"}, bytes, ends.get_token());
  if (!memory && overseer.has_ended_it() && !stop.stop_requested()) {
    co_return fail(ErrorKind::Unavailable,
                   fmt::format("could not get {} of memory for compiling in time: modules of "
                               "other namespaces are waiting. hangar retries",
                               budget::size_text(bytes)));
  }
  if (!memory) co_return std::unexpected(std::move(memory).error());
  co_return std::optional(*std::move(memory));
}

// How much memory a module needs is unknown beforehand, so this is an estimate. It leaves guests at
// least a quarter of the budget.
std::uint64_t CodeCache::compiler_memory_bytes(std::uint64_t module_bytes) const {
  const std::uint64_t wanted =
      limits::kCompileMemoryBytesMin + limits::kCompileMemoryPerByte * module_bytes;
  const budget::Accounts* const accounts = engine_.accounts();
  const std::uint64_t all =
      accounts != nullptr ? accounts->limits().host_bytes_max : budget::Accounts::kUnlimited;
  return std::min({wanted, limits::kCompileMemoryBytesMax, all - all / 4});
}

bool CodeCache::is_trusted(const std::filesystem::path& entry) const {
  const std::string builder = internal::builder_of(entry);
  return builder.empty() || (options_.prebuilt != nullptr && options_.prebuilt->trusts(builder));
}

const std::filesystem::path& CodeCache::private_directory() const {
  return options_.seal ? options_.seal->private_directory : options_.directory;
}

std::shared_ptr<const Module> CodeCache::find_live(const Key& key) {
  const auto found = live_.find(key);
  if (found == live_.end()) return nullptr;
  auto module = found->second.lock();
  if (module == nullptr) live_.erase(found);
  return module;
}

}  // namespace hangar::wasm
