// Writes documents byte for byte as Go programs do, where such programs compare or print the same:
// yoke's histories contain JSON of encoding/json, and its command prints YAML of yaml.v3.
#pragma once

#include "json/value.h"

#include <string>
#include <string_view>

namespace hangar::json {

// As encoding/json marshals what client-go has read: compact, members sorted by name, `<`, `>`,
// `&` and the two Unicode line ends escaped, an integer beyond 63 bits as a double. Strings must
// be UTF-8.
[[nodiscard]] std::string dump_as_go(const Value& value);

// As yaml.v3 marshals the same with an indent of two: members in its order, where `a2` precedes
// `a10`, and strings quoted where it quotes them. Two differences: text that begins with an empty
// line keeps that line, and text with a Unicode line end is quoted on one line.
[[nodiscard]] std::string to_yaml_as_go(const Value& value);

// True when yaml.v3 writes the member `left` before `right`.
[[nodiscard]] bool precedes_as_go(std::string_view left, std::string_view right);

}  // namespace hangar::json
