#include "wasm/run.h"

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/execution.h"
#include "wasm/internal/guest_account.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/host_functions_native.h"
#include "wasm/internal/usual_pages.h"
#include "wasm/module.h"
#include "wasm/module_header.h"

#include <fmt/format.h>
#include <wasmtime/extern.h>
#include <wasmtime/instance.h>
#include <wasmtime/memory.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::wasm {

namespace {

// Makes an instance, calls it once, and destroys it.
class Run final : public Execution {
 public:
  Run(Engine& engine, std::shared_ptr<const Module> module, const HostFunctions& functions,
      HostState& state, std::string entry, RunLimits limits,
      std::optional<budget::Reservation> reservation)
      : Execution(engine, *module, state, limits.consumer),
        native_(engine.native()),
        code_(std::move(module)),
        functions_(functions),
        entry_(std::move(entry)),
        limits_(std::move(limits)),
        account_(limits_.memory_bytes_max, std::move(reservation), limits_.ask_memory) {}

  [[nodiscard]] RunReport take_report() { return std::move(report_); }

 private:
  enum class Phase : std::uint8_t { New, Instantiating, Running };

  Result<bool> next() override {
    switch (phase_) {
      case Phase::New:
        HANGAR_TRY(begin_instance());
        phase_ = Phase::Instantiating;
        return true;
      case Phase::Instantiating:
        HANGAR_TRY(call_entry());
        phase_ = Phase::Running;
        return true;
      case Phase::Running:
        return false;
    }
    return false;
  }

  [[nodiscard]] bool is_time_over() const override { return io::Loop::now() >= deadline_; }
  [[nodiscard]] Instant wait_until() const override { return deadline_; }
  [[nodiscard]] std::string timeout_text() const override {
    return to_go_duration(limits_.timeout.value_or(Duration::zero()));
  }

  void conclude(Result<> ended) override {
    report_.has_timed_out = !ended && has_timed_out();
    report_.ended = internal::explained(std::move(ended), account_);
    report_.memory_bytes = memory_view().size_bytes() + account_.table_bytes();
    module().usual_pages().learn(native_.written_pages, memory_view().bytes());
    prepared_.reset();
    store_.reset();
    report_.cpu_time = cpu_time();
    native_.code.has_run(code_);
  }

  Result<> begin_instance() {
    if (limits_.timeout) deadline_ = io::Loop::now() + *limits_.timeout;
    store_ = HANGAR_TRY(make_store(account_));
    prepared_ = HANGAR_TRY(internal::prepare(functions_, module()));
    instantiate(*prepared_, instance_);
    return {};
  }

  Result<> call_entry() {
    constexpr std::string_view kMemoryExport = "memory";
    wasmtime_extern_t item;
    if (wasmtime_instance_export_get(context(), &instance_, kMemoryExport.data(),
                                     kMemoryExport.size(), &item)) {
      if (item.kind == WASMTIME_EXTERN_MEMORY) {
        set_memory(item.of.memory);
        module().usual_pages().make_ready(memory_view().bytes());
      }
      wasmtime_extern_delete(&item);
    }
    const Export* const entry = module().find_export(entry_);
    if (entry == nullptr || entry->signature != "() -> ()" ||
        !wasmtime_instance_export_get(context(), &instance_, entry_.data(), entry_.size(), &item)) {
      return fail(
          ErrorKind::InvalidInput,
          fmt::format("the module exports no function {} that takes and returns nothing", entry_));
    }
    entry_function_ = item.of.func;
    call(entry_function_, {}, {});
    return {};
  }

  Engine::Native& native_;
  const std::shared_ptr<const Module> code_;
  const HostFunctions& functions_;
  const std::string entry_;
  const RunLimits limits_;

  Phase phase_ = Phase::New;
  Instant deadline_ = Instant::max();
  internal::GuestAccount account_;
  internal::StoreHandle store_;
  internal::InstancePreHandle prepared_;
  wasmtime_instance_t instance_{};
  wasmtime_func_t entry_function_{};
  RunReport report_;
};

}  // namespace

io::Task<RunReport> run(Engine& engine, std::shared_ptr<const Module> module,
                        const HostFunctions& functions, HostState& state, std::string entry,
                        RunLimits limits, std::stop_token stop) {
  // Memory before a slot: a run that waits for memory must not hold up others.
  auto reservation = co_await engine.reserve(
      limits.consumer, std::min(module->memory_bytes_min(), limits.memory_bytes_max), stop);
  if (!reservation) co_return RunReport{.ended = std::unexpected(reservation.error())};
  const Result<budget::FairSlots::Slot> slot =
      co_await engine.native().slots.acquire(limits.consumer, {}, stop);
  if (!slot) co_return RunReport{.ended = fail(slot.error().kind(), "the run was stopped")};
  Run guest(engine, std::move(module), functions, state, std::move(entry), std::move(limits),
            *std::move(reservation));
  guest.begin();
  const std::stop_callback on_stop(stop, [&guest] { guest.stop(Run::Stop::Cancelled); });
  co_await guest.wait();
  co_return guest.take_report();
}

}  // namespace hangar::wasm
