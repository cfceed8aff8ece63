// The encoding of a sleeping guest. docs/formats/snapshot.md is the specification.
//
// The bytes come back from a disk, so their checksum is verified before any of them is used.
#pragma once

#include "base/result.h"
#include "wasm/digest.h"
#include "wasm/snapshot/page_range.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace hangar::wasm {

// A global of any numeric type: little-endian, padded with zeros.
using GlobalValue = std::array<std::byte, 16>;

struct Snapshot {
  Digest module;
  std::uint64_t base_number = 0;  // The image from which `pages` differ.
  std::uint64_t memory_bytes = 0;
  std::vector<GlobalValue> globals;
  PageRanges pages;

  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

// `fill` writes page `number` of the guest XORed with that of the image; called once for each page,
// in ascending order. Unavailable when there is not enough memory, LimitExceeded beyond 4 GiB.
using FillPage = std::function<void(std::uint32_t number, std::span<std::byte> difference)>;
[[nodiscard]] Result<std::vector<std::byte>> encode(const Snapshot& snapshot, const FillPage& fill);

// The values that a snapshot of this guest must have.
struct SnapshotExpectation {
  Digest module;
  std::uint64_t base_number = 0;
  std::size_t global_count = 0;
  std::uint64_t memory_bytes_max = 0;
};

// Any thread, one at a time.
class SnapshotReader {
 public:
  // Unavailable, with the reason, for all but the intact bytes of the expected snapshot. The
  // checksum covers the pages as well.
  [[nodiscard]] static Result<SnapshotReader> open(std::vector<std::byte> bytes,
                                                   const SnapshotExpectation& expectation);

  // Everything except the contents of the pages.
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }

  // Called for each page in ascending order. After an error the memory is unusable.
  using ApplyPage =
      std::function<void(std::uint32_t number, std::span<const std::byte> difference)>;
  [[nodiscard]] Result<> read_pages(const ApplyPage& apply) const;

 private:
  SnapshotReader(std::vector<std::byte> bytes, Snapshot snapshot, std::size_t frame_offset)
      : bytes_(std::move(bytes)), snapshot_(std::move(snapshot)), frame_offset_(frame_offset) {}

  std::vector<std::byte> bytes_;
  Snapshot snapshot_;
  std::size_t frame_offset_;  // Where the compressed pages begin.
};

// Frees the zstd contexts that are kept from one snapshot to the next. Call it when no guest will
// resume or fall asleep soon. Any thread.
void drop_snapshot_spares();

}  // namespace hangar::wasm
