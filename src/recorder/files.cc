#include "recorder/files.h"

#include "base/limits.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "recorder/format.h"
#include "recorder/limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <system_error>
#include <utility>

namespace hangar::recorder {

namespace {

constexpr std::string_view kPrefix = "turns-";
constexpr std::string_view kSuffix = ".rec";

std::unexpected<Error> failed(std::string_view doing, const std::filesystem::path& path) {
  return fail(
      errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
      fmt::format("{} {}: {}", doing, path.string(), std::generic_category().message(errno)));
}

std::optional<std::uint64_t> sequence_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size() - kSuffix.size();
  std::uint64_t sequence = 0;
  if (begin >= end) return std::nullopt;
  const auto [read, error] = std::from_chars(begin, end, sequence);
  return error == std::errc() && read == end ? std::optional(sequence) : std::nullopt;
}

std::uint64_t file_bytes_max(const FileLimits& limits) {
  return std::clamp(limits.bytes_max / kFilesMin, kFileBytesMin, kFileBytesMax);
}

Duration age_of(const KnownFile& file, Instant now, WallTime wall_now) {
  if (file.written_here) return now - *file.written_here;
  return wall_now - file.written;
}

Result<> write(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  errno = io::write_all(descriptor, bytes);
  if (errno != 0) return failed("write", path);
  return {};
}

// Sequences and paths, the oldest first.
Result<std::vector<std::pair<std::uint64_t, std::filesystem::path>>> numbered_files(
    const std::filesystem::path& directory) {
  std::vector<std::pair<std::uint64_t, std::filesystem::path>> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const auto sequence = sequence_of(entries->path().filename().string());
    if (sequence) files.emplace_back(*sequence, entries->path());
  }
  if (error) {
    return fail(error == std::errc::no_such_file_or_directory ? ErrorKind::NotFound
                                                              : ErrorKind::Unavailable,
                fmt::format("list {}: {}", directory.string(), error.message()));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::size_t count_to_remove(std::span<const KnownFile> files, std::uint64_t coming_bytes,
                            const FileLimits& limits, Instant now, WallTime wall_now) {
  std::uint64_t bytes = coming_bytes;
  for (const KnownFile& file : files)
    bytes += file.bytes;
  std::size_t count = 0;
  for (const KnownFile& file : files) {
    const bool is_too_much = bytes > limits.bytes_max;
    if (!is_too_much && age_of(file, now, wall_now) <= limits.age_max) break;
    bytes -= file.bytes;
    ++count;
  }
  return count;
}

bool is_full(std::uint64_t bytes, std::uint64_t coming_bytes, Duration age,
             const FileLimits& limits) {
  return bytes + coming_bytes > file_bytes_max(limits) ||
         age > limits.age_max / static_cast<std::int64_t>(kFilesMin);
}

Files::Files(std::filesystem::path directory, FileLimits limits, std::uint64_t host)
    : directory_(std::move(directory)), limits_(limits), host_(host) {}

Result<> Files::open_directory() {
  if (is_listed_) return {};
  HANGAR_TRY(io::make_private_directory(directory_));
  files_.clear();
  for (const auto& [sequence, path] : HANGAR_TRY(numbered_files(directory_))) {
    struct ::stat status{};
    if (::stat(path.c_str(), &status) != 0) continue;
    files_.push_back({.sequence = sequence,
                      .bytes = static_cast<std::uint64_t>(status.st_size),
                      .written = std::chrono::system_clock::from_time_t(status.st_mtime)});
  }
  is_listed_ = true;
  return {};
}

Result<> Files::append(std::string_view block, Instant now, WallTime wall_now) {
  HANGAR_TRY(open_directory());
  if (!current_.is_open() ||
      is_full(files_.back().bytes, block.size(), now - current_began_, limits_)) {
    HANGAR_TRY(begin_file(now, wall_now));
  }
  make_room(block.size(), now, wall_now);
  KnownFile& file = files_.back();
  const Result<> written = write(current_.value(), block, path_of(file.sequence));
  if (!written) {
    // Readers stop at an incomplete block and would miss everything after it.
    if (::ftruncate(current_.value(), static_cast<off_t>(file.bytes)) != 0) (void)current_.close();
    return written;
  }
  file.bytes += block.size();
  file.written = wall_now;
  file.written_here = now;
  return {};
}

Result<> Files::begin_file(Instant now, WallTime wall_now) {
  make_room(kFileHeaderBytes, now, wall_now);
  std::uint64_t sequence = files_.empty() ? 1 : files_.back().sequence + 1;
  io::Descriptor file;
  while (true) {
    file = io::Descriptor(::open(path_of(sequence).c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                                 0600));
    if (file.is_open() || errno != EEXIST) break;
    ++sequence;  // It belongs to another process.
  }
  if (!file.is_open()) {
    const int error = errno;
    // The directory may have been deleted: the next call creates it again.
    is_listed_ = false;
    (void)current_.close();
    errno = error;
    return failed("create", path_of(sequence));
  }
  // Tells other processes that this file is being written; held until the file is closed.
  (void)::flock(file.value(), LOCK_EX | LOCK_NB);
  const std::string header = encode(FileHeader{.host = host_, .sequence = sequence});
  if (Result<> written = write(file.value(), header, path_of(sequence)); !written) {
    ::unlink(path_of(sequence).c_str());
    return written;
  }
  current_ = std::move(file);
  current_began_ = now;
  files_.push_back(
      {.sequence = sequence, .bytes = header.size(), .written = wall_now, .written_here = now});
  return {};
}

void Files::make_room(std::uint64_t coming_bytes, Instant now, WallTime wall_now) {
  const std::vector<KnownFile> files(files_.begin(), files_.end());
  std::size_t count = count_to_remove(files, coming_bytes, limits_, now, wall_now);
  // The file that is being written stays until the next one has begun.
  if (current_.is_open()) count = std::min(count, files.size() - 1);
  for (; count > 0; --count) {
    const std::filesystem::path path = path_of(files_.front().sequence);
    const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    // A file that another process is writing is left alone, and no longer counted.
    if (!file.is_open() || ::flock(file.value(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
    files_.pop_front();
  }
}

Result<> Files::sweep(Instant now, WallTime wall_now) {
  HANGAR_TRY(open_directory());
  if (current_.is_open() && age_of(files_.back(), now, wall_now) > limits_.age_max) {
    (void)current_.close();
  }
  make_room(0, now, wall_now);
  return {};
}

std::uint64_t Files::bytes() const {
  return std::accumulate(files_.begin(), files_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const KnownFile& file) { return sum + file.bytes; });
}

std::filesystem::path Files::path_of(std::uint64_t sequence) const {
  return directory_ / fmt::format("{}{:010}{}", kPrefix, sequence, kSuffix);
}

Result<std::vector<std::filesystem::path>> list_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (auto& [sequence, path] : HANGAR_TRY(numbered_files(directory)))
    paths.push_back(std::move(path));
  return paths;
}

}  // namespace hangar::recorder
