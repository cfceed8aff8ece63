#include "wasm/native_code.h"

#include "base/result.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
#include "wasm/module.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

namespace hangar::wasm {

Result<int> open_native_code(const Module& module) {
  // Opened again, not duplicated: the host's own descriptor may be writable (a private copy).
  const std::string path = fmt::format("/proc/self/fd/{}", module.file()->descriptor());
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return fail(ErrorKind::Unavailable, fmt::format("open native code once more: {}",
                                                    std::generic_category().message(errno)));
  }
  return descriptor;
}

Result<std::shared_ptr<const Module>> load_native_code(const Engine& engine, int descriptor) {
  return internal::load_file(engine, std::make_shared<const internal::CodeFile>(descriptor),
                             Module::Allocation::Pooled);
}

}  // namespace hangar::wasm
