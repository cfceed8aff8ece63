#include "wasm/native_code.h"

#include "base/result.h"
#include "io/descriptor.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace hangar::wasm {

Result<int> open_native_code(const Module& module) {
  // Opened again, not duplicated: the host's own descriptor may be writable (a private copy).
  io::Descriptor descriptor = io::open_again_for_reading(module.file()->descriptor());
  if (!descriptor.is_open()) {
    return fail(ErrorKind::Unavailable,
                fmt::format("reopen native code: {}", std::generic_category().message(errno)));
  }
  return std::move(descriptor).release();
}

Result<std::shared_ptr<const Module>> load_native_code(const Engine& engine, int descriptor,
                                                       Module::Allocation allocation) {
  return internal::load_file(engine, std::make_shared<const internal::CodeFile>(descriptor),
                             allocation);
}

}  // namespace hangar::wasm
