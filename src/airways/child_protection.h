// Protects the children of Airways, Flights and ClusterFlights with mode static, and keeps every
// child in its release: for each of the three kinds one ValidatingAdmissionPolicy with one binding,
// whose parameters are the objects of that kind. The API server decides by itself: no host takes
// part in a write of a child, and nothing is created or removed for a single object.
//
// The managed fields of a child show whether it changes: a write by another user that changes a
// field which the release has applied takes the field away from the release's manager
// (docs/adr/0026-children-are-protected-by-a-policy.md). They also show whether it was the release
// that wrote the mode of an override on a child of an Airway's instance
// (docs/adr/0065-children-name-the-mode-of-an-override.md).
#pragma once

#include "airways/acting.h"
#include "json/value.h"

#include <string_view>

namespace hangar::airways {

// The names of policies; a binding has the name of its policy.
inline constexpr std::string_view kAirwayChildren = "hangar-airway-children";
inline constexpr std::string_view kFlightChildren = "hangar-flight-children";
inline constexpr std::string_view kClusterFlightChildren = "hangar-clusterflight-children";

struct ChildProtection {
  json::Value policy;
  json::Value binding;
};
// `host_user`: the user that applies the releases of Airways without a service account, if
// `acting_by_default` names none either.
[[nodiscard]] ChildProtection protection_of_airways(std::string_view host_user,
                                                    const Acting& acting_by_default);
// Protects children in the Flight's namespace: the API server finds no Flight for objects without a
// namespace.
[[nodiscard]] ChildProtection protection_of_flights();
// `host_user`: the user that applies the releases of ClusterFlights without a service account.
[[nodiscard]] ChildProtection protection_of_cluster_flights(std::string_view host_user);

}  // namespace hangar::airways
