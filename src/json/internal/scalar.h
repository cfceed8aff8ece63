// The meaning of a plain YAML scalar: for the reader, and for the writer to know what needs quotes.
#pragma once

#include "json/value.h"

#include <cstdint>
#include <string_view>

namespace hangar::json::internal {

// NotFinite: .inf and .nan, which JSON cannot express.
enum class ScalarKind : std::uint8_t { Null, Bool, Integer, Float, NotFinite, Text };

struct Scalar {
  ScalarKind kind = ScalarKind::Text;
  Value value;
};

// Resolves a scalar as kubectl's YAML library does: YAML 1.2 core, 1.1's booleans, underscores in
// numbers, and integers with the prefixes 0x, 0b, 0o and 0.
[[nodiscard]] Scalar resolve_plain(std::string_view text);

}  // namespace hangar::json::internal
