#include "wasm/instance.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "io/cpu_time.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/execution.h"
#include "wasm/internal/guest_account.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/host_functions_native.h"
#include "wasm/internal/watched_memory.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/checkpoint_native.h"
#include "wasm/snapshot/memory_slots.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/rewrite.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleepable_native.h"
#include "wasm/snapshot/sleeping_instance.h"
#include "wasm/snapshot/snapshot.h"
#include "wasm/snapshot/snapshots.h"
#include "wasm/snapshot/written_pages.h"

#include <fmt/format.h>
#include <wasmtime/extern.h>
#include <wasmtime/func.h>
#include <wasmtime/global.h>
#include <wasmtime/instance.h>
#include <wasmtime/memory.h>
#include <wasmtime/store.h>
#include <wasmtime/val.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

// The state of a guest that is in memory.
struct Resident {
  Resident(std::uint64_t memory_bytes_max, std::optional<budget::Reservation> reservation,
           AskMemory ask_memory)
      : account(memory_bytes_max, std::move(reservation), std::move(ask_memory)) {}

  internal::GuestAccount account;
  // Over the image; null without one. Its pages may be reused when it ends, so the store, whose
  // memory shows them, ends first.
  std::unique_ptr<PageLayer> layer;
  internal::StoreHandle store;
  wasmtime_context_t* context = nullptr;
  wasmtime_instance_t instance{};
  std::optional<wasmtime_memory_t> memory;
  std::vector<wasmtime_global_t> globals;
  // The initial content of the memory: the first `image_bytes` of the image, then zeros. Null when
  // the module cannot sleep.
  std::shared_ptr<const BaseImage> image;
  std::uint64_t image_bytes = 0;
  // How long it slept before it was resumed, if it was and that is known.
  std::optional<Duration> slept;

  [[nodiscard]] std::span<std::byte> memory_bytes() const {
    if (!memory) return {};
    return {reinterpret_cast<std::byte*>(wasmtime_memory_data(context, &*memory)),
            wasmtime_memory_data_size(context, &*memory)};
  }
  // Where the memory may differ from its image.
  [[nodiscard]] PageRanges changed(const PageRanges& written) const {
    return layer == nullptr ? written : united(written, layer->pages());
  }
};

std::uint64_t mapped_bytes(const BaseImage& image, std::uint64_t memory_bytes) {
  return std::min(image.file_bytes(), memory_bytes);
}

// True when all pages that were never written show `image`. Not so when the memory has grown over a
// part of the image that it was too small for.
bool shows(const Resident& resident, const BaseImage& image) {
  return resident.image.get() == &image &&
         resident.image_bytes == mapped_bytes(image, resident.memory_bytes().size());
}

// The pages among `candidates` in which `resident` differs from a fresh mapping of `image`.
PageRanges difference_among(const PageRanges& candidates, const Resident& resident,
                            const BaseImage& image) {
  const std::span<const std::byte> memory = resident.memory_bytes();
  const auto pages = static_cast<std::uint32_t>(memory.size() / kPageBytes);
  PageRanges result;
  for (const PageRange& range : candidates) {
    for (std::uint32_t page = range.first; page < std::min(range.end(), pages); ++page) {
      const std::byte* const bytes = memory.data() + std::size_t{page} * kPageBytes;
      if (std::memcmp(bytes, image.page(page), kPageBytes) != 0) append_page(result, page);
    }
  }
  return result;
}

// All such pages. `written`: the pages written since its memory was mapped. If that was from
// another image, the data pages of both images may differ as well.
PageRanges difference(const Resident& resident, const PageRanges& written, const BaseImage& image) {
  const PageRanges changed = resident.changed(written);
  if (shows(resident, image)) return difference_among(changed, resident, image);
  return difference_among(united(changed, united(resident.image->data_pages(), image.data_pages())),
                          resident, image);
}

void exclusive_or(std::span<std::byte> into, const std::byte* left, const std::byte* right) {
  for (std::size_t index = 0; index < kPageBytes; ++index)
    into[index] = left[index] ^ right[index];
}

static_assert(sizeof(wasmtime_valunion_t) == sizeof(GlobalValue));

GlobalValue value_of(wasmtime_context_t* context, const wasmtime_global_t& global) {
  wasmtime_val_t value{};
  wasmtime_global_get(context, &global, &value);
  const std::size_t size = value.kind == WASMTIME_V128                                ? 16
                           : value.kind == WASMTIME_I64 || value.kind == WASMTIME_F64 ? 8
                                                                                      : 4;
  GlobalValue bytes{};
  std::memcpy(bytes.data(), &value.of, size);
  return bytes;
}

