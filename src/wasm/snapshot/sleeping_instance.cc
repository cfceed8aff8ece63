#include "wasm/snapshot/sleeping_instance.h"

#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleepable_native.h"
#include "wasm/snapshot/snapshots.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace hangar::wasm {

SleepingInstance::SleepingInstance(std::shared_ptr<const SleepableModule> module,
                                   std::uint64_t memory_bytes_max, Rest rest)
    : module_(std::move(module)), memory_bytes_max_(memory_bytes_max), rest_(std::move(rest)) {
  ++module_->native().instance_count;
}

SleepingInstance SleepingInstance::arrived(std::shared_ptr<const SleepableModule> module,
                                           std::uint64_t memory_bytes_max, Snapshots& store,
                                           Snapshots::Extent extent, Arrival arrival) {
  Rest rest{.store = &store,
            .extent = extent,
            .image = module->native().initial,
            .layer = std::move(arrival.layer),
            .memory_bytes = arrival.memory_bytes,
            .since = arrival.since};
  return {std::move(module), memory_bytes_max, std::move(rest)};
}

SleepingInstance::~SleepingInstance() {
  if (module_ == nullptr) return;
  const Rest rest = std::move(*this).take_rest();
  rest.store->free(rest.extent);
}

std::uint64_t SleepingInstance::Rest::disk_bytes() const {
  return extent.size_bytes + (layer == nullptr ? 0 : layer->disk_bytes());
}

SleepingInstance::Rest SleepingInstance::take_rest() && {
  --module_->native().instance_count;
  module_.reset();
  return std::move(rest_);
}

}  // namespace hangar::wasm
