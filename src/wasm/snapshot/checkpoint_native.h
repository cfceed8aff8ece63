// The internals of Checkpoint.
#pragma once

#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/snapshot.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hangar::wasm {

struct Checkpoint::Native {
  std::shared_ptr<const SleepableModule> module;
  std::shared_ptr<const BaseImage> image;
  std::uint64_t memory_bytes = 0;
  std::vector<GlobalValue> globals;
};

}  // namespace hangar::wasm
