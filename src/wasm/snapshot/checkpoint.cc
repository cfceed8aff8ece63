#include "wasm/snapshot/checkpoint.h"

#include "wasm/snapshot/checkpoint_native.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace hangar::wasm {

Checkpoint::Checkpoint(std::unique_ptr<const Native> native) : native_(std::move(native)) {}

Checkpoint::~Checkpoint() = default;

std::uint64_t Checkpoint::image_bytes() const {
  return native_->image->disk_bytes();
}

}  // namespace hangar::wasm
