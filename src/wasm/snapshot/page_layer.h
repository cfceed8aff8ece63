// The pages in which one instance differs from its image, as it maps them: a guest that wakes often
// neither decompresses nor copies them, and writes only those that a turn has changed.
#pragma once

#include "base/in_slot.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshot_store.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace hangar::wasm {

// Belongs to one instance, from one sleep to the next. Any thread, one at a time. The store
// outlives it.
class PageLayer : public slots::InSlot {
 public:
  // Writes `pages` of `memory`, and those of small gaps between them. LimitExceeded when that is
  // more than kLayerBytesMax or than the tenant may have in this form, Unavailable when the disk
  // fails.
  [[nodiscard]] static Result<std::unique_ptr<PageLayer>> make(SnapshotStore& store,
                                                               const budget::Tenant& tenant,
                                                               std::span<const std::byte> memory,
                                                               const PageRanges& pages);
  // True for a guest that has slept for so long, and differs from its image in so many pages, that
  // it takes less processor time and not too much disk with a layer. std::nullopt: it has not slept
  // yet, or nobody knows how long.
  [[nodiscard]] static bool pays(std::optional<Duration> slept, std::uint64_t pages);

  PageLayer(const PageLayer&) = delete;
  PageLayer& operator=(const PageLayer&) = delete;
  ~PageLayer();  // No memory may be used any more that shows it.

  [[nodiscard]] std::span<const PageRange> pages() const {
    return std::span(pieces_).first(count_);
  }
  [[nodiscard]] std::uint64_t disk_bytes() const { return extent_.size_bytes; }

  // Shows the layer in a memory that shows the image, privately. After an error the memory is
  // unusable.
  [[nodiscard]] Result<> map_into(std::span<std::byte> memory) const;

  // Takes over those of its pages that are in `written`, from the memory that shows it. After an
  // error the memory is as before: it has pages of its own wherever it was written to.
  [[nodiscard]] Result<> update(std::span<const std::byte> memory, const PageRanges& written);

 private:
  static constexpr std::size_t kPiecesMax = 32;

  explicit PageLayer(SnapshotStore& store) : store_(store) {}

  SnapshotStore& store_;
  SnapshotStore::Extent extent_;  // The pieces, one after the other.
  std::array<PageRange, kPiecesMax> pieces_{};
  std::size_t count_ = 0;
};

}  // namespace hangar::wasm
