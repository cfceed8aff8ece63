// YAML in and out, as Kubernetes tools read it: YAML 1.2 core values with JSON as its subset.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <string>
#include <string_view>
#include <vector>

namespace hangar::json {

// Every document of a stream separated by `---`; empty documents are left out. One document that
// does not parse fails the whole stream (InvalidInput, with line and column). Aliases are expanded
// within bounds; tags other than the core ones, and keys that are no strings, are InvalidInput.
[[nodiscard]] Result<std::vector<Value>> parse_yaml_stream(std::string_view text);

// Exactly one document.
[[nodiscard]] Result<Value> parse_yaml(std::string_view text);

// A document without the leading `---`, ending in a newline. Strings that YAML would read as
// something else are quoted.
[[nodiscard]] std::string to_yaml(const Value& value);

}  // namespace hangar::json
