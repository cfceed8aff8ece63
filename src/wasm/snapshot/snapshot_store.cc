#include "wasm/snapshot/snapshot_store.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "wasm/limits.h"
#include "wasm/snapshot/layer_file.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

// Extents are rounded up to multiples of this: less than the smallest snapshot, and few
// different sizes.
constexpr std::uint64_t kGrainBytes = 256;

// Blocks are freed only in pieces that are worth a system call.
constexpr std::uint64_t kPunchBytesMin = 64 * limits::kKiB;
constexpr std::uint64_t kPunchAlignment = 4 * limits::kKiB;

// This much may be free before the file is searched for blocks to free.
constexpr std::uint64_t kSlackBytesMin = 4 * limits::kMiB;

// At most this part of the descriptors that the process may have is for layer files.
constexpr std::uint64_t kLayerDescriptorsPart = 4;

std::uint64_t layer_files_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return limits::kLayerFilesMax;
  return std::min<std::uint64_t>(limits::kLayerFilesMax, limit.rlim_cur / kLayerDescriptorsPart);
}

std::uint64_t rounded(std::uint64_t size_bytes) {
  return (size_bytes + kGrainBytes - 1) / kGrainBytes * kGrainBytes;
}

// The free ranges of a file. Best fit; neighbours are merged.
class FreeSpace {
 public:
  explicit FreeSpace(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] std::uint64_t end() const { return end_; }

