// The inside of SleepableModule.
#pragma once

#include "base/result.h"
#include "wasm/digest.h"
#include "wasm/module.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/sleepable_module.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace hangar::wasm {

// What its functions say is for any thread; the rest never changes after load().
struct SleepableModule::Native {
  Digest digest;
  std::shared_ptr<const Module> code;
  std::optional<std::string> obstacle;
  std::size_t global_count = 0;
  bool has_start = false;
  std::filesystem::path image_directory;
  // Memory as the data segments have it. Null with an obstacle.
  std::shared_ptr<const BaseImage> initial;

  // Memory as one instance had it after it had begun: what all instances have computed for
  // themselves in the same way. Null until it takes less than what it saves.
  [[nodiscard]] std::shared_ptr<const BaseImage> settled() const;
  // Makes it of `memory`, unless it is there or somebody is at it. `pages`: where `memory` is not
  // zero. A failure changes nothing.
  void settle(std::span<const std::byte> memory, const PageRanges& pages);

  std::atomic<std::uint32_t> instance_count = 0;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const BaseImage> settled_;
  bool is_settling_ = false;
};

}  // namespace hangar::wasm
