#include "wasm/snapshot/page_layer.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshot_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace hangar::wasm {

namespace {

template <class Bytes>
Bytes part_of(Bytes memory, PageRange range) {
  return memory.subspan(std::size_t{range.first} * kPageBytes,
                        std::size_t{range.count} * kPageBytes);
}

}  // namespace

bool PageLayer::pays(std::optional<Duration> slept, std::uint64_t pages) {
  return slept && *slept <= limits::kLayerSleepMax && pages * kPageBytes >= limits::kLayerBytesMin;
}

Result<std::unique_ptr<PageLayer>> PageLayer::make(SnapshotStore& store,
                                                   const budget::Tenant& tenant,
                                                   std::span<const std::byte> memory,
                                                   const PageRanges& pages) {
  const PageRanges pieces = in_few_pieces(pages, kPiecesMax);
  const std::uint64_t count = page_count(pieces);
  if (count == 0 || count * kPageBytes > limits::kLayerBytesMax) {
    return fail(ErrorKind::LimitExceeded, "the guest differs from its image in too many pages");
  }
  const SnapshotStore::Extent extent =
      HANGAR_TRY(store.reserve_pages(static_cast<std::uint32_t>(count), tenant));
  std::unique_ptr<PageLayer> layer(new PageLayer(store));
  layer->extent_ = extent;
  layer->count_ = pieces.size();
  std::ranges::copy(pieces, layer->pieces_.begin());
  std::uint32_t place = 0;
  for (const PageRange& piece : layer->pages()) {
    HANGAR_TRY(store.write_pages(extent, place, part_of(memory, piece)));
    place += piece.count;
  }
  return layer;
}

PageLayer::~PageLayer() {
  store_.free(extent_);
}

Result<> PageLayer::map_into(std::span<std::byte> memory) const {
  std::uint32_t place = 0;
  for (const PageRange& piece : pages()) {
    if (std::size_t{piece.end()} * kPageBytes > memory.size()) {
      return fail(ErrorKind::Unavailable, "the memory is smaller than its layer");
    }
    HANGAR_TRY(store_.map_pages(extent_, place, part_of(memory, piece)));
    place += piece.count;
  }
  return {};
}

Result<> PageLayer::update(std::span<const std::byte> memory, const PageRanges& written) {
  auto piece = pages().begin();
  std::uint32_t place = 0;  // Of the piece in the extent.
  for (const PageRange& range : common({pages().begin(), pages().end()}, written)) {
    while (piece->end() <= range.first)
      place += (piece++)->count;
    HANGAR_TRY(
        store_.write_pages(extent_, place + range.first - piece->first, part_of(memory, range)));
  }
  return {};
}

}  // namespace hangar::wasm
