// Tells without building a document whether a change affects the status alone: controllers are
// notified of each of their own status writes, for thousands of objects.
#pragma once

#include "kube/object.h"

namespace hangar::kube {

// True when the objects differ at most in their status and in the fields that the server maintains
// (resourceVersion, generation). A different order of members counts as a change.
[[nodiscard]] bool differs_in_status_only(const Object& before, const Object& after);

}  // namespace hangar::kube
