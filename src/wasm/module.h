// A module as native code, of which any number of instances may exist at once.
#pragma once

#include "wasm/module_header.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

struct wasmtime_module;

namespace hangar::wasm {

class Engine;

namespace internal {
class CodeFile;
class UsualPages;
}  // namespace internal

// Made by CodeCache. Its code is mapped from the cache's file, so processes share it, and the
// kernel may drop it from memory while no guest runs it. Immutable: any thread.
class Module {
 public:
  // The allocator for its instances. Nearly all runs use the pool. A module with more functions or
  // tables than a slot of the pool has room for is instantiated on demand, which takes some 0.5 ms
  // more. Sleepable: the memory contains an image of ours (snapshot/sleepable_module.h).
  enum class Allocation : std::uint8_t { Pooled, OnDemand, Sleepable };

  struct Parts {
    Allocation allocation = Allocation::Pooled;
    wasmtime_module* code = nullptr;                           // Owned by the Module.
    std::shared_ptr<const internal::CodeFile> file = nullptr;  // Mapped file of the code.
  };
  explicit Module(Parts parts);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  [[nodiscard]] Allocation allocation() const { return parts_.allocation; }
  // Built at each call: callers need them only when a guest starts, and a hundred modules that stay
  // loaded for some seconds would each keep theirs.
  [[nodiscard]] std::vector<Import> imports() const;
  [[nodiscard]] const std::vector<Export>& exports() const { return exports_; }
  // Null when there is no export of that name.
  [[nodiscard]] const Export* find_export(std::string_view name) const;
  // The initial size of the exported memory; zero without one.
  [[nodiscard]] std::uint64_t memory_bytes_min() const { return memory_bytes_min_; }
  // The size of the mapped native code; not all of it need be resident.
  [[nodiscard]] std::uint64_t code_bytes() const { return code_bytes_; }

  // Releases the memory of its code to the system, even while the code runs; the pages needed come
  // back from the page cache, or from the cache's file. Takes some 0.1 ms.
  void release_pages() const;

  // For wasm/ only.
  [[nodiscard]] const wasmtime_module* native() const { return parts_.code; }
  [[nodiscard]] const std::shared_ptr<const internal::CodeFile>& file() const {
    return parts_.file;
  }
  // Not for Sleepable modules.
  [[nodiscard]] internal::UsualPages& usual_pages() const { return *usual_pages_; }

 private:
  Parts parts_;
  std::vector<Export> exports_;
  std::uint64_t memory_bytes_min_ = 0;
  std::uint64_t code_bytes_ = 0;
  std::unique_ptr<internal::UsualPages> usual_pages_;  // For runs from the beginning.
};

}  // namespace hangar::wasm
