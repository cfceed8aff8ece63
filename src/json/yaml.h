// Reads and writes YAML as Kubernetes tools read it: a manifest means here what it means
// to kubectl.
//
// That is YAML 1.2 core with JSON as its subset, and three features of YAML 1.1 that manifests rely
// on: 0644 is octal, << merges, and plain yes/no/on/off/y/n are booleans. to_yaml() quotes every
// string that a reader of either version would not read as a string.
#pragma once

#include "base/result.h"
#include "json/limits.h"
#include "json/value.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::json {

// Returns every document of a stream separated by `---`; empty documents and nulls are left out.
// One document that does not parse fails the whole stream (InvalidInput, with line and column), and
// so does a second document without its `---`. Aliases are expanded within `alias_bytes_max`.
// Keys are taken as written (`8080: x` has the key "8080"). InvalidInput for keys that are not
// scalars, keys given twice, and tags other than the core ones. Texts of JSON documents take a fast
// path and follow parse() in every respect.
[[nodiscard]] Result<std::vector<Value>> parse_yaml_stream(
    std::string_view text, std::uint64_t alias_bytes_max = limits::kAliasBytesMax);

// Parses exactly one document.
[[nodiscard]] Result<Value> parse_yaml(std::string_view text,
                                       std::uint64_t alias_bytes_max = limits::kAliasBytesMax);

// Writes a document without the leading `---`, ending in a newline. Strings that YAML would not
// read as strings are quoted.
[[nodiscard]] std::string to_yaml(const Value& value);

}  // namespace hangar::json
