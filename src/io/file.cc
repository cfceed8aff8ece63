#include "io/file.h"

#include "base/result.h"
#include "io/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::io {

namespace {

std::atomic<std::uint64_t> syncs = 0;

std::unexpected<Error> fail_errno(int code, std::string_view doing,
                                  const std::filesystem::path& path) {
  const ErrorKind kind = code == ENOENT                    ? ErrorKind::NotFound
                         : code == EACCES || code == EPERM ? ErrorKind::Denied
                                                           : ErrorKind::Unavailable;
  return fail(
      kind, fmt::format("{} {}: {}", doing, path.string(), std::generic_category().message(code)));
}

}  // namespace

Result<FilePieces> FilePieces::open(std::filesystem::path path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return fail_errno(errno, "open", path);
  return FilePieces(std::move(path), std::move(file));
}

Result<std::string_view> FilePieces::next() {
  constexpr std::size_t kPieceBytes = 64 * 1024;
  piece_.resize(kPieceBytes);
  while (true) {
    const ssize_t count = ::read(file_.value(), piece_.data(), piece_.size());
    if (count >= 0) return std::string_view(piece_).substr(0, static_cast<std::size_t>(count));
    if (errno != EINTR) return fail_errno(errno, "read", path_);
  }
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  FilePieces pieces = HANGAR_TRY(FilePieces::open(path));
  std::string bytes;
  while (true) {
    const std::string_view piece = HANGAR_TRY(pieces.next());
    if (piece.empty()) return bytes;
    bytes += piece;
    if (bytes.size() > bytes_max) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("read {}: larger than {} bytes", path.string(), bytes_max));
    }
  }
}

Result<> write_file(const std::filesystem::path& path, std::string_view bytes,
                    Durability durability) {
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.value() < 0) return fail_errno(errno, "create", path);
  int code = write_all(file.value(), bytes);
  if (code == 0 && durability == Durability::Synced) {
    syncs.fetch_add(1, std::memory_order_relaxed);
    if (::fdatasync(file.value()) != 0) code = errno;
  }
  if (const int closing = file.close(); code == 0) code = closing;
  if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temporary.c_str());
    return fail_errno(code, "write", path);
  }
  return {};
}

std::uint64_t sync_count() {
  return syncs.load(std::memory_order_relaxed);
}

Result<> make_private_directory(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return fail_errno(error.value(), "create the parents of", path);
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return fail_errno(errno, "create", path);
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return fail_errno(errno, "look at", path);
  constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & kWritableByOthers) != 0) {
    return fail(ErrorKind::Denied,
                fmt::format("{} is not a directory that only this user can write to: remove it or "
                            "choose another",
                            path.string()));
  }
  return {};
}

}  // namespace hangar::io
