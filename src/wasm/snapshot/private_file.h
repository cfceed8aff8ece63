// A file without a name, for data that must not outlive the process.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

namespace hangar::wasm {

// Reading and writing: any thread.
class PrivateFile {
 public:
  // Creates it in `directory`, which is created with mode 0700 if it is missing. Blocking.
  [[nodiscard]] static Result<PrivateFile> open(const std::filesystem::path& directory);

  // Takes ownership of the descriptor of such a file.
  [[nodiscard]] static PrivateFile adopt(int descriptor) { return PrivateFile(descriptor); }

  PrivateFile(PrivateFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // The caller closes it.
  [[nodiscard]] int release() && { return std::exchange(descriptor_, -1); }
  // Unavailable, with the system's reason: no space, a broken disk.
  [[nodiscard]] Result<> write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Unavailable also when the file ends before the range does.
  [[nodiscard]] Result<> read(std::uint64_t offset, std::span<std::byte> into) const;
  [[nodiscard]] Result<> truncate(std::uint64_t size_bytes) const;
  // Frees the disk space of a range if the file system can; the range then reads as zeros.
  void punch(std::uint64_t offset, std::uint64_t size_bytes) const;
  // Asks the kernel to drop the file's pages from the page cache; those that are mapped, or not yet
  // on disk, stay.
  void drop_page_cache() const;
  // The disk space that it occupies, without holes.
  [[nodiscard]] std::uint64_t disk_bytes() const;

 private:
  explicit PrivateFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace hangar::wasm