Result<> set_value(wasmtime_context_t* context, const wasmtime_global_t& global,
                   const GlobalValue& bytes) {
  wasmtime_val_t value{};
  wasmtime_global_get(context, &global, &value);  // Only for its type.
  std::memcpy(&value.of, bytes.data(), bytes.size());
  const internal::ErrorHandle error(wasmtime_global_set(context, &global, &value));
  if (error != nullptr) return fail(ErrorKind::Unavailable, "a global cannot be set");
  return {};
}

// Parses "(i32, i64) -> (i64)"; std::nullopt when there are other types.
struct CallTypes {
  std::vector<wasmtime_valkind_t> parameters;
  std::optional<wasmtime_valkind_t> result;
};
std::optional<CallTypes> call_types(std::string_view signature) {
  const auto read_list = [&signature](std::vector<wasmtime_valkind_t>& into) {
    if (!signature.starts_with('(')) return false;
    signature.remove_prefix(1);
    while (!signature.starts_with(')')) {
      if (signature.starts_with("i32")) {
        into.push_back(WASMTIME_I32);
      } else if (signature.starts_with("i64")) {
        into.push_back(WASMTIME_I64);
      } else {
        return false;
      }
      signature.remove_prefix(3);
      if (signature.starts_with(", ")) signature.remove_prefix(2);
    }
    signature.remove_prefix(1);
    return true;
  };
  constexpr std::string_view kArrow = " -> ";
  CallTypes types;
  std::vector<wasmtime_valkind_t> results;
  if (!read_list(types.parameters) || !signature.starts_with(kArrow)) return std::nullopt;
  signature.remove_prefix(kArrow.size());
  if (!read_list(results) || results.size() > 1) return std::nullopt;
  if (!results.empty()) types.result = results.front();
  return types;
}

}  // namespace

struct Instance::Native {
  Engine& engine;
  const std::shared_ptr<const SleepableModule> module;
  const HostFunctions& functions;
  HostState* state;  // Null between turns that each bring their own.
  const std::uint64_t memory_bytes_max;
  const std::shared_ptr<const Checkpoint> beginning;  // Null: starts as the module does.
  // If set, the instance is reset to `beginning` after each turn that has written to at most this
  // much memory. std::nullopt: the instance keeps its state.
  const std::optional<std::uint64_t> kept_bytes_max;

  // Held while the guest is in memory.
  std::shared_ptr<const Module> code;
  // For the next instance that is made.
  std::optional<budget::Reservation> provided;
  AskMemory ask_memory = {};
  // At most one is set; before the first turn neither is.
  std::unique_ptr<Resident> resident;
  std::optional<SleepingInstance::Rest> asleep;
  bool is_lost = false;
  bool is_busy = false;
  // Read on the loop while a worker has the other members.
  std::atomic<std::uint64_t> resident_bytes = 0;
  std::atomic<std::uint64_t> disk_bytes = 0;

  // Worker.
  // Does `work`, which reads the guest's memory. If the disk does not return that, the instance is
  // lost, and so is what the work has made of it.
  template <class Made>
  [[nodiscard]] Result<Made> read_memory_for(std::move_only_function<Result<Made>()> work);
  [[nodiscard]] Result<> put_to_sleep(Snapshots& store, const budget::Tenant& tenant);
  [[nodiscard]] Result<bool> rest_on_layer(Snapshots& store, const budget::Tenant& tenant,
                                           const PageRanges& written, std::uint64_t beside_max);
  // The guest is not needed any more.
  void fall_asleep(SleepingInstance::Rest rest);
  [[nodiscard]] Result<std::shared_ptr<const Checkpoint>> make_checkpoint() const;
  void measure() {
    if (resident == nullptr) {
      resident_bytes = 0;
      return;
    }
    const PageRanges written = engine.native().written_pages.find(resident->memory_bytes());
    // Owners tell by it whether the guest is in memory, which may show only files.
    resident_bytes = std::max<std::uint64_t>(
        kPageBytes, resident->account.table_bytes() + kPageBytes * page_count(written));
  }
  // Resets the guest to its checkpoint after a turn. False when that is impossible, or costs too
  // much.
  [[nodiscard]] bool go_back();
  // Any thread that has exclusive access.
  void let_go() {
    resident.reset();
    resident_bytes = 0;
  }
  void lose() {
    is_lost = true;
    let_go();
    forget_snapshot();
  }
  // Loop thread.
  [[nodiscard]] io::Task<Result<>> hold_code(budget::Consumer whose) {
    if (code != nullptr) co_return Result<>();
    code = HANGAR_CO_TRY(co_await module->native().acquire_code(std::move(whose)));
    module->native().on_code_held();
    co_return Result<>();
  }
  void forget_code() {
    if (resident != nullptr || code == nullptr) return;
    code.reset();
    module->native().on_code_released();
  }
  [[nodiscard]] std::uint64_t memory_bytes_needed() const {
    if (resident != nullptr) return 0;
    if (asleep) return asleep->memory_bytes;
    if (beginning != nullptr) return beginning->native().memory_bytes;
    return std::min(module->native().memory_bytes_min, memory_bytes_max);
  }
  void keep_snapshot(SleepingInstance::Rest rest) {
    disk_bytes = rest.disk_bytes();
    asleep = std::move(rest);
  }
  // The caller must free the snapshot.
  [[nodiscard]] std::optional<SleepingInstance::Rest> take_snapshot() {
    disk_bytes = 0;
    return std::exchange(asleep, std::nullopt);
  }
  void forget_snapshot() {
    if (const auto rest = take_snapshot()) rest->store->free(rest->extent);
  }
};

