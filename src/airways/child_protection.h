// Protects the children of Airways with mode static, and keeps every child in its release: one
// ValidatingAdmissionPolicy with one binding, whose parameters are the Airways themselves. The API
// server decides by itself: no host takes part in a write of a child, and nothing is created or
// removed for a single Airway.
//
// The managed fields of a child show whether it changes: a write by another user that changes a
// field which the release has applied takes the field away from the release's manager
// (docs/adr/0026-children-are-protected-by-a-policy.md).
#pragma once

#include "airways/acting.h"
#include "json/value.h"

#include <string_view>

namespace hangar::airways {

// The name of both objects.
inline constexpr std::string_view kChildProtection = "hangar-airway-children";

struct ChildProtection {
  json::Value policy;
  json::Value binding;
};
// `host_user`: the user that applies the releases of Airways without a service account, if
// `acting_by_default` names none either.
[[nodiscard]] ChildProtection child_protection(std::string_view host_user,
                                               const Acting& acting_by_default);

}  // namespace hangar::airways
