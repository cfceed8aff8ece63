// Whether a change is one of the status alone, told without building a document: controllers hear
// of each of their own status writes, for thousands of objects.
#pragma once

#include "kube/object.h"

namespace hangar::kube {

// Nothing but the status differs, and what the server counts (resourceVersion, generation). An
// object that is merely written in another order counts as changed.
[[nodiscard]] bool differs_in_status_only(const Object& before, const Object& after);

}  // namespace hangar::kube
