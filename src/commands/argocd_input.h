// The input of a flight, merged from files and from values at paths, as in yoke's plugin for Argo
// CD. Pure.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <string_view>

namespace hangar::commands {

// Merges `over` into `into`: objects member by member, anything else is replaced.
void merge_input(json::Value& into, const json::Value& over);

// Sets the value at a path such as "nested.list.0.name". Names and indexes are separated by dots;
// "\." is a dot of a name, and ":0" is the name "0". The index -1 appends to a list. Missing
// objects and lists are created, lists are filled up with null, and any other value on the way is
// replaced. InvalidInput for a path that is empty, too deep or has wildcards, and for an index that
// is too large.
[[nodiscard]] Result<> set_input(json::Value& input, std::string_view path, json::Value value);

}  // namespace hangar::commands
