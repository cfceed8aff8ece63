// A file without a name, for what must not outlive the process.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

namespace hangar::wasm {

// Reading and writing are for any thread.
class PrivateFile {
 public:
  // In `directory`, which is made 0700 when it is missing. Blocking.
  [[nodiscard]] static Result<PrivateFile> open(const std::filesystem::path& directory);

  PrivateFile(PrivateFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Unavailable, with what the system says: no space, a broken disk.
  [[nodiscard]] Result<> write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Unavailable also when the file ends before.
  [[nodiscard]] Result<> read(std::uint64_t offset, std::span<std::byte> into) const;
  [[nodiscard]] Result<> truncate(std::uint64_t size_bytes) const;
  // Gives a part of it back to the disk where the file system can; reads as zeros then.
  void punch(std::uint64_t offset, std::uint64_t size_bytes) const;
  // What it takes on disk, holes not counted.
  [[nodiscard]] std::uint64_t disk_bytes() const;

 private:
  explicit PrivateFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace hangar::wasm
