#include "node_install/files.h"

#include "base/digest.h"
#include "base/result.h"
#include "node_install/limits.h"
#include "node_install/outcome.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::node_install {

namespace {

std::unexpected<Error> fail_errno(int code, std::string_view doing, std::string_view path) {
  const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::NotFound
                         : code == EACCES || code == EPERM ? ErrorKind::Denied
                                                           : ErrorKind::Unavailable;
  // EFBIG: a limit of this process or of the file system, not of the disk; readers treat it alike.
  const std::string_view reason = code == EROFS ? reason::kReadOnly
                                  : code == ENOSPC || code == EDQUOT || code == EFBIG
                                      ? reason::kNoSpace
                                      : std::string_view();
  return refuse(kind, reason,
                fmt::format("{} {}: {}", doing, path, std::generic_category().message(code)));
}

void push_front(std::deque<std::string>& pending, std::string_view path) {
  std::vector<std::string> steps;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view step = path.substr(at, slash - at);
    if (!step.empty() && step != ".") steps.emplace_back(step);
    at = slash + 1;
  }
  pending.insert(pending.begin(), steps.begin(), steps.end());
}

std::optional<std::string> read_link(int directory, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Calls `use` with piece after piece until it returns false. Zero, or the errno of reading.
int read_pieces(int file, const std::function<bool(std::string_view)>& use) {
  constexpr std::size_t kPiece = std::size_t{256} * 1024;
  const auto piece = std::make_unique<std::array<char, kPiece>>();
  while (true) {
    const ssize_t count = ::read(file, piece->data(), piece->size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0 || !use({piece->data(), static_cast<std::size_t>(count)})) return 0;
  }
}

// Copies SELinux's label and the like. Best effort: a file system without them loses none.
void copy_attributes(int from, int to) {
  std::array<char, 4096> names{};
  const ssize_t size = ::flistxattr(from, names.data(), names.size());
  for (ssize_t at = 0; at < size;) {
    const std::string name(names.data() + at);
    std::array<char, 4096> value{};
    const ssize_t value_size = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (value_size >= 0)
      ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(value_size), 0);
    at += static_cast<ssize_t>(name.size()) + 1;
  }
}

