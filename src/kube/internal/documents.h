// Names the consumer for which workers read long documents of the API server.
#pragma once

#include "base/consumer.h"

#include <string>
#include <string_view>

namespace hangar::kube::internal {

// Its tenant is the namespace of the ServiceAccount `user`, else that of the objects, else the
// cluster. It is never the host itself: tenants decide how long documents are, and the host's work
// comes before all other work.
[[nodiscard]] Consumer reader_of(std::string_view user, std::string namespace_);

// The namespace in a path of the API server; empty: there is none.
[[nodiscard]] std::string namespace_in(std::string_view path);

}  // namespace hangar::kube::internal
