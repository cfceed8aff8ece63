// The pages that every run of a module writes to, because programs start alike.
//
// A page that a guest first reads and then writes costs two faults, and the second one interrupts
// all processors on which other guests run. Pages that are made writable beforehand, many at a
// time, cost neither.
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
  // Call it at the end of a run with the pages that the run wrote to. The pages that the first two
  // runs both wrote to are the usual ones, unless they are more than `bytes_max`: guests do not get
  // pages that they may not need.
  void learn(const WrittenPages& written, std::span<const std::byte> memory,
             std::size_t bytes_max = 4 * limits::kMiB);

  // Call it before a run: makes the usual pages of `memory` private and writable. Contents do not
  // change. If the kernel refuses, the guest causes the faults itself.
  void make_ready(std::span<std::byte> memory) const;

 private:
  std::mutex mutex_;
  std::optional<PageRanges> first_;  // Of the first run, until the second has finished.
  PageRanges usual_;                 // Constant once are_known_ is set.
  std::atomic<bool> are_known_ = false;
};

}  // namespace hangar::wasm::internal
