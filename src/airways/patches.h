// The patch with which an Airway claims an instance.
#pragma once

#include "airways/airway.h"
#include "json/value.h"

#include <optional>

namespace hangar::airways {

// A merge patch that adds our finalizer and a reference to the instance's Airway, if it has one;
// std::nullopt if both are there. It replaces references to earlier Airways. Conflict if the
// instance has changed since: a merge patch replaces whole lists, and no entry of others may be
// lost.
[[nodiscard]] std::optional<json::Value> claim_patch(const json::Value& instance,
                                                     const Airway* airway);

}  // namespace hangar::airways
