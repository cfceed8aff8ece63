// The scope of one watch: a resource, narrowed by namespace and selectors.
#pragma once

#include "kube/object.h"

#include <compare>
#include <cstdint>
#include <string>

namespace hangar::kube {

// How much of each object a response contains: the whole object, or only apiVersion, kind and
// metadata (the API server's PartialObjectMetadata).
enum class Detail : std::uint8_t { Whole, Metadata };

// Whether an object whose namespace has no room for it is kept bare (ration.h). A watch is the same
// either way.
enum class Keep : std::uint8_t { Whole, Rationed };

struct Scope {
  Resource resource;
  std::string namespace_ = {};  // Empty: all.
  std::string label_selector = {};
  std::string field_selector = {};
  Detail detail = Detail::Whole;
  Keep keep = Keep::Whole;

  auto operator<=>(const Scope&) const = default;
};

}  // namespace hangar::kube
