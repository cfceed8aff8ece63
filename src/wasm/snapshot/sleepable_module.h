// A module that was rewritten so that its instances can be suspended, and the images that they
// share. See docs/formats/snapshot.md.
#pragma once

#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/code_cache.h"
#include "wasm/module.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::wasm {

class SleepableModule : public std::enable_shared_from_this<SleepableModule> {
 public:
  // Rewrites `wasm_bytes` (on a worker), compiles or loads the result through `cache`, and makes
  // the image of the initial memory, before any code has run. Errors as for CodeCache::load. An
  // obstacle is not an error. Loop thread.
  [[nodiscard]] static io::Task<Result<std::shared_ptr<const SleepableModule>>> load(
      CodeCache& cache, Digest digest, std::shared_ptr<const std::string> wasm_bytes,
      std::filesystem::path image_directory, std::stop_token stop,
      budget::Beneficiaries beneficiaries = budget::unnamed_consumer());

  ~SleepableModule();

  // The pointer that all owners share, whatever keeps this object alive otherwise.
  [[nodiscard]] std::shared_ptr<const SleepableModule> shared() const { return shared_from_this(); }
  [[nodiscard]] const Digest& digest() const;       // Of the original module.
  [[nodiscard]] const Digest& code_digest() const;  // Of the rewritten one, as CodeCache has it.
  // The native code. It is unloaded when no one has held it for a while, and this call loads it
  // again; Unavailable when that fails. Loop thread; the module outlives the task.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> code(budget::Consumer whose) const;
  // True when code() need not load it. Loop thread.
  [[nodiscard]] bool is_loaded() const;
  // Why its instances cannot sleep ("writes to a table (table.set)"); null when they can.
  [[nodiscard]] const std::string* obstacle() const;
  // The initial size of an instance's linear memory.
  [[nodiscard]] std::uint64_t memory_bytes_min() const;
  // Names the image of the initial memory, which snapshots differ from: the same in each process
  // that reads the same module. Zero with an obstacle.
  [[nodiscard]] std::uint64_t image_number() const;
  // The size of the shared images on disk.
  [[nodiscard]] std::uint64_t image_bytes() const;
  // Work for a worker: drops its images, and its code unless that is loaded, from the page cache,
  // and returns the number of files. They are read again when needed. Loop thread.
  [[nodiscard]] std::move_only_function<std::size_t()> page_cache_drop() const;

  // For wasm/ only.
  struct Native;
  explicit SleepableModule(std::unique_ptr<Native> native);
  [[nodiscard]] Native& native() const;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
