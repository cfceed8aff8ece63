// What of a live object a release is about: pure functions of the two documents.
#pragma once

#include "airways/resource_ref.h"
#include "json/value.h"

#include <cstdint>

namespace hangar::commands {

// Without what the API server keeps there for itself: generation, resourceVersion, managedFields,
// creationTimestamp, status.
[[nodiscard]] json::Value without_bookkeeping(json::Value object);

// `actual` without the members that `expected` has not: defaults, and what others have added.
// Entries of lists are compared by their place.
[[nodiscard]] json::Value without_additions(const json::Value& expected, json::Value actual);

}  // namespace hangar::commands
