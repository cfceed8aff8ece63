// The conditions of Airways and their instances.
#pragma once

#include "reconcile/conditions.h"

#include <string_view>

namespace hangar::airways {

using reconcile::Condition;
using reconcile::ConditionStatus;
using reconcile::find_condition;
using reconcile::kReady;
using reconcile::meets_condition;
using reconcile::merge_conditions;
using reconcile::set_condition;

// Reasons of the Ready condition. They are yoke's, because users wait for them.
inline constexpr std::string_view kReasonReady = "Ready";
inline constexpr std::string_view kReasonInProgress = "InProgress";
inline constexpr std::string_view kReasonError = "Error";
inline constexpr std::string_view kReasonUnsupported = "Unsupported";
inline constexpr std::string_view kReasonTerminating = "Terminating";

}  // namespace hangar::airways
