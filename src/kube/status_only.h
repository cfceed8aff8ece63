// Finds out without building a document whether a change is to the status alone: controllers are
// notified of each of their own status writes, for thousands of objects.
#pragma once

#include "kube/object.h"

namespace hangar::kube {

// True when only the status differs, and the fields that the server counts (resourceVersion,
// generation). An object that is merely written in another order counts as changed.
[[nodiscard]] bool differs_in_status_only(const Object& before, const Object& after);

}  // namespace hangar::kube
