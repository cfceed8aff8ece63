// A module as native code, ready to be instantiated any number of times at once.
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

// Made by CodeCache. Its code is mapped from the cache's file, so that it is shared with other
// processes and may leave memory when nobody runs it. Immutable: any thread.
class Module {
 public:
  // Which allocator instances come from. Nearly all runs come from the pool; modules with more
  // functions or tables than its slots have room for are instantiated on demand, some 0.5 ms
  // slower. Sleepable: memories that hold an image of ours (snapshot/sleepable_module.h).
  enum class Allocation : std::uint8_t { Pooled, OnDemand, Sleepable };

  struct Parts {
    Allocation allocation = Allocation::Pooled;
    wasmtime_module* code = nullptr;                           // Owned by the Module.
    std::shared_ptr<const internal::CodeFile> file = nullptr;  // What it was mapped from.
  };
  explicit Module(Parts parts);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  [[nodiscard]] Allocation allocation() const { return parts_.allocation; }
  // Made anew at each call: they are asked for when a guest starts, and a hundred modules that stay
  // loaded for some seconds would keep theirs.
  [[nodiscard]] std::vector<Import> imports() const;
  [[nodiscard]] const std::vector<Export>& exports() const { return exports_; }
  // Null when there is none of that name.
  [[nodiscard]] const Export* find_export(std::string_view name) const;
  // What an instance has from the start: of its exported memory, zero without one.
  [[nodiscard]] std::uint64_t memory_bytes_min() const { return memory_bytes_min_; }
  // Size of the native code, mapped, not necessarily resident.
  [[nodiscard]] std::uint64_t code_bytes() const { return code_bytes_; }

  // Gives the memory that its code occupies back to the system, also while it runs; where it is
  // needed it comes again from the page cache, or from the cache's file. Some 0.1 ms.
  void release_pages() const;

  // For wasm/ only.
  [[nodiscard]] const wasmtime_module* native() const { return parts_.code; }
  [[nodiscard]] const std::shared_ptr<const internal::CodeFile>& file() const {
    return parts_.file;
  }
  // Of one that is not Sleepable.
  [[nodiscard]] internal::UsualPages& usual_pages() const { return *usual_pages_; }

 private:
  Parts parts_;
  std::vector<Export> exports_;
  std::uint64_t memory_bytes_min_ = 0;
  std::uint64_t code_bytes_ = 0;
  std::unique_ptr<internal::UsualPages> usual_pages_;  // Of runs, each from the beginning.
};

}  // namespace hangar::wasm
