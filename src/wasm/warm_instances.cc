#include "wasm/warm_instances.h"

#include "base/time.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/snapshot/checkpoint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

namespace hangar::wasm {

io::Task<TurnReport> WarmInstances::run(std::shared_ptr<const Checkpoint> checkpoint,
                                        std::uint64_t memory_bytes_max, Turn& turn,
                                        HostState& state, TurnLimits limits, std::stop_token stop,
                                        AskMemory ask_memory) {
  const budget::Tenant tenant = limits.consumer.tenant;
  std::unique_ptr<Instance> instance = take(checkpoint, memory_bytes_max, tenant);
  instance->ask_for_memory(std::move(ask_memory));
  TurnReport report =
      co_await instance->run_afresh(turn, state, std::move(limits), std::move(stop));
  // When others wait for memory, nothing is kept for later.
  const bool is_short = engine_.memory() != nullptr && !engine_.memory()->waits().empty();
  if (instance->resident_bytes() > 0 && !is_short) {
    keep({.checkpoint = std::move(checkpoint),
          .memory_bytes_max = memory_bytes_max,
          .tenant = tenant,
          .instance = std::move(instance),
          .since = io::Loop::now()});
  }
  co_return report;
}

std::size_t WarmInstances::clear() {
  const std::size_t freed = kept_.size();
  kept_.clear();
  return freed;
}

std::unique_ptr<Instance> WarmInstances::take(const std::shared_ptr<const Checkpoint>& checkpoint,
                                              std::uint64_t memory_bytes_max,
                                              const budget::Tenant& tenant) {
  const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
    return kept.checkpoint == checkpoint && kept.memory_bytes_max == memory_bytes_max &&
           kept.tenant == tenant;
  });
  if (found == kept_.end()) {
    return std::make_unique<Instance>(engine_, checkpoint, functions_, memory_bytes_max,
                                      options_.bytes_max);
  }
  std::unique_ptr<Instance> instance = std::move(found->instance);
  kept_.erase(found);
  return instance;
}

void WarmInstances::keep(Kept kept) {
  kept_.push_front(std::move(kept));
  if (kept_.size() > options_.kept_max) kept_.pop_back();
  release_later();
}

// One timer serves all kept instances.
void WarmInstances::release_later() {
  if (kept_.empty() || std::exchange(will_release_, true)) return;
  const Instant due = kept_.back().since + options_.kept;
  release_timer_ = engine_.loop().after(std::max(due - io::Loop::now(), Duration::zero()), [this] {
    will_release_ = false;
    const Instant now = io::Loop::now();
    while (!kept_.empty() && kept_.back().since + options_.kept <= now)
      kept_.pop_back();
    release_later();
  });
}

}  // namespace hangar::wasm
