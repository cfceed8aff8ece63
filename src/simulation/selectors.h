// Label and field selectors, as far as simulations use them. Not kube/selector.h: the model of the
// API server must not share the mistakes of its clients.
#pragma once

#include "json/value.h"

#include <string_view>

namespace hangar::simulation {

// "a=b,c!=d,e,!f,g in (h,i)".
[[nodiscard]] bool labels_match(std::string_view selector, const json::Value& object);
// Terms on any field whose value is a string: "metadata.name=x,metadata.namespace!=y".
[[nodiscard]] bool fields_match(std::string_view selector, const json::Value& object);

}  // namespace hangar::simulation
