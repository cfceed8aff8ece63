#include "guest/carried_snapshots.h"

#include "base/assert.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/page_range.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <vector>

namespace hangar::guest {

namespace {

std::unexpected<Error> no_room_for_layer() {
  return fail(ErrorKind::LimitExceeded, "the host has no room for this layer");
}

}  // namespace

Result<> CarriedLayer::write_pages(std::uint32_t place, std::span<const std::byte> pages) {
  // The host may have less room than when it was made.
  if (is_new() && !home_->has_room_for(*this)) return no_room_for_layer();
  // A sleep failed before: this one brings all of that again, because map_pages() wrote it.
  if (!written_.empty() && place < written_.back().end()) {
    written_.clear();
    bytes_.clear();
  }
  // Takes address space for the whole layer, and memory for what is written.
  if (bytes_.empty()) bytes_.reserve(wasm::page_count(this->pages()) * wasm::kPageBytes);
  written_.push_back(
      {.first = place, .count = static_cast<std::uint32_t>(pages.size() / wasm::kPageBytes)});
  bytes_.append(reinterpret_cast<const char*>(pages.data()), pages.size());
  return {};
}

// What the host did not take goes into the guest's memory again.
Result<> CarriedLayer::map_pages(std::uint32_t place, std::span<std::byte> part) {
  if (file_.is_open() &&
      ::mmap(part.data(), part.size(), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_.value(),
             static_cast<off_t>(std::uint64_t{place} * wasm::kPageBytes)) == MAP_FAILED) {
    return fail(ErrorKind::Unavailable,
                fmt::format("map a layer: {}", std::generic_category().message(errno)));
  }
  std::span<const std::byte> rest = std::as_bytes(std::span(bytes_));
  for (const wasm::PageRange& range : written_) {
    const std::size_t size = range.count * wasm::kPageBytes;
    // Each range lies in one piece, as this part does.
    const std::size_t offset = std::size_t{range.first - place} * wasm::kPageBytes;
    if (range.first >= place && offset < part.size()) {
      std::ranges::copy(rest.first(size), part.subspan(offset, size).begin());
    }
    rest = rest.subspan(size);
  }
  return {};
}

Result<wasm::Snapshots::Extent> CarriedSnapshots::write(std::span<const std::byte> bytes,
                                                        const budget::Tenant& /*tenant*/) {
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::LimitExceeded, "a snapshot of more than 4 GiB");
  }
  const std::scoped_lock lock(mutex_);
  by_number_[++last_].assign(bytes.begin(), bytes.end());
  return Extent{.offset = last_, .size_bytes = static_cast<std::uint32_t>(bytes.size())};
}

Result<> CarriedSnapshots::read(Extent extent, std::span<std::byte> into) const {
  const std::scoped_lock lock(mutex_);
  const auto found = by_number_.find(extent.offset);
  HANGAR_ASSERT(found != by_number_.end() && found->second.size() == into.size(),
                "a snapshot is read as it was written");
  std::ranges::copy(found->second, into.begin());
  return {};
}

void CarriedSnapshots::free(Extent extent) {
  const std::scoped_lock lock(mutex_);
  by_number_.erase(extent.offset);
}

Result<std::unique_ptr<wasm::PageLayer>> CarriedSnapshots::make_layer(
    const wasm::PageRanges& pieces, const budget::Tenant& /*tenant*/) {
  auto layer = std::make_unique<CarriedLayer>(pieces, *this);
  if (!has_room_for(*layer)) return no_room_for_layer();
  return layer;
}

}  // namespace hangar::guest
