// Modules that are linked dynamically: one that runs only with another, its plugin, from which it
// imports functions and the memory. As Javy builds them, whose plugin has the JavaScript engine.
//
// The host knows neither two instances nor two digests. Such a module *carries* its plugin, in a
// custom section: both are one file, with one digest, that every part of the host treats as any
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

// Which module's exports `module` wants to be linked with, if it wants that and carries none: what
// it imports a memory from, or, by its name, one of Javy's plugins.
[[nodiscard]] std::optional<std::string> missing_plugin(const ModuleHeader& module);

// `module` with `plugin` in it. InvalidInput: one of them is no module; LimitExceeded: together
// they are larger than a module may be. Any thread.
[[nodiscard]] Result<std::string> carry_plugin(std::span<const std::byte> module,
                                               std::span<const std::byte> plugin);

// The plugin that a module carries; into its bytes.
[[nodiscard]] std::optional<std::span<const std::byte>> carried_plugin(const ModuleHeader& module);

// One module that does what the two do together, with the exports of `module` and the plugin's
// memory. Instantiating it is: the plugin's data, the module's, the plugin's start function and
// `_initialize`, the module's start function.
//
// Requires: each is valid by itself, or the result is not valid either. Errors: InvalidInput, when
// the plugin lacks an import or has it with another type, says to be another plugin, or imports
// more than functions; and when the module imports from a third one, has a memory, table or tag of
// its own, or has data that the plugin's start might see too early. LimitExceeded. Work and memory
// are bounded by the modules' sizes. Any thread.
[[nodiscard]] Result<std::string> link_plugin(std::span<const std::byte> module,
                                              std::span<const std::byte> plugin);

}  // namespace hangar::wasm
