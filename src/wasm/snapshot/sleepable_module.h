// A module that was rewritten so that its instances can leave memory, and the images that they
// share. See docs/formats/snapshot.md.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/code_cache.h"
#include "wasm/module.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::wasm {

class SleepableModule {
 public:
  // Rewrites `wasm_bytes` (on a worker), compiles or loads the result through `cache`, and makes
  // the image of the memory as it is before anything has run. Errors as CodeCache::load. A module
  // with an obstacle is no error. Loop thread.
  [[nodiscard]] static io::Task<Result<std::shared_ptr<const SleepableModule>>> load(
      CodeCache& cache, Digest digest, std::shared_ptr<const std::string> wasm_bytes,
      std::filesystem::path image_directory, std::stop_token stop,
      budget::Consumer consumer = budget::unnamed_consumer());

  ~SleepableModule();

  [[nodiscard]] const Digest& digest() const;  // Of the module as its author made it.
  // The native code. While nobody holds it and nobody has for a while it is not loaded, and loaded
  // again here; Unavailable when that fails. Loop thread; the module outlives the task.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> code() const;
  // Whether code() has nothing to do. Loop thread.
  [[nodiscard]] bool is_loaded() const;
  // Why its instances cannot sleep ("writes to a table (table.set)"); null when they can.
  [[nodiscard]] const std::string* obstacle() const;
  // Of the linear memory that an instance begins with.
  [[nodiscard]] std::uint64_t memory_bytes_min() const;
  // What the shared images take on disk.
  [[nodiscard]] std::uint64_t image_bytes() const;

  // For wasm/ only.
  struct Native;
  explicit SleepableModule(std::unique_ptr<Native> native);
  [[nodiscard]] Native& native() const;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
