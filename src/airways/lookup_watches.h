// Bounds the number of objects that the host watches one by one for the flights of a namespace:
// those that they look up beyond their releases.
//
// Flights choose the names. An object that does not exist takes as much memory as any other, and no
// account counts it (kube/cache/ration.h counts objects that arrive). So the namespace of the
// instance has the bound, wherever the objects are.
#pragma once

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "base/result.h"

#include <cstddef>
#include <map>
#include <string>

namespace hangar::airways {

// Loop thread.
class LookupWatches {
 public:
  explicit LookupWatches(std::size_t objects_max = limits::kNamespaceLookupsMax)
      : objects_max_(objects_max) {}

  // `instance` begins to watch `object`, which it does not watch yet. LimitExceeded if that is one
  // object too many for its namespace; one that others of the namespace watch takes no further
  // place. Instances of no namespace have no bound.
  [[nodiscard]] Result<> add(const ResourceRef& instance, const ResourceRef& object);
  // It ends what it began.
  void remove(const ResourceRef& instance, const ResourceRef& object);

  [[nodiscard]] std::size_t count(const std::string& namespace_name) const;

 private:
  const std::size_t objects_max_;
  // By namespace of the instances: how many of them watch each object.
  std::map<std::string, std::map<ResourceRef, std::size_t>> watched_;
};

}  // namespace hangar::airways
