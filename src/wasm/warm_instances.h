// Runs turns that each start from a checkpoint, as if on a new instance, but usually without making
// one.
//
// A new instance costs more than a small turn: the store, the mappings, and a fault for each page
// that it writes to. So an instance that was reset to its checkpoint is kept for the next turn from
// there: a few instances, for some seconds. The memory counts for the namespace that the instance
// was made for, and only that namespace uses it again.
#pragma once

#include "base/time.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/snapshot/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <stop_token>

namespace hangar::wasm {

// Loop thread. Outlives its turns.
class WarmInstances {
 public:
  struct Options {
    std::size_t kept_max = limits::kWarmInstancesMax;
    std::uint64_t bytes_max = limits::kWarmInstanceBytesMax;  // For one instance.
    Duration kept = limits::kWarmInstanceKept;
  };
  // Both outlive this object.
  WarmInstances(Engine& engine, const HostFunctions& functions, Options options)
      : engine_(engine), functions_(functions), options_(options) {}
  WarmInstances(Engine& engine, const HostFunctions& functions)
      : WarmInstances(engine, functions, Options{}) {}
  WarmInstances(const WarmInstances&) = delete;
  WarmInstances& operator=(const WarmInstances&) = delete;

  // Instance::run_afresh(), on a kept instance or a new one. `turn` and `state` outlive the task.
  // `ask_memory` as in RunLimits: it is asked for all that the instance has during the turn.
  [[nodiscard]] io::Task<TurnReport> run(std::shared_ptr<const Checkpoint> checkpoint,
                                         std::uint64_t memory_bytes_max, Turn& turn,
                                         HostState& state, TurnLimits limits, std::stop_token stop,
                                         AskMemory ask_memory = {});
  // Frees the kept instances; returns how many there were.
  std::size_t clear();

  [[nodiscard]] std::size_t kept_count() const { return kept_.size(); }

 private:
  struct Kept {
    std::shared_ptr<const Checkpoint> checkpoint;
    std::uint64_t memory_bytes_max = 0;
    budget::Tenant tenant;
    std::unique_ptr<Instance> instance;
    Instant since;
  };

  [[nodiscard]] std::unique_ptr<Instance> take(const std::shared_ptr<const Checkpoint>& checkpoint,
                                               std::uint64_t memory_bytes_max,
                                               const budget::Tenant& tenant);
  void keep(Kept kept);
  void release_later();

  Engine& engine_;
  const HostFunctions& functions_;
  const Options options_;
  std::list<Kept> kept_;  // The most recently used first.
  io::Loop::Timer release_timer_;
  bool will_release_ = false;
};

}  // namespace hangar::wasm
