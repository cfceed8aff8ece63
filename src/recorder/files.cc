#include "recorder/files.h"

#include "base/limits.h"
#include "base/number.h"
#include "base/random.h"
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
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <limits>
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

std::uint64_t file_bytes_max(const FileLimits& limits) {
  return std::clamp(limits.bytes_max / kFilesMin, kFileBytesMin, kFileBytesMax);
}

Duration file_age_max(const FileLimits& limits) {
  return limits.age_max / static_cast<std::int64_t>(kFilesMin);
}

// The part of the space that is kept free for the copy of a file, or is freed at a time.
std::uint64_t share_of(const FileLimits& limits) {
  return limits.bytes_max / kFilesMin;
}

// Opens and locks the file, so that no other process deletes or rewrites it meanwhile. Not open:
// another process is doing so, or has done so.
io::Descriptor lock_file(const std::filesystem::path& path) {
  io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open() || ::flock(file.value(), LOCK_EX | LOCK_NB) != 0) return {};
  struct ::stat locked{};
  struct ::stat present{};
  const bool is_present = ::fstat(file.value(), &locked) == 0 &&
                          ::stat(path.c_str(), &present) == 0 && locked.st_ino == present.st_ino &&
                          locked.st_dev == present.st_dev;
  return is_present ? std::move(file) : io::Descriptor();
}

// Other processes use the file's age in the file system to decide when to delete it.
void set_written(const std::filesystem::path& path, WallTime written) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(written);
  const std::array<struct ::timespec, 2> times{
      {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
       {.tv_sec = seconds.time_since_epoch().count(), .tv_nsec = 0}}};
  (void)::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
}

// Removes copies that a killed process did not finish. If another process is writing one, its
// rewrite fails, and it retries later.
void remove_leftovers(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (!sequence_of(path) && sequence_of(path.stem())) ::unlink(path.c_str());
  }
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
    const auto sequence = sequence_of(entries->path());
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

void add_redacted(const RawBody& body, const Redactor& redactor, Block& block) {
  RedactedBody redacted{.state = body.state};
  if (body.state == BodyState::Whole) {
    redacted = block.size_bytes() < kBlockBytesWithBodies
                   ? redactor.redact(body.bytes)
                   : RedactedBody{.state = BodyState::NoRoom};
  }
  Body record{.guest = {.contract = body.contract,
                        .namespace_ = body.namespace_,
                        .name = body.name,
                        .instance = body.instance},
              .id = body.id,
              .at = body.at,
              .state = redacted.state,
              .text = redacted.text};
  for (const auto& [namespace_, name] : body.secrets)
    record.secrets.push_back({.namespace_ = namespace_, .name = name});
  block.add(record, {});
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
  return bytes + coming_bytes > file_bytes_max(limits) || age > file_age_max(limits);
}

std::optional<std::uint64_t> sequence_of(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  std::string_view name = file;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  return parse_number<std::uint64_t>(name);
}

Files::Files(std::filesystem::path directory, FileLimits limits, std::uint64_t host)
    : directory_(std::move(directory)), limits_(limits), host_(host) {}

Result<> Files::open_directory() {
  if (is_listed_) return {};
  HANGAR_TRY(io::make_private_directory(directory_));
  files_.clear();
  debts_.clear();
  remove_leftovers(directory_);
  for (const auto& [sequence, path] : HANGAR_TRY(numbered_files(directory_))) {
    struct ::stat status{};
    if (::stat(path.c_str(), &status) != 0) continue;
    files_.push_back({.sequence = sequence,
                      .bytes = static_cast<std::uint64_t>(status.st_size),
                      .written = std::chrono::system_clock::from_time_t(status.st_mtime),
                      .first = sequence});
  }
  is_listed_ = true;
  return {};
}

Result<> Files::append(Block block, std::span<const RawBody> bodies, Instant now,
                       WallTime wall_now) {
  HANGAR_TRY(open_directory());
  // The file is chosen first, since its key decides what is written of the bodies.
  std::uint64_t coming_bytes = block.encoded_bytes();
  for (const RawBody& body : bodies)
    coming_bytes += std::min(body.bytes.size(), kBodyBytesMax);
  if (!current_.is_open() ||
      is_full(files_.back().bytes, coming_bytes, now - current_began_, limits_)) {
    HANGAR_TRY(begin_file(now, wall_now));
  }
  for (const RawBody& body : bodies)
    add_redacted(body, *redactor_, block);
  const Holdings held = block.held();
  const std::string bytes = block.take();
  make_room(bytes.size(), now, wall_now);
  return write_block(bytes, held, now, wall_now);
}

