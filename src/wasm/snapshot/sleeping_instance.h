// An instance that is asleep, and no more of it than that takes: for whoever has thousands.
#pragma once

#include "wasm/snapshot/snapshot_store.h"

#include <cstdint>
#include <memory>

namespace hangar::wasm {

class BaseImage;
class SleepableModule;

// Comes from Instance::take_asleep(), and becomes an Instance again. Loop thread. Store and engine
// outlive it.
class SleepingInstance {
 public:
  // What it resumes from: a snapshot, and the image from which that differs.
  struct Rest {
    SnapshotStore* store = nullptr;
    SnapshotStore::Extent extent;
    std::shared_ptr<const BaseImage> image;
    std::uint64_t memory_bytes = 0;  // Of its linear memory when it is back.
  };
  SleepingInstance(std::shared_ptr<const SleepableModule> module, std::uint64_t memory_bytes_max,
                   Rest rest);
  SleepingInstance(SleepingInstance&&) noexcept = default;
  SleepingInstance& operator=(SleepingInstance&&) = delete;
  ~SleepingInstance();  // Frees the snapshot, unless that was taken.

  [[nodiscard]] const std::shared_ptr<const SleepableModule>& module() const { return module_; }
  [[nodiscard]] std::uint64_t memory_bytes_max() const { return memory_bytes_max_; }
  [[nodiscard]] std::uint64_t disk_bytes() const { return rest_.extent.size_bytes; }
  [[nodiscard]] std::uint64_t memory_bytes() const { return rest_.memory_bytes; }

  // The snapshot is the caller's to free from here on, and the module has an instance less.
  [[nodiscard]] Rest take_rest() &&;

 private:
  std::shared_ptr<const SleepableModule> module_;  // Null when there is nothing left of it.
  std::uint64_t memory_bytes_max_;
  Rest rest_;
};

}  // namespace hangar::wasm
