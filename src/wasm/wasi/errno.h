// The error numbers of WASI that are used here.
#pragma once

#include <cstdint>

namespace hangar::wasm::wasi {

enum Errno : std::uint32_t {
  kSuccess = 0,
  kAgain = 6,                // EAGAIN
  kBadDescriptor = 8,        // EBADF
  kExists = 20,              // EEXIST
  kFault = 21,               // EFAULT
  kInterrupted = 27,         // EINTR
  kInvalid = 28,             // EINVAL
  kIsDirectory = 31,         // EISDIR
  kTooManyOpen = 33,         // EMFILE
  kNameTooLong = 37,         // ENAMETOOLONG
  kNotFound = 44,            // ENOENT
  kNotImplemented = 52,      // ENOSYS
  kNotDirectory = 54,        // ENOTDIR
  kNotSocket = 57,           // ENOTSOCK
  kNotSupported = 58,        // ENOTSUP
  kReadOnlyFileSystem = 69,  // EROFS
  kIllegalSeek = 70,         // ESPIPE
  kNotCapable = 76,          // ENOTCAPABLE
};

}  // namespace hangar::wasm::wasi
