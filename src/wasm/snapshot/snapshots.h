// Stores the bytes of sleeping guests.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "wasm/snapshot/page_range.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hangar::wasm {

class PageLayer;

// Any thread.
class Snapshots {
 public:
  struct Extent {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t account = 0;  // The number of its tenant among those with extents here.
  };
  static_assert(sizeof(Extent) == 16, "there are thousands: the account lies where padding would");

  // LimitExceeded, which says whose bound was reached, or Unavailable; then nothing is stored.
  [[nodiscard]] virtual Result<Extent> write(std::span<const std::byte> bytes,
                                             const budget::Tenant& tenant) = 0;
  [[nodiscard]] virtual Result<> read(Extent extent, std::span<std::byte> into) const = 0;
  virtual void free(Extent extent) = 0;

  // Room for a layer of these pieces; its pages are undefined. LimitExceeded when there is none
  // for pages that are not compressed.
  [[nodiscard]] virtual Result<std::unique_ptr<PageLayer>> make_layer(
      const PageRanges& pieces, const budget::Tenant& tenant) = 0;

 protected:
  ~Snapshots() = default;
};

}  // namespace hangar::wasm
