#include "wasm/snapshot/handed_module.h"

#include "base/result.h"
#include "base/slots.h"
#include "io/descriptor.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/module.h"
#include "wasm/native_code.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleepable_native.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace hangar::wasm {

io::Task<Result<HandedModule>> hand_over(const SleepableModule& module, budget::Consumer whose) {
  const SleepableModule::Native& native = module.native();
  const std::shared_ptr<const Module> code = HANGAR_CO_TRY(co_await module.code(std::move(whose)));
  HandedModule handed;
  handed.code = io::Descriptor(HANGAR_CO_TRY(open_native_code(*code)));
  handed.description.digest = native.digest;
  if (native.obstacle != nullptr) {
    handed.description.obstacle = *native.obstacle;
    co_return handed;
  }
  handed.image = io::open_again_for_reading(native.initial->descriptor());
  if (!handed.image.is_open()) {
    co_return fail(ErrorKind::Unavailable,
                   fmt::format("reopen an image: {}", std::generic_category().message(errno)));
  }
  handed.description.global_count = native.global_count;
  handed.description.has_start = native.has_start;
  handed.description.image_number = native.initial->number();
  handed.description.image_pages.assign(native.initial->data_pages().begin(),
                                        native.initial->data_pages().end());
  co_return handed;
}

Result<std::shared_ptr<const SleepableModule>> receive(Engine& engine, HandedModule handed) {
  ModuleDescription& description = handed.description;
  const bool can_sleep = !description.obstacle;
  // No directory: a module that never settles makes no images.
  auto native = std::make_unique<SleepableModule::Native>(engine, std::filesystem::path());
  native->digest = description.digest;
  native->never_settle();
  std::shared_ptr<const Module> code = HANGAR_TRY(
      load_native_code(engine, std::move(handed.code).release(),
                       can_sleep ? Module::Allocation::Sleepable : Module::Allocation::OnDemand));
  native->memory_bytes_min = code->memory_bytes_min();
  native->set_code(std::move(code));
  if (can_sleep) {
    native->initial = HANGAR_TRY(
        BaseImage::of_file(PrivateFile::adopt(std::move(handed.image).release()),
                           description.image_number, std::move(description.image_pages)));
    native->global_count = description.global_count;
    native->has_start = description.has_start;
  } else {
    native->obstacle = std::make_unique<const std::string>(*std::move(description.obstacle));
  }
  return std::allocate_shared<const SleepableModule>(slots::Allocator<SleepableModule>(),
                                                     std::move(native));
}

}  // namespace hangar::wasm
