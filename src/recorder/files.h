// The recorder's files: one is being written, older ones are kept within limits of size and age.
//
// A directory has files turns-<sequence>.rec, of which the highest is the newest. Each process
// begins a file of its own and never appends to one that a killed process may have left incomplete.
// The oldest files are deleted when all files together would be too large, and when they are too
// old. Several processes may share a directory: no process deletes a file that another one is
// writing.
//
// Any thread, one at a time; all functions block on the disk.
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

// One of the files, as input of count_to_remove().
struct KnownFile {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  WallTime written;  // Time of the last write.
  // The same by the monotonic clock; nothing if another process wrote the file.
  std::optional<Instant> written_here = {};
};

// How many of the oldest files (they come first) must be deleted to make room for `coming_bytes`. A
// wall clock that was set back makes no file too old. A file whose time lies in the future is
// deleted only when space is short.
[[nodiscard]] std::size_t count_to_remove(std::span<const KnownFile> files,
                                          std::uint64_t coming_bytes, const FileLimits& limits,
                                          Instant now, WallTime wall_now);
// Whether the next block of `coming_bytes` needs a new file, given the size and age of the present
// one.
[[nodiscard]] bool is_full(std::uint64_t bytes, std::uint64_t coming_bytes, Duration age,
                           const FileLimits& limits);

class Files {
 public:
  // `host`: as in FileHeader. Does no I/O.
  Files(std::filesystem::path directory, FileLimits limits, std::uint64_t host);
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  // Appends a block to the present file, or to a new one. After an error the file is truncated to
  // its former size; if that fails, the next call begins a new file. Unavailable, with the message
  // of the system: no space, a broken disk.
  [[nodiscard]] Result<> append(std::string_view block, Instant now, WallTime wall_now);
  // Deletes files that are too old.
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
  std::deque<KnownFile> files_;  // By sequence; if a file is open, it is the last one.
  io::Descriptor current_;
  Instant current_began_;
};

// Paths of the files in a directory, the oldest first. NotFound when there is no such directory.
[[nodiscard]] Result<std::vector<std::filesystem::path>> list_files(
    const std::filesystem::path& directory);

}  // namespace hangar::recorder
