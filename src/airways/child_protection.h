// Mode static, and that nobody moves a child to another release: one ValidatingAdmissionPolicy with
// one binding, whose parameters are the Airways themselves. The API server decides by itself: no
// host is on the path of a child's write, and nothing is made or removed for a single Airway.
//
// What counts as a change of a child is read from its managed fields: a write by somebody else that
// changes a field which the release has applied takes that field away from the release's manager
// (docs/adr/0026-children-are-protected-by-a-policy.md).
#pragma once

#include "airways/acting.h"
#include "json/value.h"

#include <string_view>

namespace hangar::airways {

// Of both.
inline constexpr std::string_view kChildProtection = "hangar-airway-children";

struct ChildProtection {
  json::Value policy;
  json::Value binding;
};
// `host_user`: who applies the releases of Airways that name no service account, where
// `acting_by_default` names none either.
[[nodiscard]] ChildProtection child_protection(std::string_view host_user,
                                               const Acting& acting_by_default);

}  // namespace hangar::airways
