// The recorder's files: one is written, older ones are kept as long as they may be.
//
// A directory has files turns-<sequence>.rec, of which the highest is the newest. Each process
// begins one of its own, so that nobody appends to what another was killed over. The oldest go
// first: when all of them together would be too large, and when they are too old. Several processes
// may have one directory: a file that is being written is nobody else's to remove.
//
// Any thread, one at a time; all of it blocks on the disk.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::recorder {

struct FileLimits {
  std::uint64_t bytes_max = 0;
  Duration age_max{};
};

// One of the files, as the decision below sees it.
struct KnownFile {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  WallTime written;  // Last.
  // The same by the clock that does not jump; nothing for one of an earlier process.
  std::optional<Instant> written_here = {};
};

// How many of the oldest (they come first) have to go so that there is room for `coming_bytes`
// more. A clock that was set back makes no file older than it is, and one that lies in the future
// goes by its size.
[[nodiscard]] std::size_t count_to_remove(std::span<const KnownFile> files,
                                          std::uint64_t coming_bytes, const FileLimits& limits,
                                          Instant now, WallTime wall_now);
// When a file of that many bytes has been begun at `began`, whether the next block begins another.
[[nodiscard]] bool is_full(std::uint64_t bytes, std::uint64_t coming_bytes, Duration age,
                           const FileLimits& limits);

class Files {
 public:
  // `host`: as in FileHeader. Does no I/O.
  Files(std::filesystem::path directory, FileLimits limits, std::uint64_t host);
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  // Adds a block to the newest file, or to a new one. After an error nothing of the block is left;
  // the next call tries anew. Unavailable, with what the system says: no space, a broken disk.
  [[nodiscard]] Result<> append(std::string_view block, Instant now, WallTime wall_now);
  // Removes what is too old.
  [[nodiscard]] Result<> sweep(Instant now, WallTime wall_now);

  [[nodiscard]] std::uint64_t bytes() const;

 private:
  [[nodiscard]] Result<> open_directory();
  [[nodiscard]] Result<> begin_file(Instant now, WallTime wall_now);
  void make_room(std::uint64_t coming_bytes, Instant now, WallTime wall_now);
  [[nodiscard]] std::filesystem::path path_of(std::uint64_t sequence) const;

  const std::filesystem::path directory_;
  const FileLimits limits_;
  const std::uint64_t host_;
  bool is_listed_ = false;
  std::deque<KnownFile> files_;  // By sequence; the last is the one that is written, if any is.
  io::Descriptor current_;
  Instant current_began_;
};

// Paths of the files in a directory, the oldest first. NotFound when there is no such directory.
[[nodiscard]] Result<std::vector<std::filesystem::path>> list_files(
    const std::filesystem::path& directory);

}  // namespace hangar::recorder
