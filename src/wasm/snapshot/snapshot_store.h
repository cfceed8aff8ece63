// The storage of sleeping guests: one private file (a slab of extents), opened and unlinked, so
// that no data of a guest outlive the process. docs/formats/snapshot.md describes its layout.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/descriptor.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshots.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace hangar::wasm {

class LayerFile;
class PrivateFile;

// Any thread.
class SnapshotStore final : public Snapshots {
 public:
  struct Limits {
    std::uint64_t file_bytes_max = limits::kSnapshotBytesMax;  // The maximum size of the file.
    std::uint64_t tenant_bytes_max = limits::kSnapshotBytesPerTenantMax;
  };
  // Creates `directory` with mode 0700 if it is missing.
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory, Limits limits);
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open(
      const std::filesystem::path& directory);
  ~SnapshotStore();

  // A host that is replaced in place leaves the extents of sleeping guests to its successor, and
  // the file with them.
  //
  // Continues to use the file of such a host, which has sleeping guests at `kept` (accounts are
  // ignored). Each of `kept` must be either adopted or discarded. Corrupt when they cannot be
  // extents of this file.
  [[nodiscard]] static Result<std::unique_ptr<SnapshotStore>> open_again(
      const std::filesystem::path& directory, Limits limits, io::Descriptor file,
      std::vector<Extent> kept);
  // Counts one of `kept` as the tenant's. LimitExceeded; then it is discarded.
  [[nodiscard]] Result<Extent> adopt(Extent kept, const budget::Tenant& tenant);
  void discard(Extent kept);
  // Ends this store's part in an extent, whose space stays in use.
  void leave(Extent extent);
  // A descriptor of the file, for the successor. Unavailable when there are none left.
  [[nodiscard]] Result<io::Descriptor> leave_file() const;

  [[nodiscard]] Result<Extent> write(
      std::span<const std::byte> bytes,
      const budget::Tenant& tenant = budget::unnamed_consumer().tenant) override;
  [[nodiscard]] Result<> read(Extent extent, std::span<std::byte> into) const override;
  void free(Extent extent) override;

  // For bytes that arrive in pieces. Errors as for write(). Bytes that were not written are
  // undefined.
  [[nodiscard]] Result<Extent> reserve(std::uint64_t size_bytes, const budget::Tenant& tenant);
  // Within the extent. Unavailable; the caller must still free the extent.
  [[nodiscard]] Result<> write_piece(Extent extent, std::uint64_t offset,
                                     std::span<const std::byte> bytes) const;
  [[nodiscard]] Result<> read_piece(Extent extent, std::uint64_t offset,
                                    std::span<std::byte> into) const;

  // In an extent of the file. Layers take more room than compressed snapshots, so LimitExceeded
  // also if less than half of the store, or of the tenant's share, would be left for others.
  [[nodiscard]] Result<std::unique_ptr<PageLayer>> make_layer(
      const PageRanges& pieces, const budget::Tenant& tenant) override;

  // The same in a file of its own. Blocking. LimitExceeded also when there are as many such files
  // as this process has descriptors for, Unavailable when the disk fails.
  [[nodiscard]] Result<std::unique_ptr<LayerFile>> make_layer_file(std::uint32_t pages,
                                                                   const budget::Tenant& tenant);
  // The same with a file that the host before this one has left.
  [[nodiscard]] Result<std::unique_ptr<LayerFile>> adopt_layer_file(io::Descriptor file,
                                                                    std::uint32_t pages,
                                                                    const budget::Tenant& tenant);
  // The largest layer for which make_layer_file() would have room now.
  [[nodiscard]] std::uint32_t layer_file_pages_max(const budget::Tenant& tenant);

  // Drops the file, and the layer files that were last used before `idle_since`, from the page
  // cache, as far as they are on disk. Blocking. Returns the number of files.
  std::size_t drop_page_cache(Instant idle_since) const;

  // Bytes of live extents by tenant; also used to narrow their limits.
  [[nodiscard]] budget::Accounts& accounts();

  // The bytes of live extents and layer files, and those of all files on disk.
  [[nodiscard]] std::uint64_t live_bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const;

 private:
  class StoredLayer;
  friend class LayerFile;

  // Requires that the mutex is held.
  [[nodiscard]] std::uint32_t locked_layer_file_pages_max(const budget::Tenant& tenant);
  // Counts a layer file as the tenant's; returns the number of its account.
  [[nodiscard]] Result<std::uint32_t> reserve_layer_file(std::uint32_t pages,
                                                         const budget::Tenant& tenant);
  [[nodiscard]] std::unique_ptr<LayerFile> add_layer_file(PrivateFile file, std::uint32_t pages,
                                                          std::uint32_t account);
  // What may be stored uncompressed now.
  [[nodiscard]] std::uint64_t room_for_layers(const budget::Tenant& tenant);
  void give_back_layer_file(std::uint32_t pages, std::uint32_t account);
  void give_back_layer_file(const LayerFile& file);
  // An extent of whole pages, which memories can map. write_pages() must write all of them before
  // map_pages().
  [[nodiscard]] Result<Extent> reserve_pages(std::uint32_t pages, const budget::Tenant& tenant);
  // From page `first` of the extent. Unavailable when the disk fails.
  [[nodiscard]] Result<> write_pages(Extent extent, std::uint32_t first,
                                     std::span<const std::byte> pages) const;
  // Maps them over `memory` for writing, privately, in place of what was there. Unavailable when
  // the kernel refuses.
  [[nodiscard]] Result<> map_pages(Extent extent, std::uint32_t first,
                                   std::span<std::byte> memory) const;

  struct Native;
  explicit SnapshotStore(std::unique_ptr<Native> native);
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::wasm
