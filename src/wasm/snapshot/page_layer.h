// The pages in which one instance differs from its image, as it maps them: a guest that wakes often
// neither decompresses nor copies them, and writes only those that a turn has changed.
#pragma once

#include "base/in_slot.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshots.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace hangar::wasm {

// Belongs to one instance, from one sleep to the next. Any thread, one at a time. The store that
// made it outlives it.
class PageLayer : public slots::InSlot {
 public:
  static constexpr std::size_t kPiecesMax = 32;

  // Writes `pages` of `memory`, and those of small gaps between them. LimitExceeded when that is
  // more than kLayerBytesMax or than the tenant may have in this form, Unavailable when the disk
  // fails.
  [[nodiscard]] static Result<std::unique_ptr<PageLayer>> make(Snapshots& store,
                                                               const budget::Tenant& tenant,
                                                               std::span<const std::byte> memory,
                                                               const PageRanges& pages);
  // True for a guest that has slept for so long, and differs from its image in so many pages, that
  // it takes less processor time and not too much disk with a layer. std::nullopt: it has not slept
  // yet, or nobody knows how long.
  [[nodiscard]] static bool pays(std::optional<Duration> slept, std::uint64_t pages);

  PageLayer(const PageLayer&) = delete;
  PageLayer& operator=(const PageLayer&) = delete;
  virtual ~PageLayer() = default;  // No memory may be used any more that shows it.

  [[nodiscard]] std::span<const PageRange> pages() const {
    return std::span(pieces_).first(count_);
  }
  [[nodiscard]] virtual std::uint64_t disk_bytes() const = 0;

  // Shows the layer in a memory that shows the image, privately. After an error the memory is
  // unusable.
  [[nodiscard]] Result<> map_into(std::span<std::byte> memory);

  // Takes over those of its pages that are in `written`, from the memory that shows it. After an
  // error the memory is as before: it has pages of its own wherever it was written to.
  [[nodiscard]] Result<> update(std::span<const std::byte> memory, const PageRanges& written);

 protected:
  // At most kPiecesMax pieces.
  explicit PageLayer(std::span<const PageRange> pieces);

 private:
  // The pages from number `place` on: those of all pieces, one after the other.
  [[nodiscard]] virtual Result<> write_pages(std::uint32_t place,
                                             std::span<const std::byte> pages) = 0;
  // Shows them in this part of a memory, in place of what was there.
  [[nodiscard]] virtual Result<> map_pages(std::uint32_t place, std::span<std::byte> part) = 0;

  std::array<PageRange, kPiecesMax> pieces_{};
  std::size_t count_ = 0;
};

}  // namespace hangar::wasm
