// The inside of SleepableModule.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
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

// What is about native code is for the loop thread, the other functions are for any; the rest never
// changes after load().
struct SleepableModule::Native {
  explicit Native(Engine& engine_in) : engine(engine_in), loading_(engine_in.loop(), 1) {}

  Engine& engine;
  Digest digest;
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

  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> acquire_code();
  [[nodiscard]] bool has_code() const { return code_ != nullptr; }
  void set_code(std::shared_ptr<const Module> code);
  // Somebody who held it does not any more.
  void on_code_released();

 private:
  // Null while it is not loaded. Whoever needs it holds it too.
  std::shared_ptr<const Module> code_;
  std::shared_ptr<const internal::CodeFile> code_file_;  // Null with an obstacle.
  Digest code_digest_;                                   // Of the rewritten module.
  Instant code_used_;                                    // When it was last asked for.
  io::Loop::Timer code_timer_;                           // While it may become unused.
  bool is_code_timed_ = false;
  io::Semaphore loading_;

  mutable std::mutex mutex_;
  std::shared_ptr<const BaseImage> settled_;
  bool is_settling_ = false;
};

}  // namespace hangar::wasm
