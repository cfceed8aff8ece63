// The pages of one layer (page_layer.h) in a file of their own: a guest process that maps it sees
// no page of another guest.
#pragma once

#include "base/in_slot.h"
#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/loop.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/snapshot/snapshot_store.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace hangar::wasm {

// Comes from SnapshotStore::make_layer_file(), and counts as the store's until it ends. Any thread,
// one at a time. The store outlives it.
class LayerFile : public slots::InSlot {
 public:
  LayerFile(SnapshotStore& store, PrivateFile file, std::uint32_t pages, std::uint32_t account)
      : store_(store), file_(std::move(file)), pages_(pages), account_(account) {
    use();
  }
  LayerFile(const LayerFile&) = delete;
  LayerFile& operator=(const LayerFile&) = delete;
  // Empties the file: a process that still has a descriptor cannot keep its space. A guest that
  // still uses a mapping of it fails.
  ~LayerFile();

  // Ends it without emptying the file, which another process of this host continues to use.
  [[nodiscard]] io::Descriptor leave() &&;

  [[nodiscard]] std::uint32_t pages() const { return pages_; }
  [[nodiscard]] std::uint64_t disk_bytes() const { return std::uint64_t{pages_} * kPageBytes; }

  // Within the file, from page `first` on. Blocking. Unavailable when the disk fails.
  [[nodiscard]] Result<> write_pages(std::uint32_t first, std::span<const std::byte> pages) const;
  // A descriptor with which nobody can write. Unavailable when there are none left.
  [[nodiscard]] Result<io::Descriptor> open_for_reading() const;
  // When it was last written, or given to a process. Any thread.
  [[nodiscard]] Instant used() const { return used_.load(); }

 private:
  friend class SnapshotStore;
  void use() const { used_ = io::Loop::now(); }

  SnapshotStore& store_;
  PrivateFile file_;  // None after leave().
  const std::uint32_t pages_;
  const std::uint32_t account_;  // The number of its tenant in the store.
  mutable std::atomic<Instant> used_;
};

}  // namespace hangar::wasm
