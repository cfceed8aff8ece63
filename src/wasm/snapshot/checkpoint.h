// An instance at rest, kept for others to begin with: what all of them would compute for themselves
// in the same way, computed once.
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

  // What its image takes on disk; instances hold what they write to, and share the rest.
  [[nodiscard]] std::uint64_t image_bytes() const;

  // For wasm/ only.
  [[nodiscard]] const Native& native() const { return *native_; }

 private:
  std::unique_ptr<const Native> native_;
};

}  // namespace hangar::wasm
