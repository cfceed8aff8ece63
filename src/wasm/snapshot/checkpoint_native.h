// The internals of Checkpoint.
#pragma once

#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hangar::wasm {

struct Checkpoint::Native {
  std::shared_ptr<const SleepableModule> module;
  std::shared_ptr<const BaseImage> image;
  // In a process that can make no files, the image is that of the module, and these pages of
  // memory lie above it: `pages` has the content of `ranges`, one after the other.
  PageRanges ranges;
  std::vector<std::byte> pages;
  std::uint64_t memory_bytes = 0;
  std::vector<GlobalValue> globals;

  // The content of a page, kPageBytes of it.
  [[nodiscard]] const std::byte* page(std::uint32_t number) const;
  // Copies the pages above the image into a memory that shows the image.
  void lay_pages_into(std::span<std::byte> memory) const;
};

}  // namespace hangar::wasm
