// The state of an instance between calls, from which other instances start, so that a computation
// that all of them would repeat is done once.
#pragma once

#include <cstdint>
#include <memory>

namespace hangar::wasm {

// Immutable: any thread. Made by Instance::checkpoint.
class Checkpoint {
 public:
  struct Native;
  explicit Checkpoint(std::unique_ptr<const Native> native);
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint();

  // The size of its image on disk. Instances hold the pages that they write to, and share the rest.
  [[nodiscard]] std::uint64_t image_bytes() const;
  // The memory that it holds, in a process that can make no files.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // For wasm/ only.
  [[nodiscard]] const Native& native() const { return *native_; }

 private:
  std::unique_ptr<const Native> native_;
};

}  // namespace hangar::wasm
