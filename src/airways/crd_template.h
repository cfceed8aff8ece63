// From an Airway to the CustomResourceDefinition of its instances.
#pragma once

#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

namespace hangar::airways {

// The collection that they are in.
[[nodiscard]] kube::Resource crd_resource();

// The document to apply (without force): named as the Airway, owned by it; every version has the
// status subresource, a schema, and status.conditions in it. Conversion is None unless the template
// brings a webhook of its own.
// Errors: InvalidInput: a status that is no object, conditions of another shape, members that are
// no objects where they must be. (Versions and names are checked by parse_airway.)
[[nodiscard]] Result<json::Value> crd_of(const Airway& airway);

// Whether the CRD that is there may become this Airway's. Conflict while an earlier Airway of the
// same name still owns it (it is being collected); InvalidInput when a release or another Airway
// owns it. One that nobody owns is left to the server's conflict check.
[[nodiscard]] Result<> may_take_over_crd(const json::Value& live, const Airway& airway);

}  // namespace hangar::airways
