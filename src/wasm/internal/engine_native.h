// The inside of Engine: wasmtime's engines, the ticker, and what all guests share.
#pragma once

#include "budget/fair_slots.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/turns.h"
#include "wasm/engine.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/ready_queue.h"
#include "wasm/internal/resident_code.h"
#include "wasm/module.h"
#include "wasm/snapshot/memory_slots.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/written_pages.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

namespace hangar::wasm {

// How long a guest runs before it is looked at: whether its time is over, whether others wait.
inline constexpr std::chrono::milliseconds kEpochTick{10};

// Advances the epoch while guests run; sleeps while none does, so that an idle host is idle.
class Ticker {
 public:
  explicit Ticker(std::function<void()> tick);
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  ~Ticker();

  void begin();
  void end();
  [[nodiscard]] std::size_t running_count() const;

 private:
  void work(const std::stop_token& stop);

  std::function<void()> tick_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t running_ = 0;
  std::jthread thread_;
};

struct Engine::Native {
  Native(io::Loop& loop, io::Workers& workers, const Options& options);

  [[nodiscard]] wasm_engine_t* engine(Module::Allocation allocation) const {
    switch (allocation) {
      case Module::Allocation::Pooled:
        return pooled.get();
      case Module::Allocation::OnDemand:
        return on_demand.get();
      case Module::Allocation::Sleepable:
        break;
    }
    return sleepable.get();
  }

  const Duration sleeping_code_kept;
  // Of modules that are loaded again.
  io::Turns<const SleepableModule::Native*> code_loads;
  // Each once for all modules whose images lie there; they last as long as the engine.
  std::set<std::filesystem::path> image_directories;
  MemorySlots memory_slots;
  WrittenPages written_pages;
  internal::EngineHandle pooled;  // Null when the address space cannot be had.
  internal::EngineHandle on_demand;
  internal::EngineHandle sleepable;  // With memories in `memory_slots`.
  Ticker ticker;
  internal::ReadyQueue ready;
  budget::FairSlots slots;
  internal::ResidentCode<Module> code;
  std::optional<budget::ReservationQueue> memory;  // Nothing: guests are not counted together.
};

}  // namespace hangar::wasm