// A file that is invisible until it is renamed to its name, and deleted if it never is.
class Temporary {
 public:
  Temporary(int directory, const std::string& name)
      : directory_(directory),
        target_(name),
        name_(fmt::format(".{}.hangar-node-{}", name.substr(0, 200), ::getpid())) {
    ::unlinkat(directory_, name_.c_str(), 0);
    file_ = Descriptor(::openat(directory_, name_.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    code_ = file_.is_open() ? 0 : errno;
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!is_placed_) ::unlinkat(directory_, name_.c_str(), 0);
  }

  // Zero, or the errno of the first step that failed.
  [[nodiscard]] int code() const { return code_; }

  void write(std::string_view bytes) {
    if (code_ == 0) code_ = write_all(file_.value(), bytes);
  }

  void set_access(Access access) {
    if (code_ != 0) return;
    mode_t mode = access == Access::Program ? 0755 : access == Access::KeepOrPublic ? 0644 : 0600;
    const Descriptor old(
        ::openat(directory_, target_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status{};
    if (access != Access::Program && old.is_open() && ::fstat(old.value(), &status) == 0) {
      mode = status.st_mode & 07777;
      if (::fchown(file_.value(), status.st_uid, status.st_gid) != 0) code_ = errno;
      copy_attributes(old.value(), file_.value());
    }
    if (code_ == 0 && ::fchmod(file_.value(), mode) != 0) code_ = errno;
  }

  void place() {
    if (code_ == 0 && ::fsync(file_.value()) != 0) code_ = errno;
    if (code_ == 0 && ::renameat(directory_, name_.c_str(), directory_, target_.c_str()) != 0)
      code_ = errno;
    if (code_ != 0) return;
    is_placed_ = true;
    // The name is in place; a directory that cannot be synchronised is not a reason to revert it.
    ::fsync(directory_);
  }

 private:
  int directory_;
  std::string target_;
  std::string name_;
  Descriptor file_;
  int code_ = 0;
  bool is_placed_ = false;
};

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

Result<NodeFiles> NodeFiles::open(const std::string& root) {
  Descriptor directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return fail_errno(errno, "open the root", root);
  return NodeFiles(std::move(directory));
}

Result<NodeFiles::Place> NodeFiles::locate(std::string_view path) const {
  // The directories down to here; ".." leaves the last one, but never the first.
  std::vector<Descriptor> above;
  const auto here = [&] { return above.empty() ? root_.value() : above.back().value(); };
  std::deque<std::string> pending;
  push_front(pending, path);
  int links = 0;
  while (!pending.empty()) {
    const std::string step = std::move(pending.front());
    pending.pop_front();
    if (step == "..") {
      if (!above.empty()) above.pop_back();
      continue;
    }
    if (const auto target = read_link(here(), step)) {
      if (++links > limits::kLinksMax) return fail_errno(ELOOP, "follow", path);
      if (target->starts_with('/')) above.clear();
      push_front(pending, *target);
      continue;
    }
    if (pending.empty()) {
      Descriptor parent(::openat(here(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!parent.is_open()) return fail_errno(errno, "open the directory of", path);
      return Place{.directory = std::move(parent), .name = step};
    }
    // O_NOFOLLOW: a link that has replaced the directory meanwhile is an error and not a way out.
    Descriptor next(::openat(here(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.is_open()) return fail_errno(errno, "open the directory of", path);
    above.push_back(std::move(next));
  }
  Descriptor directory(::openat(here(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return fail_errno(errno, "open", path);
  return Place{.directory = std::move(directory), .name = "."};
}

Result<Descriptor> NodeFiles::open_file(std::string_view path, int flags) const {
  const Place place = HANGAR_TRY(locate(path));
  // O_NONBLOCK: a pipe in place of a file must not block us.
  Descriptor file(::openat(place.directory.value(), place.name.c_str(),
                           flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return fail_errno(errno, "open", path);
  struct stat status{};
  if (::fstat(file.value(), &status) != 0) return fail_errno(errno, "look at", path);
  if (!S_ISREG(status.st_mode) && (flags & O_DIRECTORY) == 0)
    return fail(ErrorKind::InvalidInput, fmt::format("{} is not a file", path));
  return file;
}

Result<std::string> NodeFiles::read(std::string_view path, std::uint64_t bytes_max) const {
  const Descriptor file = HANGAR_TRY(open_file(path, O_RDONLY));
  std::string bytes;
  const int code = read_pieces(file.value(), [&](std::string_view piece) {
    bytes += piece;
    return bytes.size() <= bytes_max;
  });
  if (code != 0) return fail_errno(code, "read", path);
  if (bytes.size() > bytes_max) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("read {}: larger than {} bytes", path, bytes_max));
  }
  return bytes;
}

Result<std::string> NodeFiles::sha256(std::string_view path) const {
  const Descriptor file = HANGAR_TRY(open_file(path, O_RDONLY));
  Sha256 hash;
  const int code = read_pieces(file.value(), [&](std::string_view piece) {
    hash.add(piece);
    return true;
  });
  if (code != 0) return fail_errno(code, "read", path);
  return to_hex(hash.finish());
}

bool NodeFiles::exists(std::string_view path) const {
  const Result<Place> place = locate(path);
  struct stat status{};
  return place && ::fstatat(place->directory.value(), place->name.c_str(), &status,
                            AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> NodeFiles::list(std::string_view directory) const {
  Result<Descriptor> opened = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!opened) return {};
  // The stream owns its descriptor.
  const int duplicate = ::dup(opened->value());
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(duplicate), &::closedir);
  if (!stream) {
    ::close(duplicate);
    return {};
  }
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of its own, and one thread.
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> NodeFiles::find_in(std::string_view path,
                                              const std::vector<std::string>& needles) const {
  Result<Descriptor> file = open_file(path, O_RDONLY);
  if (!file) return std::nullopt;
  std::size_t longest = 0;
  for (const std::string& needle : needles)
    longest = std::max(longest, needle.size());
  std::vector<bool> found(needles.size());
  std::uint64_t total = 0;
  std::string window;  // The piece, and the end of the previous one.
  read_pieces(file->value(), [&](std::string_view piece) {
    window.erase(0, window.size() - std::min(window.size(), longest));
    window += piece;
    total += piece.size();
    for (std::size_t i = 0; i < needles.size(); ++i)
      if (!found[i]) found[i] = window.contains(needles[i]);
    return !found.front() && total <= limits::kRuntimeBytesMax;
  });
  for (std::size_t i = 0; i < needles.size(); ++i)
    if (found[i]) return needles[i];
  return std::nullopt;
}

Result<> NodeFiles::write(std::string_view path, std::string_view bytes, Access access) {
  const Place place = HANGAR_TRY(locate(path));
  Temporary file(place.directory.value(), place.name);
  file.write(bytes);
  file.set_access(access);
  file.place();
  if (file.code() != 0) return fail_errno(file.code(), "write", path);
  return {};
}

Result<> NodeFiles::install(std::string_view path, int source, std::string_view sha256) {
  const Place place = HANGAR_TRY(locate(path));
  Temporary file(place.directory.value(), place.name);
  Sha256 hash;
  std::uint64_t total = 0;
  const int reading = read_pieces(source, [&](std::string_view piece) {
    hash.add(piece);
    total += piece.size();
    file.write(piece);
    return file.code() == 0 && total <= limits::kRuntimeBytesMax;
  });
  if (reading != 0) return fail_errno(reading, "read the source of", path);
  if (total > limits::kRuntimeBytesMax) {
    return refuse(ErrorKind::LimitExceeded, reason::kRuntimeInvalid,
                  fmt::format("{}: larger than {} bytes", path, limits::kRuntimeBytesMax));
  }
  if (file.code() == 0) {
    if (const std::string found = to_hex(hash.finish()); found != sha256) {
      return refuse(ErrorKind::InvalidInput, reason::kChecksumMismatch,
                    fmt::format("{}: its sha256 is {}, expected {}", path, found, sha256));
    }
  }
  file.set_access(Access::Program);
  file.place();
  if (file.code() != 0) return fail_errno(file.code(), "write", path);
  return {};
}

Result<> NodeFiles::remove(std::string_view path) {
  const Result<Place> place = locate(path);
  if (!place && place.error().kind() == ErrorKind::NotFound) return {};
  if (!place) return std::unexpected(place.error());
  if (::unlinkat(place->directory.value(), place->name.c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno(errno, "remove", path);
  ::fsync(place->directory.value());
  return {};
}

Result<std::vector<std::string>> NodeFiles::make_directories(std::string_view path) {
  std::vector<std::string> made;
  for (std::size_t end = path.find('/', 1); !path.empty();) {
    const std::string step(path.substr(0, end));
    const Place place = HANGAR_TRY(locate(step));
    if (::mkdirat(place.directory.value(), place.name.c_str(), 0755) == 0) {
      made.push_back(step);
      ::fsync(place.directory.value());
    } else if (errno != EEXIST) {
      return fail_errno(errno, "make the directory", step);
    }
    if (end == std::string_view::npos) break;
    end = path.find('/', end + 1);
  }
  return made;
}

void NodeFiles::remove_empty_directory(std::string_view path) {
  const Result<Place> place = locate(path);
  if (place) ::unlinkat(place->directory.value(), place->name.c_str(), AT_REMOVEDIR);
}

Result<Descriptor> NodeFiles::lock(std::string_view directory) {
  Descriptor opened = HANGAR_TRY(open_file(directory, O_RDONLY | O_DIRECTORY));
  if (::flock(opened.value(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, "lock", directory);
    return refuse(ErrorKind::Conflict, reason::kBusy,
                  fmt::format("another hangar-node is at work in {}", directory));
  }
  return opened;
}

Result<Files::Reached> NodeFiles::reach(std::string_view path) const {
  Place place = HANGAR_TRY(locate(path));
  std::string reached = fmt::format("/proc/self/fd/{}/{}", place.directory.value(), place.name);
  return Reached{.directory = std::move(place.directory), .path = std::move(reached)};
}

}  // namespace hangar::node_install
