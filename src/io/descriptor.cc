#include "io/descriptor.h"

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

namespace hangar::io {

Descriptor open_again_for_reading(int descriptor) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace hangar::io
