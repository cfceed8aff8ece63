// WASI's error numbers, those that are used.
#pragma once

#include <cstdint>

namespace hangar::wasm::wasi {

enum Errno : std::uint32_t {
  kSuccess = 0,
  kBadDescriptor = 8,    // EBADF
  kFault = 21,           // EFAULT
  kInvalid = 28,         // EINVAL
  kInterrupted = 27,     // EINTR
  kNotImplemented = 52,  // ENOSYS
  kNotSocket = 57,       // ENOTSOCK
  kNotSupported = 58,    // ENOTSUP
  kIllegalSeek = 70,     // ESPIPE
};

}  // namespace hangar::wasm::wasi