namespace {

// True when an image of this memory takes less space than it saves in snapshots like this one.
bool settling_pays(const SleepableModule::Native& module, const PageRanges& difference,
                   std::size_t snapshot_bytes) {
  const std::uint64_t image_bytes =
      kPageBytes * page_count(united(module.initial->data_pages(), difference));
  const std::uint64_t instances = module.instance_count.load();
  return instances > 1 && instances * snapshot_bytes > image_bytes;
}

// How `resident` would be written: the image, and the pages that differ from it.
struct Draft {
  std::shared_ptr<const BaseImage> image;
  PageRanges pages;
};

std::vector<GlobalValue> values_of_globals(const Resident& resident) {
  std::vector<GlobalValue> values;
  values.reserve(resident.globals.size());
  for (const wasmtime_global_t& global : resident.globals)
    values.push_back(value_of(resident.context, global));
  return values;
}

Result<> set_globals(const Resident& resident, std::span<const GlobalValue> values) {
  for (std::size_t index = 0; index < values.size(); ++index) {
    HANGAR_TRY(set_value(resident.context, resident.globals[index], values[index]));
  }
  return {};
}

Result<std::vector<std::byte>> encode(const SleepableModule& module, const Resident& resident,
                                      const Draft& draft) {
  const std::span<const std::byte> memory = resident.memory_bytes();
  const Snapshot snapshot{.module = module.digest(),
                          .base_number = draft.image->number(),
                          .memory_bytes = memory.size(),
                          .globals = values_of_globals(resident),
                          .pages = draft.pages};
  return encode(snapshot, [&](std::uint32_t page, std::span<std::byte> into) {
    exclusive_or(into, memory.data() + std::size_t{page} * kPageBytes, draft.image->page(page));
  });
}

Result<Snapshots::Extent> stored(Snapshots& store, std::span<const std::byte> bytes,
                                 const budget::Tenant& tenant) {
  Result<Snapshots::Extent> extent = store.write(bytes, tenant);
  if (!extent) return fail(ErrorKind::Unavailable, extent.error().message());
  return extent;
}

Result<Snapshots::Extent> write(const SleepableModule& module, const Resident& resident,
                                const Draft& draft, Snapshots& store,
                                const budget::Tenant& tenant) {
  return stored(store, HANGAR_TRY(encode(module, resident, draft)), tenant);
}

}  // namespace

template <class Made>
Result<Made> Instance::Native::read_memory_for(std::move_only_function<Result<Made>()> work) {
  internal::WatchedMemory watched;
  watched.watch(resident->memory_bytes());
  Result<Made> made = [&] {
    const internal::WatchedMemory::Use use(watched);
    return work();
  }();
  if (Result<> readable = watched.readable(); !readable) {
    lose();
    return std::unexpected(std::move(readable).error());
  }
  return made;
}

