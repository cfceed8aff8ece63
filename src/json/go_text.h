// Documents to the byte as Go programs write them, where such programs compare or print the same:
// yoke's histories hold JSON of encoding/json, and what its command prints is YAML of yaml.v3.
#pragma once

#include "json/value.h"

#include <string>
#include <string_view>

namespace hangar::json {

// As encoding/json marshals what client-go has read: compact, members in the order of their names,
// `<`, `>`, `&` and the two Unicode line ends escaped, an integer beyond 63 bits as a double.
// Strings are UTF-8.
[[nodiscard]] std::string dump_as_go(const Value& value);

// As yaml.v3 marshals the same with an indent of two: members in its order, where `a2` precedes
// `a10`, strings quoted where it quotes them. Two differences: text that begins with an empty line
// keeps it, and text with a Unicode line end is quoted on one line.
[[nodiscard]] std::string to_yaml_as_go(const Value& value);

// Whether yaml.v3 writes the member `left` before `right`.
[[nodiscard]] bool precedes_as_go(std::string_view left, std::string_view right);

}  // namespace hangar::json
