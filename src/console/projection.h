// Removes fields that the page does not show from answers of the cluster: less to send, and no
// content of ConfigMaps or environment of pods in a browser. Pure.
#pragma once

#include "json/value.h"

#include <string_view>

namespace hangar::console {

// `answer` is an object or a list. Removes managedFields and kubectl's copy of the object. Of
// built-in kinds (`group` is "", "apps" or "batch") only metadata and the fields for readiness
// stay; Events stay whole.
void project(json::Value& answer, std::string_view group, std::string_view plural);

}  // namespace hangar::console
