// Where sleeping guests lie: one private file (a slab of extents), opened and unlinked, so that
// nothing of a guest outlives the process. Its layout is docs/formats/snapshot.md.
#pragma once

#include "base/result.h"
#include "wasm/limits.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace hangar::wasm {

// Any thread.
class SnapshotStore {
 public:
  // `directory` is made 0700 when it is missing. `bytes_max`: what the file may grow to.
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory, std::uint64_t bytes_max = limits::kSnapshotBytesMax);
  ~SnapshotStore();

  struct Extent {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
  };
  // LimitExceeded or Unavailable; nothing is kept then.
  [[nodiscard]] Result<Extent> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<> read(Extent extent, std::span<std::byte> into) const;
  void free(Extent extent);

  // Of live extents, and of the file.
  [[nodiscard]] std::uint64_t live_bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const;

 private:
  struct Native;
  explicit SnapshotStore(std::unique_ptr<Native> native);
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
