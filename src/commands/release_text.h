// The resources of a release as text for people: one YAML document, and differences of two.
#pragma once

#include "airways/resource_ref.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::commands {

// One YAML document, by the canonical names of the resources.
[[nodiscard]] std::string release_yaml(const airways::Stages& stages);

enum class Color : std::uint8_t { None, Ansi };

// One side of a difference.
struct NamedText {
  std::string_view name;  // "revision 3".
  std::string_view text;
};

// The difference as yoke prints it: lines that are missing on the right are green. Empty if both
// are the same.
[[nodiscard]] std::string release_difference(NamedText left, NamedText right,
                                             std::size_t context_lines, Color color);

}  // namespace hangar::commands
