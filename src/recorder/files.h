// The recorder's files: writes one, and keeps older ones within limits of size and age.
//
// A directory has files turns-<sequence>.rec, of which the highest is the newest. Each process
// starts its own file and never appends to one that a killed process may have left incomplete.
// Files are deleted when they are too old. When all files together would be too large, the
// namespaces that hold the most give up their oldest records (holdings.h): the files are rewritten
// without these records, and the file that is being written says so. Several processes may share a
// directory: no process deletes or rewrites a file that another one is writing.
//
// Any thread, one at a time; all functions block on the disk.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "recorder/format.h"
#include "recorder/holdings.h"
#include "recorder/raw_body.h"
#include "recorder/redaction.h"
#include "recorder/thin.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  // The same by the monotonic clock; unset if another process wrote the file.
  std::optional<Instant> written_here = {};
  // Start of its oldest block; unset if another process wrote the file.
  std::optional<Instant> began_here = {};
  // The files with the sequences [first, sequence) are part of this one, or were deleted.
  std::uint64_t first = 0;
  std::optional<Holdings> held = {};  // Unset: not measured yet.
  std::uint64_t host = 0;             // As in FileHeader; zero: not measured, or not readable.
};

// How many of the oldest files (they come first) must be deleted to make room for `coming_bytes`. A
// wall clock that was set back makes no file too old. A file whose time lies in the future is
// deleted only when space is short.
[[nodiscard]] std::size_t count_to_remove(std::span<const KnownFile> files,
                                          std::uint64_t coming_bytes, const FileLimits& limits,
                                          Instant now, WallTime wall_now);
// Whether the next block of `coming_bytes` needs a new file, given the size and age of the
// current one.
[[nodiscard]] bool is_full(std::uint64_t bytes, std::uint64_t coming_bytes, Duration age,
                           const FileLimits& limits);

class Files {
 public:
  // `host`: as in FileHeader. Does no I/O.
  Files(std::filesystem::path directory, FileLimits limits, std::uint64_t host);
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  // Appends a block to the current file, or to a new one. The bodies become part of the block,
  // without what looks secret; `block` is not empty if there are any. After an error the file is
  // truncated to its former size; if that fails, the next call starts a new file. Unavailable, with
  // the message of the system: no space, a broken disk.
  [[nodiscard]] Result<> append(Block block, std::span<const RawBody> bodies, Instant now,
                                WallTime wall_now);
  [[nodiscard]] Result<> append(Block block, Instant now, WallTime wall_now) {
    return append(std::move(block), {}, now, wall_now);
  }
  // Deletes files that are too old.
  [[nodiscard]] Result<> sweep(Instant now, WallTime wall_now);

  [[nodiscard]] std::uint64_t bytes() const;
  // How many records namespaces have given up since the start.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }

 private:
  [[nodiscard]] Result<> open_directory();
  [[nodiscard]] Result<> begin_file(Instant now, WallTime wall_now);
  [[nodiscard]] Result<> write_block(std::string_view block, const Holdings& held, Instant now,
                                     WallTime wall_now);
  void make_room(std::uint64_t coming_bytes, Instant now, WallTime wall_now);
  void remove_oldest(std::size_t count);
  void collect_debts(std::uint64_t coming_bytes, Instant now, WallTime wall_now);
  void measure_files(std::size_t count_max);
  void remove_unreadable();
  void measure_file(KnownFile& file);
  [[nodiscard]] bool thin_one(std::uint64_t coming_bytes, Instant now, WallTime wall_now);
  [[nodiscard]] bool thin_file(std::size_t index, std::uint64_t coming_bytes, Instant now,
                               WallTime wall_now);
  [[nodiscard]] Result<> tell(const Thinned& rest, Instant now, WallTime wall_now);
  [[nodiscard]] bool may_join(std::size_t index, std::uint64_t bytes) const;
  [[nodiscard]] Result<> replace(std::size_t index, Thinned rest);
  void forget_emptied(std::size_t index);
  [[nodiscard]] std::filesystem::path path_of(std::uint64_t sequence) const;

  const std::filesystem::path directory_;
  const FileLimits limits_;
  const std::uint64_t host_;
  bool is_listed_ = false;
  std::vector<KnownFile> files_;  // By sequence; if a file is open, it is the last one.
  io::Descriptor current_;
  // Of the file that is being written. Its key is nowhere else, and is forgotten with this.
  std::optional<Redactor> redactor_;
  Instant current_began_;
  Holdings debts_;  // Bytes that namespaces still have to give up.
  std::uint64_t given_up_ = 0;
};

// std::nullopt if this is not the name of a recorder's file.
[[nodiscard]] std::optional<std::uint64_t> sequence_of(const std::filesystem::path& path);

// Paths of the files in a directory, the oldest first. NotFound when the directory does not exist.
[[nodiscard]] Result<std::vector<std::filesystem::path>> list_files(
    const std::filesystem::path& directory);

}  // namespace hangar::recorder
