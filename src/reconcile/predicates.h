// Which deltas of a cache are worth a reconcile.
//
// An object that appears or goes always is; the question is what of it was modified.
#pragma once

#include "kube/cache/store.h"

#include <string_view>

namespace hangar::reconcile {

// The spec: metadata.generation counts its changes (for custom resources with a status
// subresource, and for built-in kinds that say so), not those of status and metadata. A deletion
// that begins counts too.
[[nodiscard]] bool generation_changed(const kube::Delta& delta);

// Whether a resourceVersion is of an earlier write than another of the same object. False where the
// server's versions are no numbers.
[[nodiscard]] bool is_older(std::string_view left, std::string_view right);

}  // namespace hangar::reconcile
