// Passes a module that can sleep between processes of one host: its native code and its initial
// memory as read-only descriptors, and the rest as values.
//
// A guest of the module may sleep in one process and wake in another, because all of them start
// from the same image. A process that has received the module makes no image of its own.
#pragma once

#include "base/result.h"
#include "io/descriptor.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace hangar::wasm {

struct ModuleDescription {
  Digest digest;
  std::optional<std::string> obstacle;  // If set, the numbers and pages below have no meaning.
  std::uint32_t global_count = 0;
  bool has_start = false;
  std::uint64_t image_number = 0;
  PageRanges image_pages;

  friend bool operator==(const ModuleDescription&, const ModuleDescription&) = default;
};

struct HandedModule {
  ModuleDescription description;
  io::Descriptor code;
  io::Descriptor image;  // None with an obstacle.
};

// Unavailable when there are no descriptors left, or the code cannot be loaded. Loop thread; the
// module outlives the task.
[[nodiscard]] io::Task<Result<HandedModule>> hand_over(const SleepableModule& module,
                                                       budget::Consumer whose);

// Unavailable when a descriptor cannot be mapped. Loop thread.
[[nodiscard]] Result<std::shared_ptr<const SleepableModule>> receive(Engine& engine,
                                                                     HandedModule handed);

}  // namespace hangar::wasm
