// Lets wasmtime open a file in a process that cannot open any. Its C API maps native code by a
// path, and the host passes a path that names a descriptor: /proc/self/fd/7. The linker puts these
// functions in place of libc's open64 and fstat64 (--wrap), in hangar-guest only.
#include "base/number.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.

int __wrap_open64(const char* path, int flags, ...) {
  constexpr std::string_view kDescriptors = "/proc/self/fd/";
  const std::string_view text(path);
  if (text.starts_with(kDescriptors) && (flags & O_ACCMODE) == O_RDONLY) {
    const auto descriptor = hangar::parse_number<int>(text.substr(kDescriptors.size()));
    if (descriptor) return ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
  }
  errno = EPERM;
  return -1;
}

// glibc's fstat64 passes a path, and a filter of system calls cannot see which file it names.
int __wrap_fstat64(int descriptor, struct stat64* status) {
  return static_cast<int>(::syscall(SYS_fstat, descriptor, status));
}

// NOLINTEND(bugprone-reserved-identifier)
}