// Writes the pages that differ from an image, each XORed with the image's page: most of the result
// is zero and compresses well. There are at most two images. The initial one contains the module's
// data segments. The settled one is a copy of one instance's memory after it had started, so most
// instances differ from it in fewer pages. The guest is written against the image with fewer
// differences. The settled image is made here, the first time that it would save more disk space
// than it takes.
//
// A guest that wakes often has all these pages in a layer instead, not compressed, and the snapshot
// has what it has written elsewhere.
//
// The guest stays in memory until the store has the snapshot, so a failure at any point leaves it
// resident and unchanged.
Result<> Instance::Native::put_to_sleep(Snapshots& store, const budget::Tenant& tenant) {
  SleepableModule::Native& shared = module->native();
  const PageRanges written = engine.native().written_pages.find(resident->memory_bytes());
  const auto rests_on_layer = [&](std::uint64_t beside_max) {
    const Result<bool> rests = rest_on_layer(store, tenant, written, beside_max);
    return rests && *rests;
  };
  if (rests_on_layer(limits::kBesideLayerBytesMax)) return {};
  Draft draft{.image = shared.initial, .pages = difference(*resident, written, *shared.initial)};
  const auto try_settled = [&] {
    auto settled = shared.settled();
    if (settled == nullptr) return false;
    PageRanges pages = difference(*resident, written, *settled);
    if (page_count(pages) >= page_count(draft.pages)) return false;
    draft = {.image = std::move(settled), .pages = std::move(pages)};
    return true;
  };
  const bool is_settled = try_settled();
  if (PageLayer::pays(resident->slept, page_count(draft.pages))) {
    auto layer = PageLayer::make(store, tenant, resident->memory_bytes(), draft.pages);
    if (layer) {
      draft.pages.clear();
      const Snapshots::Extent extent = HANGAR_TRY(write(*module, *resident, draft, store, tenant));
      fall_asleep({.store = &store,
                   .extent = extent,
                   .image = std::move(draft.image),
                   .layer = *std::move(layer)});
      return {};
    }
    // There is no room for another layer, or it would be too large. Without an old one, the
    // snapshot has the pages.
    if (rests_on_layer(std::numeric_limits<std::uint64_t>::max())) return {};
  }
  std::vector<std::byte> bytes = HANGAR_TRY(encode(*module, *resident, draft));
  if (!is_settled && settling_pays(shared, draft.pages, bytes.size())) {
    shared.settle(resident->memory_bytes(), united(shared.initial->data_pages(), draft.pages));
    if (try_settled()) bytes = HANGAR_TRY(encode(*module, *resident, draft));
  }
  const Snapshots::Extent extent = HANGAR_TRY(stored(store, bytes, tenant));
  fall_asleep({.store = &store, .extent = extent, .image = std::move(draft.image)});
  return {};
}

// Keeps the layer that the guest was resumed from, brought up to date. False when it has none, or
// should have none any more, or has more than `beside_max` bytes of changed pages beside it. After
// an error as well, all of its memory is as before, wherever its layer was written to.
Result<bool> Instance::Native::rest_on_layer(Snapshots& store, const budget::Tenant& tenant,
                                             const PageRanges& written, std::uint64_t beside_max) {
  if (resident->layer == nullptr || !shows(*resident, *resident->image) ||
      !PageLayer::pays(resident->slept, page_count(resident->layer->pages()))) {
    return false;
  }
  const Draft draft{.image = resident->image,
                    .pages = difference_among(without(written, resident->layer->pages()), *resident,
                                              *resident->image)};
  if (page_count(draft.pages) * kPageBytes > beside_max) return false;
  HANGAR_TRY(resident->layer->update(resident->memory_bytes(), written));
  const Snapshots::Extent extent = HANGAR_TRY(write(*module, *resident, draft, store, tenant));
  fall_asleep({.store = &store,
               .extent = extent,
               .image = resident->image,
               .layer = std::move(resident->layer)});
  return true;
}

void Instance::Native::fall_asleep(SleepingInstance::Rest rest) {
  rest.memory_bytes = resident->memory_bytes().size();
  rest.since = io::Loop::now();
  resident.reset();
  resident_bytes = 0;
  keep_snapshot(std::move(rest));
}

// Restores all that a turn can have changed. A module whose code could change more, its tables or
// segments, has no checkpoints. Pages that were never written still show the checkpoint's image.
bool Instance::Native::go_back() {
  const Checkpoint::Native& begun = beginning->native();
  const std::span<std::byte> memory = resident->memory_bytes();
  if (memory.size() != begun.memory_bytes) return false;  // A memory cannot shrink.
  const PageRanges written = engine.native().written_pages.find(memory);
  resident_bytes = kPageBytes * page_count(written);
  if (resident_bytes > *kept_bytes_max) return false;
  for (const PageRange& range : written) {
    for (std::uint32_t page = range.first; page < range.end(); ++page) {
      std::memcpy(memory.data() + std::size_t{page} * kPageBytes, begun.page(page), kPageBytes);
    }
  }
  return set_globals(*resident, begun.globals).has_value();
}

Result<std::shared_ptr<const Checkpoint>> Instance::Native::make_checkpoint() const {
  const std::span<const std::byte> memory = resident->memory_bytes();
  auto made = std::make_unique<Checkpoint::Native>();
  made->module = module;
  made->memory_bytes = memory.size();
  made->globals = values_of_globals(*resident);
  if (!module->native().makes_images()) {
    made->image = resident->image;
    made->ranges = resident->changed(engine.native().written_pages.find(memory));
    made->pages.reserve(kPageBytes * page_count(made->ranges));
    for (const PageRange& range : made->ranges) {
      const auto bytes = memory.subspan(std::size_t{range.first} * kPageBytes,
                                        std::size_t{range.count} * kPageBytes);
      made->pages.insert(made->pages.end(), bytes.begin(), bytes.end());
    }
    return std::make_shared<const Checkpoint>(std::move(made));
  }
  // Beyond the image from which it was mapped, unwritten memory is zero.
  made->image = HANGAR_TRY(
      BaseImage::of_memory(module->native().image_directory, memory,
                           united(resident->image->data_pages(),
                                  resident->changed(engine.native().written_pages.find(memory)))));
  return std::make_shared<const Checkpoint>(std::move(made));
}

