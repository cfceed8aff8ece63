// The state of a suspended instance and nothing else, for owners of thousands.
#pragma once

#include "base/time.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/snapshots.h"

#include <cstdint>
#include <memory>

namespace hangar::wasm {

class BaseImage;
class SleepableModule;

// Comes from Instance::take_asleep(), and can become an Instance again. Loop thread. The store and
// the engine outlive it.
class SleepingInstance {
 public:
  // What the instance resumes from: a snapshot, and the image from which the snapshot differs.
  struct Rest {
    Snapshots* store = nullptr;
    Snapshots::Extent extent;
    std::shared_ptr<const BaseImage> image;
    std::unique_ptr<PageLayer> layer;  // Over the image; null without one.
    std::uint64_t memory_bytes = 0;    // The size of its linear memory once it is resumed.
    Instant since;                     // When it fell asleep, if that is known.

    [[nodiscard]] std::uint64_t disk_bytes() const;
  };
  SleepingInstance(std::shared_ptr<const SleepableModule> module, std::uint64_t memory_bytes_max,
                   Rest rest);
  // What arrives with a snapshot from another process that has the same module (handed_module.h).
  struct Arrival {
    std::uint64_t memory_bytes = 0;  // memory_bytes() of the instance there.
    std::unique_ptr<PageLayer> layer = nullptr;
    Instant since = {};  // When it fell asleep, if that is known.
  };
  [[nodiscard]] static SleepingInstance arrived(std::shared_ptr<const SleepableModule> module,
                                                std::uint64_t memory_bytes_max, Snapshots& store,
                                                Snapshots::Extent extent, Arrival arrival);
  SleepingInstance(SleepingInstance&&) noexcept = default;
  SleepingInstance& operator=(SleepingInstance&&) = delete;
  ~SleepingInstance();  // Frees the snapshot, unless it was taken.

  [[nodiscard]] const std::shared_ptr<const SleepableModule>& module() const { return module_; }
  [[nodiscard]] std::uint64_t memory_bytes_max() const { return memory_bytes_max_; }
  // The snapshot, in the store to which it was written.
  [[nodiscard]] Snapshots::Extent extent() const { return rest_.extent; }
  [[nodiscard]] std::uint64_t disk_bytes() const { return rest_.disk_bytes(); }
  // If there is one, extent() alone is not all of its memory.
  [[nodiscard]] const PageLayer* layer() const { return rest_.layer.get(); }
  [[nodiscard]] std::uint64_t memory_bytes() const { return rest_.memory_bytes; }

  // The caller must then free the snapshot, and the module counts one instance less.
  [[nodiscard]] Rest take_rest() &&;

 private:
  std::shared_ptr<const SleepableModule> module_;  // Null once the state was taken or moved.
  std::uint64_t memory_bytes_max_;
  Rest rest_;
};

}  // namespace hangar::wasm
