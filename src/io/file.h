// Reads and writes whole files. Blocking: for start-up, small local files, and worker threads.
#pragma once

#include "base/result.h"
#include "io/descriptor.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::io {

// A file that is read from its beginning, and is never in memory as a whole. One thread.
class FilePieces {
 public:
  // NotFound; Denied; Unavailable for the rest.
  [[nodiscard]] static Result<FilePieces> open(std::filesystem::path path);

  // Valid until the next call; empty at the end of the file. Unavailable.
  [[nodiscard]] Result<std::string_view> next();

 private:
  FilePieces(std::filesystem::path path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  Descriptor file_;
  std::string piece_;
};

// NotFound; Denied; LimitExceeded when larger than `bytes_max`; Unavailable for the rest.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::uint64_t bytes_max);

// What of a file is there after the machine has lost its power.
enum class Durability : std::uint8_t {
  Synced,  // The old file or the whole new one: the call waits for the disk.
  None,    // Also a file that is cut or has zeros in it: for caches that check what they read.
};

// Replaces the file at once: readers see the old file or the whole new one, also after a crash of
// this process. Mode 0600.
[[nodiscard]] Result<> write_file(const std::filesystem::path& path, std::string_view bytes,
                                  Durability durability = Durability::Synced);

// How often this process has waited for the disk in write_file(). Any thread.
[[nodiscard]] std::uint64_t sync_count();

// Creates the directory with mode 0700, parents included. If it exists, checks owner and mode:
// Denied when others may write to it.
[[nodiscard]] Result<> make_private_directory(const std::filesystem::path& path);

}  // namespace hangar::io
