#include "node_fetch/unpack.h"

#include "base/result.h"
#include "node_install/limits.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_fetch {

namespace {

using ArchivePtr = std::unique_ptr<archive, int (*)(archive*)>;

// Bound of the entries to read: a release has a handful.
constexpr int kEntriesMax = 10'000;

Result<> write_entry(archive* reader, const std::string& to) {
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  std::vector<char> piece(std::size_t{256} * 1024);
  std::uint64_t total = 0;
  while (true) {
    const la_ssize_t count = ::archive_read_data(reader, piece.data(), piece.size());
    if (count < 0) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("unpack: {}", ::archive_error_string(reader)));
    }
    if (count == 0) break;
    total += static_cast<std::uint64_t>(count);
    if (total > node_install::limits::kRuntimeBytesMax)
      return fail(ErrorKind::LimitExceeded, "unpack: the program is too large");
    out.write(piece.data(), count);
  }
  out.close();
  if (!out) return fail(ErrorKind::Unavailable, fmt::format("write {}", to));
  return {};
}

}  // namespace

Result<> unpack_one(const std::string& from, std::string_view name, const std::string& to) {
  const ArchivePtr reader(::archive_read_new(), &::archive_read_free);
  ::archive_read_support_filter_gzip(reader.get());
  ::archive_read_support_format_tar(reader.get());
  constexpr std::size_t kBlock = 64 * 1024;
  if (::archive_read_open_filename(reader.get(), from.c_str(), kBlock) != ARCHIVE_OK) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("unpack: {}", ::archive_error_string(reader.get())));
  }
  bool is_found = false;
  archive_entry* entry = nullptr;
  for (int entries = 0;; ++entries) {
    const int status = ::archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK || entries > kEntriesMax) {
      const char* why = ::archive_error_string(reader.get());
      return fail(ErrorKind::InvalidInput,
                  fmt::format("unpack: {}", why != nullptr ? why : "too many entries"));
    }
    const char* path = ::archive_entry_pathname(entry);
    if (path == nullptr || ::archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string_view base = path;
    base.remove_prefix(base.rfind('/') + 1);  // npos + 1 is 0.
    if (base != name) continue;
    if (is_found) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("unpack: the archive has more than one {}", name));
    }
    HANGAR_TRY(write_entry(reader.get(), to));
    is_found = true;
  }
  if (!is_found)
    return fail(ErrorKind::InvalidInput, fmt::format("unpack: the archive has no {}", name));
  return {};
}

}  // namespace hangar::node_fetch
