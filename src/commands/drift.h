// Reduces a live object to the fields that a release has set. Pure.
#pragma once

#include "airways/resource_ref.h"
#include "json/value.h"

#include <cstdint>

namespace hangar::commands {

// Removes the members that the API server maintains: generation, resourceVersion, managedFields,
// creationTimestamp, status.
[[nodiscard]] json::Value without_bookkeeping(json::Value object);

// `actual` without the members that `expected` does not have: defaults, and additions by others.
// Compares entries of lists by their index.
[[nodiscard]] json::Value without_additions(const json::Value& expected, json::Value actual);

}  // namespace hangar::commands