  // The smallest free range that is large enough, or one at the end; std::nullopt when that passes
  // the bound.
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t size) {
    const auto found = by_size_.lower_bound({size, 0});
    if (found == by_size_.end()) {
      if (size > bytes_max_ - end_) return std::nullopt;
      return std::exchange(end_, end_ + size);
    }
    const auto [free_size, offset] = *found;
    erase(offset, free_size);
    if (free_size > size) insert(offset + size, free_size - size);
    return offset;
  }

  void give(std::uint64_t offset, std::uint64_t size) {
    if (const auto next = by_offset_.find(offset + size); next != by_offset_.end()) {
      const std::uint64_t next_size = next->second;
      erase(offset + size, next_size);
      size += next_size;
    }
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [before, before_size] = *std::prev(after);
      if (before + before_size == offset) {
        erase(before, before_size);
        offset = before;
        size += before_size;
      }
    }
    if (offset + size == end_) {
      end_ = offset;
    } else {
      insert(offset, size);
    }
  }

  // Before anything was taken: these ranges are taken, which ascend and do not overlap.
  void take_all(std::span<const std::pair<std::uint64_t, std::uint64_t>> ranges) {
    for (const auto& [offset, size] : ranges) {
      if (offset > end_) insert(end_, offset - end_);
      end_ = offset + size;
    }
  }

  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& by_offset() const {
    return by_offset_;
  }

 private:
  void insert(std::uint64_t offset, std::uint64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void erase(std::uint64_t offset, std::uint64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  const std::uint64_t bytes_max_;
  std::uint64_t end_ = 0;
  std::map<std::uint64_t, std::uint64_t> by_offset_;           // From offset to size.
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // Size and offset.
};

// One reservation for each tenant with extents in a store, found by a number that fits into an
// extent: a reservation per extent would take more memory than the rest of a small sleeping guest.
class TenantShares {
 public:
  explicit TenantShares(budget::Accounts::Limits limits) : accounts_(limits) {}

  [[nodiscard]] budget::Accounts& accounts() { return accounts_; }

  [[nodiscard]] std::expected<std::uint32_t, budget::Shortage> add(const budget::Tenant& tenant,
                                                                   std::uint64_t bytes) {
    const auto known = numbers_.find(tenant);
    if (known != numbers_.end()) {
      budget::Reservation& held = *reservations_[known->second];
      if (auto grown = held.resize(held.bytes() + bytes); !grown)
        return std::unexpected(std::move(grown).error());
      return known->second;
    }
    auto held = accounts_.reserve({.tenant = tenant, .name = {}}, bytes);
    if (!held) return std::unexpected(std::move(held).error());
    const std::uint32_t number = free_number();
    reservations_[number] = *std::move(held);
    tenants_[number] = numbers_.emplace(tenant, number).first;
    return number;
  }

  void subtract(std::uint32_t number, std::uint64_t bytes) {
    budget::Reservation& held = *reservations_[number];
    HANGAR_ASSERT(held.bytes() >= bytes, "what is freed was counted");
    if (held.bytes() > bytes) {
      std::ignore = held.resize(held.bytes() - bytes);  // Shrinking always succeeds.
      return;
    }
    reservations_[number].reset();
    numbers_.erase(tenants_[number]);
    free_.push_back(number);
  }

 private:
  [[nodiscard]] std::uint32_t free_number() {
    if (free_.empty()) {
      reservations_.emplace_back();
      tenants_.emplace_back();
      return static_cast<std::uint32_t>(reservations_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }

  budget::Accounts accounts_;
  std::map<budget::Tenant, std::uint32_t> numbers_;
  // Indexed by number.
  std::vector<std::optional<budget::Reservation>> reservations_;
  std::vector<std::map<budget::Tenant, std::uint32_t>::iterator> tenants_;
  std::vector<std::uint32_t> free_;
};

}  // namespace

struct SnapshotStore::Native {
  Native(PrivateFile file_in, std::filesystem::path directory_in, Limits limits)
      : file(std::move(file_in)),
        directory(std::move(directory_in)),
        space(limits.file_bytes_max),
        shares({.host_bytes_max = limits.file_bytes_max,
                .tenant_bytes_max = limits.tenant_bytes_max}) {}

  // Called with the mutex held.
  void give_back(std::uint64_t offset, std::uint64_t size) {
    space.give(offset, size);
    freed_bytes += size;
    if (freed_bytes < kSlackBytesMin || freed_bytes < live_bytes / 4) return;
    freed_bytes = 0;
    std::ignore = file.truncate(space.end());  // Otherwise it is overwritten later.
    for (const auto& [free_offset, free_size] : space.by_offset()) {
      if (free_size < kPunchBytesMin) continue;
      const std::uint64_t first =
          (free_offset + kPunchAlignment - 1) / kPunchAlignment * kPunchAlignment;
      const std::uint64_t end = (free_offset + free_size) / kPunchAlignment * kPunchAlignment;
      file.punch(first, end - first);
    }
  }

  const PrivateFile file;
  const std::filesystem::path directory;
  const std::uint64_t layer_files_most = layer_files_max();
  std::mutex mutex;
  FreeSpace space;
  TenantShares shares;
  std::uint64_t live_bytes = 0;  // Of extents.
  std::uint64_t layer_files = 0;
  std::set<const LayerFile*> made_layer_files;  // Those that exist.
  std::uint64_t layer_file_bytes = 0;
  std::uint64_t freed_bytes = 0;  // Since blocks were last freed.
};

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(const std::filesystem::path& directory,
                                                           Limits limits) {
  PrivateFile file = HANGAR_TRY(PrivateFile::open(directory));
  return std::unique_ptr<SnapshotStore>(
      new SnapshotStore(std::make_unique<Native>(std::move(file), directory, limits)));
}

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(const std::filesystem::path& directory) {
  return open(directory, Limits());
}

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open_again(
    const std::filesystem::path& directory, Limits limits, io::Descriptor file,
    std::vector<Extent> kept) {
  HANGAR_TRY(io::make_private_directory(directory));
  std::ranges::sort(kept, {}, &Extent::offset);
  struct stat status{};
  if (::fstat(file.value(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorKind::Corrupt, "the file of snapshots is not a regular file");
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  const std::uint64_t file_size =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), limits.file_bytes_max);
  std::uint64_t end = 0;
  for (const Extent& extent : kept) {
    const bool is_within = extent.size_bytes > 0 && extent.offset % kGrainBytes == 0 &&
                           extent.offset >= end && extent.offset <= file_size &&
                           extent.size_bytes <= file_size - extent.offset;
    if (!is_within) {
      return fail(ErrorKind::Corrupt, fmt::format("{} bytes at {} are not a snapshot of its file",
                                                  extent.size_bytes, extent.offset));
    }
    ranges.emplace_back(extent.offset, rounded(extent.size_bytes));
    end = ranges.back().first + ranges.back().second;
  }
  auto native =
      std::make_unique<Native>(PrivateFile::adopt(std::move(file).release()), directory, limits);
  native->space.take_all(ranges);
  return std::unique_ptr<SnapshotStore>(new SnapshotStore(std::move(native)));
}

Result<SnapshotStore::Extent> SnapshotStore::adopt(Extent kept, const budget::Tenant& tenant) {
  const std::uint64_t size = rounded(kept.size_bytes);
  {
    const std::scoped_lock lock(native_->mutex);
    if (const auto account = native_->shares.add(tenant, size)) {
      native_->live_bytes += size;
      kept.account = *account;
      return kept;
    }
  }
  discard(kept);
  return fail(ErrorKind::LimitExceeded, "no room on disk for its snapshot");
}

void SnapshotStore::discard(Extent kept) {
  const std::scoped_lock lock(native_->mutex);
  native_->give_back(kept.offset, rounded(kept.size_bytes));
}

void SnapshotStore::leave(Extent extent) {
  const std::uint64_t size = rounded(extent.size_bytes);
  const std::scoped_lock lock(native_->mutex);
  native_->live_bytes -= size;
  native_->shares.subtract(extent.account, size);
}

Result<io::Descriptor> SnapshotStore::leave_file() const {
  io::Descriptor file(::fcntl(native_->file.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (file.is_open()) return file;
  return fail(ErrorKind::Unavailable, fmt::format("pass on the file of snapshots: {}",
                                                  std::generic_category().message(errno)));
}

SnapshotStore::SnapshotStore(std::unique_ptr<Native> native) : native_(std::move(native)) {}

SnapshotStore::~SnapshotStore() {
  HANGAR_ASSERT(native_->live_bytes == 0 && native_->layer_files == 0,
                "sleeping guests end before their store does");
}

Result<SnapshotStore::Extent> SnapshotStore::reserve(std::uint64_t size_bytes,
                                                     const budget::Tenant& tenant) {
  if (size_bytes == 0 || size_bytes > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("a snapshot of {} bytes cannot be stored", size_bytes));
  }
  const std::uint64_t size = rounded(size_bytes);
  Extent extent{.size_bytes = static_cast<std::uint32_t>(size_bytes)};
  const std::scoped_lock lock(native_->mutex);
  const auto account = native_->shares.add(tenant, size);
  if (!account) {
    return fail(ErrorKind::LimitExceeded,
                "no room on disk for its snapshot: " + budget::to_text(account.error()));
  }
  extent.account = *account;
  const std::optional<std::uint64_t> offset = native_->space.take(size);
  if (!offset) {
    native_->shares.subtract(*account, size);
    return fail(ErrorKind::LimitExceeded,
                fmt::format("no room for a snapshot of {} bytes", size_bytes));
  }
  extent.offset = *offset;
  native_->live_bytes += size;
  return extent;
}

Result<SnapshotStore::Extent> SnapshotStore::write(std::span<const std::byte> bytes,
                                                   const budget::Tenant& tenant) {
  const Extent extent = HANGAR_TRY(reserve(bytes.size(), tenant));
  if (Result<> written = write_piece(extent, 0, bytes); !written) {
    free(extent);
    return std::unexpected(std::move(written).error());
  }
  return extent;
}

Result<> SnapshotStore::write_piece(Extent extent, std::uint64_t offset,
                                    std::span<const std::byte> bytes) const {
  HANGAR_ASSERT(offset <= extent.size_bytes && bytes.size() <= extent.size_bytes - offset,
                "a piece lies within its extent");
  return native_->file.write(extent.offset + offset, bytes);
}

Result<> SnapshotStore::read(Extent extent, std::span<std::byte> into) const {
  HANGAR_ASSERT(into.size() == extent.size_bytes, "an extent is read as a whole");
  return read_piece(extent, 0, into);
}

Result<> SnapshotStore::read_piece(Extent extent, std::uint64_t offset,
                                   std::span<std::byte> into) const {
  HANGAR_ASSERT(offset <= extent.size_bytes && into.size() <= extent.size_bytes - offset,
                "a piece lies within its extent");
  return native_->file.read(extent.offset + offset, into);
}

namespace {

// The pages of an extent begin at the first multiple of their size in it.
constexpr std::uint64_t kPagesHeadroom = kPageBytes - kGrainBytes;
std::uint64_t position_of_page(const Snapshots::Extent& extent, std::uint32_t page) {
  return (extent.offset + kPagesHeadroom) / kPageBytes * kPageBytes +
         std::uint64_t{page} * kPageBytes;
}

std::unexpected<Error> no_room_for_layer() {
  return fail(ErrorKind::LimitExceeded, "no room on disk for snapshots that are not compressed");
}

void check_pages(const Snapshots::Extent& extent, std::uint32_t first, std::size_t bytes) {
  HANGAR_ASSERT(bytes % kPageBytes == 0 &&
                    position_of_page(extent, first) + bytes <= extent.offset + extent.size_bytes,
                "pages lie within their extent");
}

}  // namespace

Result<SnapshotStore::Extent> SnapshotStore::reserve_pages(std::uint32_t pages,
                                                           const budget::Tenant& tenant) {
  const std::uint64_t size = std::uint64_t{pages} * kPageBytes + kPagesHeadroom;
  if (size > room_for_layers(tenant)) return no_room_for_layer();
  return reserve(size, tenant);
}

std::uint64_t SnapshotStore::room_for_layers(const budget::Tenant& tenant) {
  const budget::Accounts& held = accounts();
  const std::uint64_t all = held.limits().host_bytes_max / 2;
  const std::uint64_t share = held.limit_of(tenant).bytes_max / 2;
  return std::min(all - std::min(all, held.held_bytes()),
                  share - std::min(share, held.held_bytes(tenant)));
}

Result<> SnapshotStore::write_pages(Extent extent, std::uint32_t first,
                                    std::span<const std::byte> pages) const {
  check_pages(extent, first, pages.size());
  return native_->file.write(position_of_page(extent, first), pages);
}

Result<> SnapshotStore::map_pages(Extent extent, std::uint32_t first,
                                  std::span<std::byte> memory) const {
  check_pages(extent, first, memory.size());
  if (::mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, native_->file.descriptor(),
             static_cast<off_t>(position_of_page(extent, first))) == MAP_FAILED) {
    return fail(ErrorKind::Unavailable,
                fmt::format("map a snapshot: {}", std::generic_category().message(errno)));
  }
  return {};
}

// Pages of the store's file.
class SnapshotStore::StoredLayer final : public PageLayer {
 public:
  StoredLayer(SnapshotStore& store, Extent extent, std::span<const PageRange> pieces)
      : PageLayer(pieces), store_(store), extent_(extent) {}
  StoredLayer(const StoredLayer&) = delete;
  StoredLayer& operator=(const StoredLayer&) = delete;
  ~StoredLayer() override { store_.free(extent_); }

  [[nodiscard]] std::uint64_t disk_bytes() const override { return extent_.size_bytes; }

 private:
  Result<> write_pages(std::uint32_t place, std::span<const std::byte> pages) override {
    return store_.write_pages(extent_, place, pages);
  }
  Result<> map_pages(std::uint32_t place, std::span<std::byte> part) override {
    return store_.map_pages(extent_, place, part);
  }

  SnapshotStore& store_;
  const Extent extent_;  // The pieces, one after the other.
};

Result<std::unique_ptr<PageLayer>> SnapshotStore::make_layer(const PageRanges& pieces,
                                                             const budget::Tenant& tenant) {
  const Extent extent =
      HANGAR_TRY(reserve_pages(static_cast<std::uint32_t>(page_count(pieces)), tenant));
  return std::make_unique<StoredLayer>(*this, extent, pieces);
}

std::uint32_t SnapshotStore::layer_file_pages_max(const budget::Tenant& tenant) {
  const std::scoped_lock lock(native_->mutex);
  return locked_layer_file_pages_max(tenant);
}

std::uint32_t SnapshotStore::locked_layer_file_pages_max(const budget::Tenant& tenant) {
  if (native_->layer_files >= native_->layer_files_most) return 0;
  return static_cast<std::uint32_t>(std::min(room_for_layers(tenant), limits::kLayerBytesMax) /
                                    kPageBytes);
}

Result<std::uint32_t> SnapshotStore::reserve_layer_file(std::uint32_t pages,
                                                        const budget::Tenant& tenant) {
  const std::uint64_t size = std::uint64_t{pages} * kPageBytes;
  // Workers make layer files at the same time, so one lock is for the check and for the count.
  const std::scoped_lock lock(native_->mutex);
  if (pages == 0 || pages > locked_layer_file_pages_max(tenant)) return no_room_for_layer();
  const auto added = native_->shares.add(tenant, size);
  if (!added) return no_room_for_layer();
  native_->layer_file_bytes += size;
  ++native_->layer_files;
  return *added;
}

std::unique_ptr<LayerFile> SnapshotStore::add_layer_file(PrivateFile file, std::uint32_t pages,
                                                         std::uint32_t account) {
  auto made = std::make_unique<LayerFile>(*this, std::move(file), pages, account);
  const std::scoped_lock lock(native_->mutex);
  native_->made_layer_files.insert(made.get());
  return made;
}

Result<std::unique_ptr<LayerFile>> SnapshotStore::make_layer_file(std::uint32_t pages,
                                                                  const budget::Tenant& tenant) {
  const std::uint32_t account = HANGAR_TRY(reserve_layer_file(pages, tenant));
  Result<PrivateFile> file = PrivateFile::open(native_->directory);
  Result<> sized =
      file ? file->truncate(std::uint64_t{pages} * kPageBytes) : std::unexpected(file.error());
  if (!sized) {
    give_back_layer_file(pages, account);
    return std::unexpected(std::move(sized).error());
  }
  return add_layer_file(*std::move(file), pages, account);
}

Result<std::unique_ptr<LayerFile>> SnapshotStore::adopt_layer_file(io::Descriptor file,
                                                                   std::uint32_t pages,
                                                                   const budget::Tenant& tenant) {
  struct stat status{};
  if (::fstat(file.value(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != std::uint64_t{pages} * kPageBytes) {
    return fail(ErrorKind::Corrupt, fmt::format("its layer is not a file of {} pages", pages));
  }
  const std::uint32_t account = HANGAR_TRY(reserve_layer_file(pages, tenant));
  return add_layer_file(PrivateFile::adopt(std::move(file).release()), pages, account);
}

void SnapshotStore::give_back_layer_file(std::uint32_t pages, std::uint32_t account) {
  const std::uint64_t size = std::uint64_t{pages} * kPageBytes;
  const std::scoped_lock lock(native_->mutex);
  native_->layer_file_bytes -= size;
  --native_->layer_files;
  native_->shares.subtract(account, size);
}

void SnapshotStore::give_back_layer_file(const LayerFile& file) {
  {
    const std::scoped_lock lock(native_->mutex);
    native_->made_layer_files.erase(&file);
  }
  give_back_layer_file(file.pages_, file.account_);
}

void SnapshotStore::free(Extent extent) {
  const std::uint64_t size = rounded(extent.size_bytes);
  const std::scoped_lock lock(native_->mutex);
  native_->live_bytes -= size;
  native_->shares.subtract(extent.account, size);
  native_->give_back(extent.offset, size);
}

std::size_t SnapshotStore::drop_page_cache(Instant idle_since) const {
  native_->file.drop_page_cache();
  // Copies of descriptors: a layer may end meanwhile, and the lock is not held for system calls
  // that may wait for the disk.
  std::vector<PrivateFile> idle;
  {
    const std::scoped_lock lock(native_->mutex);
    for (const LayerFile* const file : native_->made_layer_files) {
      if (file->used() >= idle_since) continue;
      const int copy = ::fcntl(file->file_.descriptor(), F_DUPFD_CLOEXEC, 0);
      if (copy >= 0) idle.push_back(PrivateFile::adopt(copy));
    }
  }
  for (const PrivateFile& file : idle)
    file.drop_page_cache();
  return 1 + idle.size();
}

budget::Accounts& SnapshotStore::accounts() {
  return native_->shares.accounts();
}

std::uint64_t SnapshotStore::live_bytes() const {
  const std::scoped_lock lock(native_->mutex);
  return native_->live_bytes + native_->layer_file_bytes;
}

std::uint64_t SnapshotStore::file_bytes() const {
  std::uint64_t of_layers = 0;
  {
    const std::scoped_lock lock(native_->mutex);
    of_layers = native_->layer_file_bytes;
  }
  return native_->file.disk_bytes() + of_layers;
}

}  // namespace hangar::wasm