namespace {

// One turn of an instance on the workers. Execution calls next() before each call of the guest:
// next() first brings the guest into memory if necessary (phases New, Instantiating and Starting),
// and then makes the calls that `turn_` requests. conclude() decides what remains. After an error
// or proc_exit the guest cannot be called again: an instance that keeps its state is lost, and one
// for run_afresh() is reset to its checkpoint or dropped.
class InstanceTurn final : public Execution {
 public:
  InstanceTurn(Instance::Native& native, Turn& turn, TurnLimits limits)
      : Execution(native.engine, *native.code, *native.state, limits.consumer),
        native_(native),
        turn_(turn),
        limits_(std::move(limits)) {}

  [[nodiscard]] TurnReport take_report() { return std::move(report_); }

 private:
  enum class Phase : std::uint8_t { New, Instantiating, Starting, Calling };

  Result<bool> next() override {
    if (is_stopped()) return fail(ErrorKind::Cancelled, "the turn was stopped");
    switch (phase_) {
      case Phase::New:
        if (native_.resident != nullptr) {
          adopt(native_.resident->context);
          // The reservation of the run before has gone with that run.
          if (native_.kept_bytes_max && native_.ask_memory) HANGAR_TRY(ask_for_present_memory());
          if (native_.resident->memory) set_memory(*native_.resident->memory);
          break;
        }
        if (native_.module->obstacle()) {
          HANGAR_TRY(begin_ordinary_instance());
          phase_ = Phase::Instantiating;
          return true;
        }
        if (native_.asleep) {
          HANGAR_TRY(resume());
          break;
        }
        if (native_.beginning != nullptr) {
          const Checkpoint::Native& beginning = native_.beginning->native();
          HANGAR_TRY(make_instance(beginning.image, beginning.memory_bytes));
          beginning.lay_pages_into(native_.resident->memory_bytes());
          HANGAR_TRY(set_globals(*native_.resident, beginning.globals));
          break;
        }
        HANGAR_TRY(make_instance(this_module().initial, module().memory_bytes_min()));
        if (this_module().has_start) {
          HANGAR_TRY(begin_call({.function = std::string(kStartExport)}));
          phase_ = Phase::Starting;
          return true;
        }
        break;
      case Phase::Instantiating:
        prepared_.reset();
        find_memory("memory");
        break;
      case Phase::Starting:
        break;
      case Phase::Calling:
        result_ = results_[0].kind == WASMTIME_I32 ? static_cast<std::uint32_t>(results_[0].of.i32)
                                                   : static_cast<std::uint64_t>(results_[0].of.i64);
        break;
    }
    phase_ = Phase::Calling;
    std::optional<Invocation> invocation = HANGAR_TRY(turn_.next(memory_view(), result_));
    if (!invocation) return false;
    HANGAR_TRY(begin_call(*std::move(invocation)));
    return true;
  }

  [[nodiscard]] bool is_time_over() const override {
    return limits_.cpu_time_max && used_time() >= *limits_.cpu_time_max;
  }
  [[nodiscard]] Instant wait_until() const override {
    return limits_.cpu_time_max ? io::Loop::now() + (*limits_.cpu_time_max - used_time())
                                : Instant::max();
  }
  [[nodiscard]] std::string timeout_text() const override {
    return to_go_duration(limits_.cpu_time_max.value_or(Duration::zero())) +
           (waited() > Duration::zero() ? " of processor time and sleep" : " of processor time");
  }
  // Waiting within a turn counts as computing: both keep the guest in memory.
  [[nodiscard]] Duration used_time() const { return cpu_time() - resume_cpu_time_ + waited(); }

  void conclude(Result<> ended) override {
    if (native_.resident != nullptr) {
      ended = internal::explained(std::move(ended), native_.resident->account);
    }
    report_.has_left = ended && has_left();
    report_.has_timed_out = !ended && has_timed_out();
    const bool is_over = !ended || report_.has_left;
    if (native_.kept_bytes_max) {
      if (is_over || !native_.go_back()) native_.let_go();
    } else if (is_over) {
      native_.lose();
    } else {
      native_.measure();
    }
    report_.ended = std::move(ended);
    report_.cpu_time = cpu_time();
  }

