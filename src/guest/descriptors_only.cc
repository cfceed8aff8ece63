// How wasmtime opens a file in a process that can open none. Its C API maps native code by a path,
// and the host names a descriptor so: /proc/self/fd/7. The linker puts these in place of libc's
// open64 and fstat64 (--wrap), in hangar-guest alone.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.

int __wrap_open64(const char* path, int flags, ...) {
  constexpr std::string_view kDescriptors = "/proc/self/fd/";
  const std::string_view text(path);
  int descriptor = -1;
  if (text.starts_with(kDescriptors) && (flags & O_ACCMODE) == O_RDONLY) {
    const auto [end, error] =
        std::from_chars(text.data() + kDescriptors.size(), text.data() + text.size(), descriptor);
    if (error == std::errc() && end == text.data() + text.size()) {
      return ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    }
  }
  errno = EPERM;
  return -1;
}

// glibc's asks by a path, which may be any file's as far as a filter of system calls can see.
int __wrap_fstat64(int descriptor, struct stat64* status) {
  return static_cast<int>(::syscall(SYS_fstat, descriptor, status));
}

// NOLINTEND(bugprone-reserved-identifier)
}
