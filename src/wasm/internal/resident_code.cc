#include "wasm/internal/resident_code.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace hangar::wasm::internal {

std::uint64_t resident_file_bytes(int statm) {
  const int opened = statm >= 0 ? -1 : ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const int file = statm >= 0 ? statm : opened;
  if (file < 0) return 0;
  std::array<char, 128> buffer{};
  const ssize_t size = ::pread(file, buffer.data(), buffer.size(), 0);
  if (opened >= 0) ::close(opened);
  // "total resident shared ...", in pages: the third number counts pages of files.
  std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  for (int field = 0; field < 2; ++field) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return 0;
    text.remove_prefix(space + 1);
  }
  std::uint64_t pages = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pages);
  if (parsed.ec != std::errc()) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace hangar::wasm::internal