  [[nodiscard]] const SleepableModule::Native& this_module() const {
    return native_.module->native();
  }

  // Makes an instance whose memory is `image` followed by zeros. wasmtime requests the memory while
  // it instantiates, on this thread, so MemorySlots::Next says what it contains. The rewritten
  // module has no start function: no guest code runs here, and instantiation finishes at once.
  Result<> make_instance(std::shared_ptr<const BaseImage> image, std::uint64_t memory_bytes) {
    auto resident = std::make_unique<Resident>(native_.memory_bytes_max,
                                               std::exchange(native_.provided, std::nullopt),
                                               native_.ask_memory);
    resident->store = HANGAR_TRY(make_store(resident->account));
    if (!resident->account.begin_with(memory_bytes)) return no_memory(resident->account);
    resident->context = context();
    const internal::InstancePreHandle prepared =
        HANGAR_TRY(internal::prepare(native_.functions, module()));
    {
      const MemorySlots::Next memory(*image, memory_bytes);
      Result<> made = instantiate_at_once(*prepared, resident->instance);
      if (memory.error()) return std::unexpected(*memory.error());
      HANGAR_TRY(std::move(made));
    }
    resident->image_bytes = mapped_bytes(*image, memory_bytes);
    resident->image = std::move(image);
    native_.resident = std::move(resident);
    find_memory(kMemoryExport);
    return find_globals();
  }

  Result<> ask_for_present_memory() {
    internal::GuestAccount& account = native_.resident->account;
    return account.begin_anew(native_.ask_memory) ? Result<>() : no_memory(account);
  }

  static std::unexpected<Error> no_memory(const internal::GuestAccount& account) {
    if (const std::optional<std::string>& shortage = account.shortage()) {
      return fail(ErrorKind::Unavailable, "cannot allocate memory for the guest: " + *shortage);
    }
    return fail(ErrorKind::LimitExceeded, "the guest has more memory than its limit");
  }

  Result<> begin_ordinary_instance() {
    native_.resident = std::make_unique<Resident>(native_.memory_bytes_max,
                                                  std::exchange(native_.provided, std::nullopt),
                                                  native_.ask_memory);
    native_.resident->store = HANGAR_TRY(make_store(native_.resident->account));
    native_.resident->context = context();
    prepared_ = HANGAR_TRY(internal::prepare(native_.functions, module()));
    instantiate(*prepared_, native_.resident->instance);
    return {};
  }

  // Maps the image, and the layer over it, and applies the snapshot's differences.
  // SnapshotReader::open() has verified the checksum, and that the snapshot fits the module and the
  // image, before any byte is used. The snapshot is freed last; after a failure the instance is
  // lost. The time until then is not charged to the turn.
  Result<> resume() {
    const Instant began = io::Loop::now();
    SleepingInstance::Rest& asleep = *native_.asleep;
    std::vector<std::byte> bytes(asleep.extent.size_bytes);
    HANGAR_TRY(asleep.store->read(asleep.extent, bytes));
    const SnapshotReader reader = HANGAR_TRY(
        SnapshotReader::open(std::move(bytes), {.module = native_.module->digest(),
                                                .base_number = asleep.image->number(),
                                                .global_count = this_module().global_count,
                                                .memory_bytes_max = native_.memory_bytes_max}));
    const Snapshot& snapshot = reader.snapshot();
    HANGAR_TRY(make_instance(asleep.image, snapshot.memory_bytes));

    const std::span<std::byte> memory = native_.resident->memory_bytes();
    if (memory.size() != snapshot.memory_bytes) {
      return fail(ErrorKind::Unavailable, "the restored memory has the wrong size");
    }
    HANGAR_TRY(set_globals(*native_.resident, snapshot.globals));
    if (asleep.layer != nullptr) HANGAR_TRY(asleep.layer->map_into(memory));
    HANGAR_TRY(
        reader.read_pages([memory](std::uint32_t page, std::span<const std::byte> difference) {
          std::byte* const place = memory.data() + std::size_t{page} * kPageBytes;
          exclusive_or(std::span(place, kPageBytes), place, difference.data());
        }));
    native_.resident->layer = std::move(asleep.layer);
    if (asleep.since != Instant()) native_.resident->slept = began - asleep.since;
    native_.forget_snapshot();
    report_.was_asleep = true;
    report_.resume_time = io::Loop::now() - began;
    resume_cpu_time_ = cpu_time();
    report_.resume_cpu_time = resume_cpu_time_;
    return {};
  }

