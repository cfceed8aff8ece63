// The patch by which an Airway makes an instance its own.
#pragma once

#include "airways/airway.h"
#include "json/value.h"

#include <optional>

namespace hangar::airways {

// A merge patch that puts our finalizer and a reference to its Airway, if it has one, onto an
// instance, or nothing when both are there. References to an earlier Airway of the same name are
// replaced. Conflict when the instance is not the one we looked at: lists are replaced whole, and
// nobody's entry may get lost.
[[nodiscard]] std::optional<json::Value> claim_patch(const json::Value& instance,
                                                     const Airway* airway);

}  // namespace hangar::airways
