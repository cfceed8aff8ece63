// Where sleeping guests lie: one private file (a slab of extents), opened and unlinked, so that
// nothing of a guest outlives the process. Its layout is docs/formats/snapshot.md.
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
    std::uint64_t file_bytes_max = limits::kSnapshotBytesMax;  // What the file may grow to.
    std::uint64_t tenant_bytes_max = limits::kSnapshotBytesPerTenantMax;
  };
  // `directory` is made 0700 when it is missing.
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory, Limits limits);
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory);
  ~SnapshotStore();

  struct Extent {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t account = 0;  // Of its tenant, among those that have something here.
  };
  static_assert(sizeof(Extent) == 16, "there are thousands: the account lies where padding would");

  // LimitExceeded, which says whose bound it is, or Unavailable; nothing is kept then.
  [[nodiscard]] Result<Extent> write(
      std::span<const std::byte> bytes,
      const budget::Tenant& tenant = budget::unnamed_consumer().tenant);
  [[nodiscard]] Result<> read(Extent extent, std::span<std::byte> into) const;
  void free(Extent extent);

  // Bytes of live extents by tenant, and where their limits are narrowed.
  [[nodiscard]] budget::Accounts& accounts();

  // Of live extents, and of the file.
  [[nodiscard]] std::uint64_t live_bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const;

 private:
  struct Native;
  explicit SnapshotStore(std::unique_ptr<Native> native);
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
