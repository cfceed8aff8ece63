// All policies, and the selection of those for a namespace. No I/O.
#pragma once

#include "kube/object.h"
#include "tenants/rules.h"
#include "tenants/tenant_policy.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::tenants {

class PolicySet {
 public:
  // Replaces the policy of that name.
  void put(TenantPolicy policy);
  void remove(std::string_view name);
  [[nodiscard]] std::size_t size() const { return policies_.size(); }
  // Whether a policy looks at the labels of namespaces.
  [[nodiscard]] bool needs_labels() const;

  // `namespace_object`: the Namespace with its labels. Null: the labels are not known, and every
  // policy that looks at labels is presumed to select the namespace. Otherwise a namespace would
  // have fewer limits while its labels cannot be read. It gets no rights from such a policy.
  [[nodiscard]] Rules rules_of(const kube::Object* namespace_object) const;

 private:
  std::map<std::string, std::shared_ptr<const TenantPolicy>, std::less<>> policies_;
};

}  // namespace hangar::tenants
