#include "wasm/snapshot/snapshot_store.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "wasm/snapshot/private_file.h"

#include <fmt/format.h>

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
#include <tuple>
#include <utility>

namespace hangar::wasm {

namespace {

// Extents are rounded up to this: less than the smallest snapshot, and few different sizes.
constexpr std::uint64_t kGrainBytes = 256;

// Blocks are given back in pieces that are worth a call.
constexpr std::uint64_t kPunchBytesMin = 64 * limits::kKiB;
constexpr std::uint64_t kPunchAlignment = 4 * limits::kKiB;

// So much may lie free before the file is looked through for what can be given back.
constexpr std::uint64_t kSlackBytesMin = 4 * limits::kMiB;

std::uint64_t rounded(std::uint64_t size_bytes) {
  return (size_bytes + kGrainBytes - 1) / kGrainBytes * kGrainBytes;
}

// Which parts of a file are free. Best fit, neighbours joined.
class FreeSpace {
 public:
  explicit FreeSpace(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] std::uint64_t end() const { return end_; }

  // The smallest place that is large enough, or one at the end; nothing when that passes the bound.
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
  std::map<std::uint64_t, std::uint64_t> by_offset_;           // To size.
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // Size and offset.
};

}  // namespace

struct SnapshotStore::Native {
  Native(PrivateFile file_in, std::uint64_t bytes_max)
      : file(std::move(file_in)), space(bytes_max) {}

  // Called with the mutex held.
  void give_back(std::uint64_t offset, std::uint64_t size) {
    space.give(offset, size);
    freed_bytes += size;
    if (freed_bytes < kSlackBytesMin || freed_bytes < live_bytes / 4) return;
    freed_bytes = 0;
    std::ignore = file.truncate(space.end());  // If it stays longer, it is written over later.
    for (const auto& [free_offset, free_size] : space.by_offset()) {
      if (free_size < kPunchBytesMin) continue;
      const std::uint64_t first =
          (free_offset + kPunchAlignment - 1) / kPunchAlignment * kPunchAlignment;
      const std::uint64_t end = (free_offset + free_size) / kPunchAlignment * kPunchAlignment;
      file.punch(first, end - first);
    }
  }

  const PrivateFile file;
  std::mutex mutex;
  FreeSpace space;
  std::uint64_t live_bytes = 0;
  std::uint64_t freed_bytes = 0;  // Since blocks were last given back.
};

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(const std::filesystem::path& directory,
                                                           std::uint64_t bytes_max) {
  PrivateFile file = HANGAR_TRY(PrivateFile::open(directory));
  return std::unique_ptr<SnapshotStore>(
      new SnapshotStore(std::make_unique<Native>(std::move(file), bytes_max)));
}

SnapshotStore::SnapshotStore(std::unique_ptr<Native> native) : native_(std::move(native)) {}

SnapshotStore::~SnapshotStore() {
  HANGAR_ASSERT(native_->live_bytes == 0, "sleeping guests end before their store does");
}

Result<SnapshotStore::Extent> SnapshotStore::write(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("a snapshot of {} bytes cannot be stored", bytes.size()));
  }
  const std::uint64_t size = rounded(bytes.size());
  std::optional<std::uint64_t> offset;
  {
    const std::scoped_lock lock(native_->mutex);
    offset = native_->space.take(size);
    if (!offset) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("no room for a snapshot of {} bytes", bytes.size()));
    }
    native_->live_bytes += size;
  }
  if (Result<> written = native_->file.write(*offset, bytes); !written) {
    const std::scoped_lock lock(native_->mutex);
    native_->live_bytes -= size;
    native_->give_back(*offset, size);
    return std::unexpected(std::move(written).error());
  }
  return Extent{.offset = *offset, .size_bytes = static_cast<std::uint32_t>(bytes.size())};
}

Result<> SnapshotStore::read(Extent extent, std::span<std::byte> into) const {
  HANGAR_ASSERT(into.size() == extent.size_bytes, "an extent is read as a whole");
  return native_->file.read(extent.offset, into);
}

void SnapshotStore::free(Extent extent) {
  const std::uint64_t size = rounded(extent.size_bytes);
  const std::scoped_lock lock(native_->mutex);
  native_->live_bytes -= size;
  native_->give_back(extent.offset, size);
}

std::uint64_t SnapshotStore::live_bytes() const {
  const std::scoped_lock lock(native_->mutex);
  return native_->live_bytes;
}

std::uint64_t SnapshotStore::file_bytes() const {
  return native_->file.disk_bytes();
}

}  // namespace hangar::wasm
