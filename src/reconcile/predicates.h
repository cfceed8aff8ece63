// Which deltas of a cache need a reconcile.
//
// An object that appears or disappears always needs one; the predicate judges modifications.
#pragma once

#include "kube/cache/store.h"

#include <string_view>

namespace hangar::reconcile {

// The spec changed: metadata.generation counts such changes (for custom resources with a status
// subresource, and for built-in kinds that maintain it), not those of status and metadata. The
// start of a deletion counts too.
[[nodiscard]] bool generation_changed(const kube::Delta& delta);

// Whether a resourceVersion is of an earlier write than another of the same object. False where the
// server's versions are not numbers.
[[nodiscard]] bool is_older(std::string_view left, std::string_view right);

}  // namespace hangar::reconcile
