// The patch by which an Airway makes an instance its own.
#pragma once

#include "airways/airway.h"
#include "json/value.h"

#include <optional>

namespace hangar::airways {

// A merge patch that adds our finalizer and a reference to the instance's Airway, if it has one;
// nothing if both are there. It replaces references to earlier Airways. Conflict if the instance
// has changed since: a merge patch replaces whole lists, and no entry of others may be lost.
[[nodiscard]] std::optional<json::Value> claim_patch(const json::Value& instance,
                                                     const Airway* airway);

}  // namespace hangar::airways
