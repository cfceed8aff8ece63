#include "wasm/internal/usual_pages.h"

#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/written_pages.h"

#include <sys/mman.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

namespace hangar::wasm::internal {

void UsualPages::learn(const WrittenPages& written, std::span<const std::byte> memory,
                       std::size_t bytes_max) {
  if (memory.empty() || are_known_.load()) return;
  PageRanges found = written.find(memory);
  const std::scoped_lock lock(mutex_);
  if (are_known_.load()) return;
  if (!first_) {
    first_ = std::move(found);
    return;
  }
  usual_ = common(*first_, found);
  if (page_count(usual_) * kPageBytes > bytes_max) usual_.clear();
  first_.reset();
  are_known_.store(true);
}

void UsualPages::make_ready(std::span<std::byte> memory) const {
  if (!are_known_.load()) return;
  for (const PageRange& range : usual_) {
    // The ranges ascend: the rest lies in memory that the guest has not yet allocated.
    if (std::size_t{range.end()} * kPageBytes > memory.size()) return;
    if (::madvise(&memory[std::size_t{range.first} * kPageBytes],
                  std::size_t{range.count} * kPageBytes, MADV_POPULATE_WRITE) != 0) {
      return;  // A kernel before 5.14, or out of memory.
    }
  }
}

}  // namespace hangar::wasm::internal
