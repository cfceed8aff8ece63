#include "wasm/snapshot/private_file.h"

#include "base/result.h"
#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::wasm {

namespace {

std::unexpected<Error> failed(std::string_view doing, int error) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", doing, std::generic_category().message(error)));
}

}  // namespace

Result<PrivateFile> PrivateFile::open(const std::filesystem::path& directory) {
  HANGAR_TRY(io::make_private_directory(directory));
  const int unnamed = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0) return PrivateFile(unnamed);
  // Not every file system can create files without names.
  std::string name = (directory / "private-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) return failed(fmt::format("create a file in {}", directory.string()), errno);
  ::unlink(name.c_str());
  return PrivateFile(named);
}

PrivateFile::~PrivateFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<> PrivateFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("write to the cache", written == 0 ? ENOSPC : errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<> PrivateFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read a snapshot", errno);
    if (got == 0) {
      return fail(ErrorKind::Unavailable, "read a snapshot: it lies beyond the end of the file");
    }
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<> PrivateFile::truncate(std::uint64_t size_bytes) const {
  if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes)) != 0) {
    return failed("set the size of a snapshot file", errno);
  }
  return {};
}

void PrivateFile::punch(std::uint64_t offset, std::uint64_t size_bytes) const {
  ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(size_bytes));
}

void PrivateFile::drop_page_cache() const {
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
}

std::uint64_t PrivateFile::disk_bytes() const {
  constexpr std::uint64_t kStatBlockBytes = 512;
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) * kStatBlockBytes;
}

}  // namespace hangar::wasm
