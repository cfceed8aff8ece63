// Dynamically linked modules: such a module runs only with another one, its plugin, from which it
// imports functions and the memory. Javy builds modules this way; its plugin contains the
// JavaScript engine.
//
// The host knows only single instances and single digests. So a module *carries* its plugin in a
// custom section: both are one file with one digest, which every part of the host treats like any
// other module. hangar-compile, where hostile bytes are read, *links* the two into one module and
// compiles that.
#pragma once

#include "base/result.h"
#include "wasm/module_header.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace hangar::wasm {

// The name of the plugin with which `module` must be linked, if it needs one and carries none: the
// namespace from which it imports a memory, or, recognised by its name, one of Javy's plugins.
[[nodiscard]] std::optional<std::string> missing_plugin(const ModuleHeader& module);

// Returns `module` with `plugin` in it. InvalidInput: one of them is not a module; LimitExceeded:
// together they exceed the size of a module. Any thread.
[[nodiscard]] Result<std::string> carry_plugin(std::span<const std::byte> module,
                                               std::span<const std::byte> plugin);

// The plugin that a module carries, as a view into its bytes.
[[nodiscard]] std::optional<std::span<const std::byte>> carried_plugin(const ModuleHeader& module);

// Links both into one module that does what the two do together, with the exports of `module` and
// the plugin's memory. Instantiating it applies, in this order: the plugin's data, the module's
// data, the plugin's start function and `_initialize`, the module's start function.
//
// Requires that each is valid by itself; otherwise the result is not valid either. InvalidInput
// when the plugin lacks an import or has it with another type, declares that it is another plugin,
// or imports anything but functions; and when the module imports from a third module, has a memory,
// table or tag of its own, or has data that the plugin's start function might see too early.
// LimitExceeded. Work and memory are bounded by the modules' sizes. Any thread.
[[nodiscard]] Result<std::string> link_plugin(std::span<const std::byte> module,
                                              std::span<const std::byte> plugin);

}  // namespace hangar::wasm
