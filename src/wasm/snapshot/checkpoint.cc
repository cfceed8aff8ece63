#include "wasm/snapshot/checkpoint.h"

#include "wasm/snapshot/checkpoint_native.h"
#include "wasm/snapshot/page_range.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace hangar::wasm {

Checkpoint::Checkpoint(std::unique_ptr<const Native> native) : native_(std::move(native)) {}

Checkpoint::~Checkpoint() = default;

std::uint64_t Checkpoint::image_bytes() const {
  return native_->image->disk_bytes();
}

std::uint64_t Checkpoint::memory_bytes() const {
  return native_->pages.size();
}

const std::byte* Checkpoint::Native::page(std::uint32_t number) const {
  std::size_t before = 0;
  for (const PageRange& range : ranges) {
    if (number < range.first) break;
    if (number < range.end()) return pages.data() + (before + number - range.first) * kPageBytes;
    before += range.count;
  }
  return image->page(number);
}

void Checkpoint::Native::lay_pages_into(std::span<std::byte> memory) const {
  const std::byte* from = pages.data();
  for (const PageRange& range : ranges) {
    const std::size_t bytes = std::size_t{range.count} * kPageBytes;
    std::memcpy(memory.data() + std::size_t{range.first} * kPageBytes, from, bytes);
    from += bytes;
  }
}

}  // namespace hangar::wasm
