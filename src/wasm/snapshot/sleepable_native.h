// The internals of SleepableModule.
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

// Members about native code belong to the loop thread. The other functions may be called on any
// thread, and the other data never change after load(). There is one object for each module; it
// lives on while its instances sleep.
struct SleepableModule::Native : slots::InSlot {
  Native(Engine& engine_in, std::filesystem::path image_directory_in)
      : engine(engine_in),
        image_directory(
            *engine.native().image_directories.insert(std::move(image_directory_in)).first) {}

  Engine& engine;
  const std::filesystem::path& image_directory;
  // False in a process that can make no files.
  [[nodiscard]] bool makes_images() const { return !image_directory.empty(); }
  Digest digest;
  Digest code_digest;
  std::unique_ptr<const std::string> obstacle;  // Null if there is none.
  // The memory that the data segments describe. Null if there is an obstacle.
  std::shared_ptr<const BaseImage> initial;
  std::uint32_t global_count = 0;
  std::uint64_t memory_bytes_min = 0;  // As Module::memory_bytes_min().
  std::atomic<std::uint32_t> instance_count = 0;
  bool has_start = false;

  // A copy of the memory of one instance after it had started, with the results that all instances
  // compute alike. Null until the copy takes less space than it saves.
  [[nodiscard]] std::shared_ptr<const BaseImage> settled() const;
  // Makes that image from `memory`, unless it exists or another worker is making it. `pages`: where
  // `memory` is not zero. A failure changes nothing.
  void settle(std::span<const std::byte> memory, const PageRanges& pages);
  // Stops settle() from making images: snapshots will be read where such an image does not exist.
  void never_settle() { settling_ = Settling::Done; }

  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> acquire_code(
      budget::Consumer whose);
  [[nodiscard]] bool has_code() const { return code_ != nullptr; }
  // The code's file; null while the code is loaded.
  [[nodiscard]] std::shared_ptr<const internal::CodeFile> unused_code_file() const;
  void set_code(std::shared_ptr<const Module> code);
  // Called when an instance brings its guest into memory, and when the guest leaves memory.
  void on_code_held() { ++code_->holders; }
  void on_code_released();

 private:
  struct Code {
    std::shared_ptr<const Module> module;  // Its users hold it as well.
    Instant used;                          // When code() last returned it, or an instance released
                                           // it.
    std::uint32_t holders = 0;             // Instances that hold the code.
    io::Loop::Timer timer = {};            // Runs while there are no holders.
    bool is_timed = false;
  };
  void unload_when_unused();
  enum class Settling : std::uint8_t { NotYet, UnderWay, Done };

  std::atomic<Settling> settling_ = Settling::NotYet;
  std::shared_ptr<const BaseImage> settled_;             // Constant once settling_ is Done.
  std::unique_ptr<Code> code_;                           // Null while it is not loaded.
  std::shared_ptr<const internal::CodeFile> code_file_;  // Null if there is an obstacle.
};

}  // namespace hangar::wasm
