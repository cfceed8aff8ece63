#include "airways/lookup_watches.h"

#include "airways/resource_ref.h"
#include "base/result.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace hangar::airways {

Result<> LookupWatches::add(const ResourceRef& instance, const ResourceRef& object) {
  if (instance.namespace_.empty()) return {};
  const auto of_namespace = watched_.find(instance.namespace_);
  if (of_namespace != watched_.end()) {
    const auto known = of_namespace->second.find(object);
    if (known != of_namespace->second.end()) {
      ++known->second;
      return {};
    }
  }
  if (count(instance.namespace_) >= objects_max_) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the flights of namespace {} look up {} objects beyond their releases, "
                            "which is the most that hangar watches for a namespace: let them look "
                            "up fewer, or move some of the instances to another namespace",
                            instance.namespace_, objects_max_));
  }
  watched_[instance.namespace_].emplace(object, 1);
  return {};
}

void LookupWatches::remove(const ResourceRef& instance, const ResourceRef& object) {
  const auto of_namespace = watched_.find(instance.namespace_);
  if (of_namespace == watched_.end()) return;
  const auto known = of_namespace->second.find(object);
  if (known == of_namespace->second.end() || --known->second > 0) return;
  of_namespace->second.erase(known);
  if (of_namespace->second.empty()) watched_.erase(of_namespace);
}

std::size_t LookupWatches::count(const std::string& namespace_name) const {
  const auto found = watched_.find(namespace_name);
  return found == watched_.end() ? 0 : found->second.size();
}

}  // namespace hangar::airways
