// The internals of Engine: wasmtime's engines, the ticker, and what all guests share.
#pragma once

#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/turns.h"
#include "io/workers.h"
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
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

namespace hangar::wasm {

// How often a running guest is checked: is its time up, do others wait?
inline constexpr std::chrono::milliseconds kEpochTick{10};
// A run that has used more processor time than this continues among the long ones. Ordinary
// evaluations and turns have finished by then.
inline constexpr std::chrono::milliseconds kShortRunMax{200};

// Advances the epoch while guests run; blocks while none does, so that an idle host stays idle.
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

struct EngineParts::Native {
  explicit Native(std::uint32_t runs_max);

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

  MemorySlots memory_slots;
  internal::EngineHandle pooled;  // Null if the address space cannot be reserved.
  internal::EngineHandle on_demand;
  internal::EngineHandle sleepable;  // Its memories come from `memory_slots`.
};

struct Engine::Native {
  Native(io::Loop& loop, io::Workers& workers, const Options& options);

  [[nodiscard]] wasm_engine_t* engine(Module::Allocation allocation) const {
    return parts.native().engine(allocation);
  }

  const Duration sleeping_code_kept;
  budget::Rates* const rates;  // Null: there are no rates.
  // At most one load at a time for each module whose code was unloaded.
  io::Turns<const SleepableModule::Native*> code_loads;
  // Directories of images, each stored once for all modules; they last as long as the engine.
  std::set<std::filesystem::path> image_directories;
  WrittenPages written_pages;
  const std::unique_ptr<const EngineParts> own_parts;  // Null: it was given some.
  const EngineParts& parts;
  Ticker ticker;
  // Long runs have their own threads, of lower priority: the loop and short runs soon get a
  // processor, however many namespaces compute, in however many processes.
  io::Workers long_run_workers;
  internal::ReadyQueue long_runs;
  // Destroyed before these two: its steps, for which its destructor waits, hand runs on to them.
  internal::ReadyQueue ready;
  budget::FairSlots slots;
  internal::ResidentCode<Module> code;
  std::optional<budget::ReservationQueue> memory;  // std::nullopt: no common accounts for guests.
};

}  // namespace hangar::wasm
