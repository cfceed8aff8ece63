// The resources of a release as people read them: one YAML document of all, and differences of two.
#pragma once

#include "airways/resource_ref.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::commands {

// By the canonical name of each resource.
[[nodiscard]] std::string release_yaml(const airways::Stages& stages);

enum class Color : std::uint8_t { None, Ansi };

// One side of a difference.
struct NamedText {
  std::string_view name;  // "revision 3".
  std::string_view text;
};

// As yoke prints it, what is missing on the right in green; empty when they are the same.
[[nodiscard]] std::string release_difference(NamedText left, NamedText right,
                                             std::size_t context_lines, Color color);

}  // namespace hangar::commands
