// The inside of SleepableModule.
#pragma once

#include "base/in_slot.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
#include "wasm/internal/engine_native.h"
#include "wasm/module.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace hangar::wasm {

// What is about native code is for the loop thread, the other functions are for any; the rest never
// changes after load(). There is one for each module, however long its instances sleep.
struct SleepableModule::Native : slots::InSlot {
  Native(Engine& engine_in, std::filesystem::path image_directory_in)
      : engine(engine_in),
        image_directory(
            *engine.native().image_directories.insert(std::move(image_directory_in)).first) {}

  Engine& engine;
  const std::filesystem::path& image_directory;
  Digest digest;
  std::unique_ptr<const std::string> obstacle;  // Null without one.
  // Memory as the data segments have it. Null with an obstacle.
  std::shared_ptr<const BaseImage> initial;
  std::uint32_t global_count = 0;
  std::uint64_t memory_bytes_min = 0;  // As Module::memory_bytes_min().
  std::atomic<std::uint32_t> instance_count = 0;
  bool has_start = false;

  // Memory as one instance had it after it had begun: what all instances have computed for
  // themselves in the same way. Null until it takes less than what it saves.
  [[nodiscard]] std::shared_ptr<const BaseImage> settled() const;
  // Makes it of `memory`, unless it is there or somebody is at it. `pages`: where `memory` is not
  // zero. A failure changes nothing.
  void settle(std::span<const std::byte> memory, const PageRanges& pages);

  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> acquire_code();
  [[nodiscard]] bool has_code() const { return code_ != nullptr; }
  void set_code(std::shared_ptr<const Module> code);
  // An instance holds it from now on, for as long as its guest is in memory; and does not any more.
  void on_code_held() { ++code_->holders; }
  void on_code_released();

 private:
  struct Code {
    std::shared_ptr<const Module> module;  // Whoever needs it holds it too.
    Instant used;                          // When it was last asked for.
    std::uint32_t holders = 0;             // Instances.
    io::Loop::Timer timer = {};            // While there are none.
    bool is_timed = false;
  };
  void unload_when_unused();
  enum class Settling : std::uint8_t { NotYet, UnderWay, Done };

  std::atomic<Settling> settling_ = Settling::NotYet;
  std::shared_ptr<const BaseImage> settled_;             // Does not change once it is Done.
  std::unique_ptr<Code> code_;                           // Null while it is not loaded.
  std::shared_ptr<const internal::CodeFile> code_file_;  // Null with an obstacle.
};

}  // namespace hangar::wasm