Result<> Files::write_block(std::string_view block, const Holdings& held, Instant now,
                            WallTime wall_now) {
  KnownFile& file = files_.back();
  Result<> written = write(current_.value(), block, path_of(file.sequence));
  if (!written) {
    // Readers stop at an incomplete block and would miss everything after it.
    if (::ftruncate(current_.value(), static_cast<off_t>(file.bytes)) != 0) (void)current_.close();
    return written;
  }
  file.bytes += block.size();
  recorder::add(*file.held, held);
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
    ++sequence;  // The sequence is taken by another process.
  }
  if (!file.is_open()) {
    const int error = errno;
    // The directory may have been deleted: the next call recreates it.
    is_listed_ = false;
    (void)current_.close();
    errno = error;
    return failed("create", path_of(sequence));
  }
  // The lock tells other processes that this file is being written; held until the file is closed.
  (void)::flock(file.value(), LOCK_EX | LOCK_NB);
  const std::string header = encode(FileHeader{.host = host_, .sequence = sequence});
  if (Result<> written = write(file.value(), header, path_of(sequence)); !written) {
    ::unlink(path_of(sequence).c_str());
    return written;
  }
  current_ = std::move(file);
  redactor_.emplace(random_key());
  current_began_ = now;
  files_.push_back({.sequence = sequence,
                    .bytes = header.size(),
                    .written = wall_now,
                    .written_here = now,
                    .began_here = now,
                    .first = sequence,
                    .held = Holdings(),
                    .host = host_});
  return {};
}

void Files::make_room(std::uint64_t coming_bytes, Instant now, WallTime wall_now) {
  constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();
  const FileLimits only_age{.bytes_max = kAnySize, .age_max = limits_.age_max};
  remove_oldest(count_to_remove(files_, coming_bytes, only_age, now, wall_now));
  if (current_.is_open()) collect_debts(coming_bytes, now, wall_now);
  // Deletes whole files only if that did not free enough: other processes are writing, or a file
  // cannot be rewritten.
  const FileLimits full{.bytes_max = limits_.bytes_max - share_of(limits_),
                        .age_max = limits_.age_max};
  remove_oldest(count_to_remove(files_, coming_bytes, full, now, wall_now));
}

