// What one watch covers: a resource, narrowed by namespace and selectors.
#pragma once

#include "kube/object.h"

#include <compare>
#include <string>

namespace hangar::kube {

struct Scope {
  Resource resource;
  std::string namespace_ = {};  // Empty: all.
  std::string label_selector = {};
  std::string field_selector = {};

  auto operator<=>(const Scope&) const = default;
};

}  // namespace hangar::kube
