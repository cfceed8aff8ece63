#include "wasm/snapshot/page_layer.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshots.h"

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

Result<std::unique_ptr<PageLayer>> PageLayer::make(Snapshots& store, const budget::Tenant& tenant,
                                                   std::span<const std::byte> memory,
                                                   const PageRanges& pages) {
  const PageRanges pieces = in_few_pieces(pages, kPiecesMax);
  const std::uint64_t count = page_count(pieces);
  if (count == 0 || count * kPageBytes > limits::kLayerBytesMax) {
    return fail(ErrorKind::LimitExceeded, "the guest differs from its image in too many pages");
  }
  std::unique_ptr<PageLayer> layer = HANGAR_TRY(store.make_layer(pieces, tenant));
  HANGAR_TRY(layer->update(memory, pieces));
  return layer;
}

PageLayer::PageLayer(std::span<const PageRange> pieces) : count_(pieces.size()) {
  HANGAR_ASSERT(count_ <= kPiecesMax, "each piece takes a mapping");
  std::ranges::copy(pieces, pieces_.begin());
}

Result<> PageLayer::map_into(std::span<std::byte> memory) {
  std::uint32_t place = 0;
  for (const PageRange& piece : pages()) {
    if (std::size_t{piece.end()} * kPageBytes > memory.size()) {
      return fail(ErrorKind::Unavailable, "the memory is smaller than its layer");
    }
    HANGAR_TRY(map_pages(place, part_of(memory, piece)));
    place += piece.count;
  }
  return {};
}

Result<> PageLayer::update(std::span<const std::byte> memory, const PageRanges& written) {
  auto piece = pages().begin();
  std::uint32_t place = 0;  // Of the piece in the layer.
  for (const PageRange& range : common(pages(), written)) {
    while (piece->end() <= range.first)
      place += (piece++)->count;
    HANGAR_TRY(write_pages(place + range.first - piece->first, part_of(memory, range)));
  }
  return {};
}

}  // namespace hangar::wasm