  // std::nullopt when there is no export of that name and kind.
  std::optional<wasmtime_extern_t> find(std::string_view name, wasmtime_extern_kind_t kind) {
    wasmtime_extern_t item;
    if (!wasmtime_instance_export_get(context(), &native_.resident->instance, name.data(),
                                      name.size(), &item)) {
      return std::nullopt;
    }
    if (item.kind == kind) return item;
    wasmtime_extern_delete(&item);
    return std::nullopt;
  }

  void find_memory(std::string_view name) {
    const auto item = find(name, WASMTIME_EXTERN_MEMORY);
    if (!item) return;
    native_.resident->memory = item->of.memory;
    set_memory(item->of.memory);
  }

  Result<> find_globals() {
    native_.resident->globals.reserve(this_module().global_count);
    for (std::size_t index = 0; index < this_module().global_count; ++index) {
      const auto item = find(global_export(index), WASMTIME_EXTERN_GLOBAL);
      if (!item) return fail(ErrorKind::Unavailable, "the rewritten module lacks a global");
      native_.resident->globals.push_back(item->of.global);
    }
    return {};
  }

  Result<> begin_call(Invocation invocation) {
    const Export* const exported = module().find_export(invocation.function);
    const auto types = exported != nullptr && exported->kind == ExternKind::Function
                           ? call_types(exported->signature)
                           : std::nullopt;
    const auto item = types ? find(invocation.function, WASMTIME_EXTERN_FUNC) : std::nullopt;
    if (!item || types->parameters.size() != invocation.arguments.size()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("the module exports no function {} of {} integers",
                              invocation.function, invocation.arguments.size()));
    }
    function_ = item->of.func;
    arguments_.assign(invocation.arguments.size(), wasmtime_val_t{});
    for (std::size_t index = 0; index < arguments_.size(); ++index) {
      arguments_[index].kind = types->parameters[index];
      arguments_[index].of.i64 = static_cast<std::int64_t>(invocation.arguments[index]);
    }
    results_ = {wasmtime_val_t{.kind = WASMTIME_I64}};
    call(function_, arguments_, std::span(results_).first(types->result ? 1 : 0));
    return {};
  }

  Instance::Native& native_;
  Turn& turn_;
  const TurnLimits limits_;

  Phase phase_ = Phase::New;
  internal::InstancePreHandle prepared_;
  wasmtime_func_t function_{};
  std::vector<wasmtime_val_t> arguments_;
  std::array<wasmtime_val_t, 1> results_{};
  std::uint64_t result_ = 0;
  Duration resume_cpu_time_{};
  TurnReport report_;
};

}  // namespace

Instance::Instance(Engine& engine, std::shared_ptr<const SleepableModule> module,
                   const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max)
    : native_(new Native{.engine = engine,
                         .module = std::move(module),
                         .functions = functions,
                         .state = &state,
                         .memory_bytes_max = memory_bytes_max,
                         .beginning = nullptr,
                         .kept_bytes_max = std::nullopt}) {
  ++native_->module->native().instance_count;
}

Instance::Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
                   const HostFunctions& functions, HostState& state, std::uint64_t memory_bytes_max)
    : native_(new Native{.engine = engine,
                         .module = checkpoint->native().module,
                         .functions = functions,
                         .state = &state,
                         .memory_bytes_max = memory_bytes_max,
                         .beginning = std::move(checkpoint),
                         .kept_bytes_max = std::nullopt}) {
  ++native_->module->native().instance_count;
}

Instance::Instance(Engine& engine, SleepingInstance asleep, const HostFunctions& functions,
                   HostState& state)
    : Instance(engine, asleep.module(), functions, state, asleep.memory_bytes_max()) {
  native_->keep_snapshot(std::move(asleep).take_rest());
}

Instance::Instance(Engine& engine, std::shared_ptr<const Checkpoint> checkpoint,
                   const HostFunctions& functions, std::uint64_t memory_bytes_max,
                   std::uint64_t kept_bytes_max)
    : native_(new Native{.engine = engine,
                         .module = checkpoint->native().module,
                         .functions = functions,
                         .state = nullptr,
                         .memory_bytes_max = memory_bytes_max,
                         .beginning = std::move(checkpoint),
                         .kept_bytes_max = kept_bytes_max}) {
  ++native_->module->native().instance_count;
}

Instance::~Instance() {
  HANGAR_ASSERT(!native_->is_busy, "turns end before their instance does");
  native_->lose();
  native_->forget_code();
  --native_->module->native().instance_count;
}