void Files::remove_oldest(std::size_t count) {
  // The file that is being written stays until the next one is started.
  if (current_.is_open()) count = std::min(count, files_.size() - 1);
  for (std::size_t index = 0; index < count; ++index) {
    const std::filesystem::path path = path_of(files_[index].sequence);
    const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    // A file that another process is writing is left alone, and no longer counted.
    if (!file.is_open() || ::flock(file.value(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  }
  files_.erase(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(count));
}

// Rewrites one file for each call while there is room, so that a block does not wait for many.
void Files::collect_debts(std::uint64_t coming_bytes, Instant now, WallTime wall_now) {
  const std::uint64_t share = share_of(limits_);
  const std::uint64_t full = limits_.bytes_max - share;
  const std::uint64_t nearly_full = full - share;
  measure_files(1);
  if (debts_.empty() && bytes() + coming_bytes > nearly_full) {
    measure_files(files_.size());
    remove_unreadable();
  }
  if (debts_.empty() && bytes() + coming_bytes > nearly_full) {
    Holdings held;
    for (const KnownFile& file : files_)
      if (file.held) recorder::add(held, *file.held);
    debts_ = debts(held, bytes() + coming_bytes - (nearly_full - share));
  }
  while (!debts_.empty()) {
    if (!thin_one(coming_bytes, now, wall_now)) debts_.clear();
    if (bytes() + coming_bytes <= full) break;
  }
}

void Files::measure_files(std::size_t count_max) {
  for (std::size_t index = 0; index < files_.size() && count_max > 0; ++index) {
    if (files_[index].held) continue;
    measure_file(files_[index]);
    --count_max;
    // Files that a killed process had copied into this file and not yet deleted.
    const auto is_part = [first = files_[index].first, sequence = files_[index].sequence,
                          host = files_[index].host](const KnownFile& one) {
      return one.host == host && one.sequence >= first && one.sequence < sequence;
    };
    for (const KnownFile& part : files_)
      if (is_part(part)) ::unlink(path_of(part.sequence).c_str());
    index -= std::erase_if(files_, is_part);
  }
}

// Files without a known namespace (damaged or of another version) would take space from
// all namespaces.
void Files::remove_unreadable() {
  std::erase_if(files_, [this](const KnownFile& file) {
    if (file.host != 0) return false;
    const std::filesystem::path path = path_of(file.sequence);
    if (lock_file(path).is_open()) ::unlink(path.c_str());
    return true;
  });
}

void Files::measure_file(KnownFile& file) {
  file.held = Holdings();
  const Result<std::string> bytes = io::read_file(path_of(file.sequence), kFileBytesReadMax);
  if (!bytes) return;
  Result<Measured> measured = measure(*bytes);
  if (!measured) return;
  file.held = std::move(measured->held);
  file.host = measured->header.host;
  file.first = file.sequence - std::min<std::uint64_t>(measured->header.replaces, file.sequence);
}

bool Files::thin_one(std::uint64_t coming_bytes, Instant now, WallTime wall_now) {
  const auto owes = [this](const KnownFile& file) {
    return file.held && std::ranges::any_of(debts_, [&file](const auto& debt) {
             return held_by(*file.held, debt.first) > 0;
           });
  };
  // The last file is the one that is being written.
  const auto file = std::find_if(files_.begin(), files_.end() - 1, owes);
  if (file == files_.end() - 1) return false;
  return thin_file(static_cast<std::size_t>(file - files_.begin()), coming_bytes, now, wall_now);
}

// False: there is no room for a copy, or the disk takes none.
bool Files::thin_file(std::size_t index, std::uint64_t coming_bytes, Instant now,
                      WallTime wall_now) {
  KnownFile& file = files_[index];
  const std::uint64_t copy_bytes = std::max(file.bytes, file_bytes_max(limits_));
  if (this->bytes() + coming_bytes + copy_bytes > limits_.bytes_max) return false;
  const std::filesystem::path path = path_of(file.sequence);
  const io::Descriptor lock = lock_file(path);
  const Result<std::string> bytes = lock.is_open()
                                        ? io::read_file(path, kFileBytesReadMax)
                                        : fail(ErrorKind::Unavailable, "another process has it");
  Result<Thinned> rest = bytes ? thin(*bytes, debts_) : std::unexpected(bytes.error());
  if (!rest) {
    file.held = Holdings();  // It has no bytes that can be freed.
    return true;
  }
  // Written before the records are removed: if the process is killed here, readers find more
  // records than announced, never fewer.
  if (!tell(*rest, now, wall_now)) return false;
  std::uint64_t count = 0;
  for (const auto& [namespace_, records] : rest->given_up)
    count += records.records;
  if (rest->blocks.empty()) {
    if (::unlink(path.c_str()) != 0) return false;
    forget_emptied(index);
  } else if (!replace(index, *std::move(rest))) {
    return false;
  }
  given_up_ += count;
  return true;
}

Result<> Files::tell(const Thinned& rest, Instant now, WallTime wall_now) {
  Block block;
  for (const auto& [namespace_, records] : rest.given_up) {
    const Duration ago = std::chrono::duration_cast<Duration>(wall_now - records.until);
    block.add(GivenUp{.namespace_ = namespace_, .count = records.count, .until = now - ago},
              {.instant = now, .wall = wall_now});
  }
  if (block.is_empty()) return {};
  const Holdings held = block.held();
  return write_block(block.take(), held, now, wall_now);
}

// Whether the remaining `bytes` of a file should be written together with the file before it.
// Otherwise there could be many files with few records.
bool Files::may_join(std::size_t index, std::uint64_t bytes) const {
  if (index == 0) return false;
  const KnownFile& before = files_[index - 1];
  const KnownFile& file = files_[index];
  // The sequences between the two may belong to another process.
  if (!before.began_here || !file.written_here || before.sequence + 1 != file.first) return false;
  return before.bytes + bytes <= file_bytes_max(limits_) &&
         *file.written_here - *before.began_here <= file_age_max(limits_) &&
         file.sequence - before.first <= std::numeric_limits<std::uint32_t>::max();
}

Result<> Files::replace(std::size_t index, Thinned rest) {
  KnownFile& file = files_[index];
  const std::filesystem::path path = path_of(file.sequence);
  std::string before;
  io::Descriptor lock;
  if (may_join(index, rest.blocks.size())) {
    lock = lock_file(path_of(files_[index - 1].sequence));
    Result<std::string> bytes =
        io::read_file(path_of(files_[index - 1].sequence), kFileBytesReadMax);
    if (lock.is_open() && bytes && bytes->size() > kFileHeaderBytes) before = *std::move(bytes);
  }
  const bool is_joined = !before.empty();
  const std::uint64_t first = is_joined ? files_[index - 1].first : file.first;
  rest.header.version = kFormatVersion;
  rest.header.replaces = static_cast<std::uint32_t>(file.sequence - first);
  std::string bytes = encode(rest.header);
  if (is_joined) bytes += std::string_view(before).substr(kFileHeaderBytes);
  bytes += rest.blocks;
  // Before the older file is deleted: the new header says that it replaces that file, so that
  // readers see no record twice if this process is killed in between.
  HANGAR_TRY(io::write_file(path, bytes));
  set_written(path, file.written);
  file.bytes = bytes.size();
  file.held = std::move(rest.held);
  file.first = first;
  if (!is_joined) return {};
  const KnownFile& joined = files_[index - 1];
  recorder::add(*file.held, *joined.held);
  file.began_here = joined.began_here;
  ::unlink(path_of(joined.sequence).c_str());
  files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(index) - 1);
  return {};
}

// Forgets a deleted file without records; the next file of this process takes over its sequences.
void Files::forget_emptied(std::size_t index) {
  const KnownFile& file = files_[index];
  KnownFile& next = files_[index + 1];
  if (file.began_here && next.began_here && file.sequence + 1 == next.first) {
    next.first = file.first;
  }
  files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(index));
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
