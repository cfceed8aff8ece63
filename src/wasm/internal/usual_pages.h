// The pages that runs of one module write to: programs begin alike.
//
// A page that a guest reads and then writes costs a fault for each, and the second has to be made
// known to all processors that other guests run on. Pages that were made writable beforehand, many
// at a time, cost neither.
#pragma once

#include "base/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/written_pages.h"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

namespace hangar::wasm::internal {

// Any thread.
class UsualPages {
 public:
  // At the end of a run: what it wrote to. The first two are asked, and what both wrote to is
  // usual, unless that is more than `bytes_max`: guests are not given what they may not need.
  void learn(const WrittenPages& written, std::span<const std::byte> memory,
             std::size_t bytes_max = 4 * limits::kMiB);

  // Before a run: makes the usual pages of `memory` its own and writable. Contents stay as they
  // are. What the system refuses comes when the guest asks for it, as without this.
  void make_ready(std::span<std::byte> memory) const;

 private:
  std::mutex mutex_;
  std::optional<PageRanges> first_;  // Of the first run, until the second has ended.
  PageRanges usual_;                 // Not changed once are_known_.
  std::atomic<bool> are_known_ = false;
};

}  // namespace hangar::wasm::internal
