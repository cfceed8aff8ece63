// From an Airway to the CustomResourceDefinition of its instances.
#pragma once

#include "admission/webhooks.h"
#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <optional>

namespace hangar::airways {

// The collection that they are in.
[[nodiscard]] kube::Resource crd_resource();

// The document to apply (without force): named as the Airway, owned by it; every version has the
// status subresource, a schema, and status.conditions in it. `converter`: where the API server has
// instances converted; without one, as the template says, or not at all (None).
// Errors: InvalidInput: a status that is no object, conditions of another shape, members that are
// no objects where they must be. (Versions and names are checked by parse_airway.)
[[nodiscard]] Result<json::Value> crd_of(const Airway& airway,
                                         std::optional<admission::Address> converter = {});

// Whether the CRD that is there may become this Airway's. Conflict while an earlier Airway of the
// same name still owns it (it is being collected); InvalidInput when a release or another Airway
// owns it. One that nobody owns is left to the server's conflict check.
[[nodiscard]] Result<> may_take_over_crd(const json::Value& live, const Airway& airway);

}  // namespace hangar::airways
