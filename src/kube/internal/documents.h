// In whose name workers read long documents of the API server.
#pragma once

#include "base/consumer.h"

#include <string>
#include <string_view>

namespace hangar::kube::internal {

// Of the namespace of the ServiceAccount `user`, else of that of the objects, else of the cluster.
// Never the host's own: tenants decide how long documents are, and the host's come before all
// others.
[[nodiscard]] Consumer reader_of(std::string_view user, std::string namespace_);

// The namespace in a path of the API server; empty: there is none.
[[nodiscard]] std::string namespace_in(std::string_view path);

}  // namespace hangar::kube::internal
