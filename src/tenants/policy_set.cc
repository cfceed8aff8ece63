#include "tenants/policy_set.h"

#include "kube/labels.h"
#include "kube/object.h"
#include "tenants/rules.h"
#include "tenants/tenant_policy.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::tenants {

void PolicySet::put(TenantPolicy policy) {
  std::string name = policy.name;
  policies_.insert_or_assign(std::move(name),
                             std::make_shared<const TenantPolicy>(std::move(policy)));
}

void PolicySet::remove(std::string_view name) {
  if (const auto found = policies_.find(name); found != policies_.end()) policies_.erase(found);
}

bool PolicySet::needs_labels() const {
  return std::ranges::any_of(
      policies_, [](const auto& entry) { return !entry.second->namespaces.selects_all(); });
}

Rules PolicySet::rules_of(const kube::Object* namespace_object) const {
  kube::Labels labels;
  if (namespace_object != nullptr) labels.read(*namespace_object);
  Rules::Policies selecting;
  std::set<std::string> presumed;
  for (const auto& [name, policy] : policies_) {
    const bool is_presumed = namespace_object == nullptr && !policy->namespaces.selects_all();
    const bool is_selected =
        policy->namespaces.selects_all() || is_presumed || policy->namespaces.matches(labels);
    if (is_presumed) presumed.insert(name);
    if (is_selected) selecting.push_back(policy);
  }
  return {std::move(selecting), std::move(presumed)};
}

}  // namespace hangar::tenants
