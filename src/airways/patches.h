// The few patches that the controllers of this folder write to the objects they reconcile.
#pragma once

#include "airways/airway.h"
#include "json/value.h"

#include <optional>

namespace hangar::airways {

// A merge patch that puts our finalizer and a reference to its Airway onto an instance, or nothing
// when both are there. References to an earlier Airway of the same name are replaced. Conflict when
// the instance is not the one we looked at: lists are replaced whole, and nobody's entry may get
// lost.
[[nodiscard]] std::optional<json::Value> claim_patch(const json::Value& instance,
                                                     const Airway& airway);

// A JSON patch that replaces the status of the generation we looked at. Guarded by the generation
// and not by the version: a status computed for this spec is right whoever touched labels
// meanwhile.
[[nodiscard]] json::Value status_patch(const json::Value& object, json::Value status);

}  // namespace hangar::airways
