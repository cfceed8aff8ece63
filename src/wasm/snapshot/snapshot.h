// The bytes of a sleeping guest. docs/formats/snapshot.md is the specification.
//
// They come back from a disk, so nothing of them is used before their checksum was seen.
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

// A global of any numeric type, little-endian, zeros behind.
using GlobalValue = std::array<std::byte, 16>;

struct Snapshot {
  Digest module;
  std::uint64_t base_number = 0;  // Of the image that `pages` differ from.
  std::uint64_t memory_bytes = 0;
  std::vector<GlobalValue> globals;
  PageRanges pages;

  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

// `fill` writes what page `number` has exclusive-ored with the image's; called for each page once,
// ascending. Unavailable when there is no memory for it, LimitExceeded beyond 4 GiB.
using FillPage = std::function<void(std::uint32_t number, std::span<std::byte> difference)>;
[[nodiscard]] Result<std::vector<std::byte>> encode(const Snapshot& snapshot, const FillPage& fill);

// What must be so for a snapshot to be one of this guest.
struct SnapshotExpectation {
  Digest module;
  std::uint64_t base_number = 0;
  std::size_t global_count = 0;
  std::uint64_t memory_bytes_max = 0;
};

// Any thread, one at a time.
class SnapshotReader {
 public:
  // Unavailable, saying what is wrong, for anything but the intact bytes of a snapshot that is
  // expected. The pages are known to be intact then, too.
  [[nodiscard]] static Result<SnapshotReader> open(std::vector<std::byte> bytes,
                                                   const SnapshotExpectation& expectation);

  // All but the contents of the pages.
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }

  // Each page, ascending. After an error what was applied is of no use.
  using ApplyPage =
      std::function<void(std::uint32_t number, std::span<const std::byte> difference)>;
  [[nodiscard]] Result<> read_pages(const ApplyPage& apply) const;

 private:
  SnapshotReader(std::vector<std::byte> bytes, Snapshot snapshot, std::size_t frame_offset)
      : bytes_(std::move(bytes)), snapshot_(std::move(snapshot)), frame_offset_(frame_offset) {}

  std::vector<std::byte> bytes_;
  Snapshot snapshot_;
  std::size_t frame_offset_;  // Of the compressed pages.
};

// Gives back what is kept from one snapshot to the next so that it need not be made again. For when
// nobody wakes or falls asleep any more. Any thread.
void drop_snapshot_spares();

}  // namespace hangar::wasm
