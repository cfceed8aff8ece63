// The storage of sleeping guests: one private file (a slab of extents), opened and unlinked, so
// that no data of a guest outlive the process. docs/formats/snapshot.md describes its layout.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
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
  struct Limits {
    std::uint64_t file_bytes_max = limits::kSnapshotBytesMax;  // How large the file may grow.
    std::uint64_t tenant_bytes_max = limits::kSnapshotBytesPerTenantMax;
  };
  // Creates `directory` with mode 0700 if it is missing.
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory, Limits limits);
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory);
  ~SnapshotStore();

  struct Extent {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t account = 0;  // The number of its tenant among those with extents here.
  };
  static_assert(sizeof(Extent) == 16, "there are thousands: the account lies where padding would");

  // LimitExceeded, which says whose bound was hit, or Unavailable; nothing is then stored.
  [[nodiscard]] Result<Extent> write(
      std::span<const std::byte> bytes,
      const budget::Tenant& tenant = budget::unnamed_consumer().tenant);
  [[nodiscard]] Result<> read(Extent extent, std::span<std::byte> into) const;
  void free(Extent extent);

  // Bytes of live extents by tenant; also used to narrow their limits.
  [[nodiscard]] budget::Accounts& accounts();

  // The bytes of live extents, and those of the file.
  [[nodiscard]] std::uint64_t live_bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const;

 private:
  struct Native;
  explicit SnapshotStore(std::unique_ptr<Native> native);
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
