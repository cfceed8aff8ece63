// Makes the CustomResourceDefinition of an Airway's instances.
#pragma once

#include "admission/webhooks.h"
#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <optional>

namespace hangar::airways {

// The resource customresourcedefinitions.
[[nodiscard]] kube::Resource crd_resource();

// The document to apply. It is named like the Airway and owned by it. Every version has the status
// subresource, and a schema with status.conditions. `converter`: where the API server sends
// conversions; without it, the template's conversion counts, or else None.
// Errors: InvalidInput if a status is not an object, if conditions have another shape, or if a
// member is not an object where it must be one. parse_airway() checks versions and names.
[[nodiscard]] Result<json::Value> crd_of(const Airway& airway,
                                         std::optional<admission::Address> converter = {});

// The kind of the instances in the version that is stored, which nobody has to convert. Nothing if
// a live CRD does not serve it.
[[nodiscard]] std::optional<kube::Resource> stored_kind(const json::Value& crd);

// Whether this Airway may take over the live CRD. Conflict while an earlier Airway of the same name
// still owns it (the garbage collector is deleting it). InvalidInput if a release or another Airway
// owns it. If nobody owns it, the API server's conflict check decides.
[[nodiscard]] Result<> may_take_over_crd(const json::Value& live, const Airway& airway);

}  // namespace hangar::airways