io::Task<TurnReport> Instance::run(Turn& turn, TurnLimits limits, std::stop_token stop) {
  Native& native = *native_;
  HANGAR_ASSERT(!native.is_busy, "one turn at a time");
  HANGAR_ASSERT(native.state != nullptr, "turns that begin afresh have a state each");
  if (native.is_lost) {
    co_return TurnReport{
        .ended = fail(ErrorKind::Unavailable, "the instance failed or exited in an earlier turn")};
  }
  native.is_busy = true;
  if (Result<> held = co_await native.hold_code(limits.consumer); !held) {
    if (!native.kept_bytes_max) native.lose();
    native.is_busy = false;
    co_return TurnReport{.ended = std::move(held)};
  }
  if (native.resident == nullptr && !native.provided) {
    auto reserved =
        co_await native.engine.reserve(limits.consumer, native.memory_bytes_needed(), stop);
    if (!reserved) {
      if (!native.kept_bytes_max) native.lose();
      native.forget_code();
      native.is_busy = false;
      co_return TurnReport{.ended = std::unexpected(std::move(reserved).error())};
    }
    native.provided = *std::move(reserved);
  }
  TurnReport report;
  {
    InstanceTurn execution(native, turn, std::move(limits));
    execution.begin();
    const std::stop_callback on_stop(stop,
                                     [&execution] { execution.stop(Execution::Stop::Cancelled); });
    co_await execution.wait();
    report = execution.take_report();
  }
  native.provided.reset();  // The turn may have ended before there was an instance.
  native.is_busy = false;
  native.engine.native().code.has_run(native.code);
  native.forget_code();
  co_return report;
}

io::Task<TurnReport> Instance::run_afresh(Turn& turn, HostState& state, TurnLimits limits,
                                          std::stop_token stop) {
  HANGAR_ASSERT(native_->kept_bytes_max.has_value(), "the instance was made for run_afresh()");
  native_->state = &state;
  TurnReport report = co_await run(turn, std::move(limits), std::move(stop));
  native_->state = nullptr;
  // The run whose memory it asked for is over.
  native_->ask_memory = {};
  if (native_->resident != nullptr) std::ignore = native_->resident->account.begin_anew({});
  co_return report;
}

std::uint64_t Instance::memory_bytes_needed() const {
  return native_->memory_bytes_needed();
}

void Instance::provide(std::optional<budget::Reservation> memory) {
  native_->provided = std::move(memory);
}

void Instance::ask_for_memory(AskMemory ask) {
  native_->ask_memory = std::move(ask);
}

io::Task<Result<Duration>> Instance::sleep(Snapshots& store, budget::Tenant tenant) {
  Native& native = *native_;
  HANGAR_ASSERT(!native.is_busy, "an instance sleeps between turns");
  if (const auto& obstacle = native.module->obstacle()) {
    co_return fail(ErrorKind::InvalidInput, "the module cannot sleep: it " + *obstacle);
  }
  if (native.is_lost) {
    co_return fail(ErrorKind::Unavailable, "the instance failed or exited in an earlier turn");
  }
  if (native.resident == nullptr) {
    native.provided.reset();
    co_return Duration::zero();
  }
  native.is_busy = true;
  Result<Duration> result = co_await native.engine.workers().run(
      {.tenant = tenant, .name = "sleep"}, [&native, &store, &tenant]() -> Result<Duration> {
        const Duration began = io::thread_cpu_time();
        HANGAR_TRY(
            native.read_memory_for<void>([&] { return native.put_to_sleep(store, tenant); }));
        return io::thread_cpu_time() - began;
      });
  native.is_busy = false;
  native.forget_code();
  co_return result;
}

std::optional<SleepingInstance> Instance::take_asleep() {
  Native& native = *native_;
  HANGAR_ASSERT(!native.is_busy, "no turn is running");
  if (!native.asleep) return std::nullopt;
  native.is_lost = true;
  return SleepingInstance(native.module, native.memory_bytes_max, *native.take_snapshot());
}

io::Task<Result<std::shared_ptr<const Checkpoint>>> Instance::checkpoint(budget::Consumer whose) {
  Native& native = *native_;
  HANGAR_ASSERT(!native.is_busy && native.resident != nullptr,
                "no turn is running, and the guest is in memory");
  if (const auto& obstacle = native.module->obstacle()) {
    co_return fail(ErrorKind::InvalidInput, "the module cannot sleep: it " + *obstacle);
  }
  native.is_busy = true;
  Result<std::shared_ptr<const Checkpoint>> made =
      co_await native.engine.workers().run(std::move(whose), [&native] {
        return native.read_memory_for<std::shared_ptr<const Checkpoint>>(
            [&native] { return native.make_checkpoint(); });
      });
  native.is_busy = false;
  co_return made;
}

bool Instance::is_asleep() const {
  return native_->asleep.has_value();
}

std::uint64_t Instance::resident_bytes() const {
  return native_->resident_bytes;
}

std::uint64_t Instance::disk_bytes() const {
  return native_->disk_bytes;
}

}  // namespace hangar::wasm
