// Schematics, which yoke keeps in custom sections of a module: documents by name
// (`yoke.schematics:NAME`), and commands (`yoke.schematics.cmd:NAME`), for which the module prints
// the document when it is run with the command's arguments. One of the names is `signature`.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::schematics {

inline constexpr std::string_view kPrefix = "yoke.schematics:";
inline constexpr std::string_view kCommandPrefix = "yoke.schematics.cmd:";

enum class Kind : std::uint8_t {
  Document,
  Command,  // A JSON array of the arguments with which to run the module.
};

struct Schematic {
  std::string name;
  Kind kind = Kind::Document;
  std::string contents;
};

// In yoke's order: commands first, each group sorted by name. Of several sections with one name the
// last counts. Errors as for wasm::custom_sections_of. Any thread.
[[nodiscard]] Result<std::vector<Schematic>> schematics_of(std::span<const std::byte> module);

// Parses the arguments of a command. InvalidInput.
[[nodiscard]] Result<std::vector<std::string>> read_command(std::string_view contents);

// Returns the module with that schematic as its last section, in place of all others with its name,
// of either kind. Errors as for wasm::custom_sections_of; LimitExceeded for a module that becomes
// too large. Any thread.
[[nodiscard]] Result<std::string> with_schematic(std::span<const std::byte> module,
                                                 const Schematic& schematic);

// Returns the module without any schematic of that name.
[[nodiscard]] Result<std::string> without_schematic(std::span<const std::byte> module,
                                                    std::string_view name);

}  // namespace hangar::schematics
