// On whose behalf a module is fetched, and which ConfigMaps the host may read for that requester.
//
// The host's rights to read ConfigMaps reach further than those of its tenants. So a read needs a
// ConfigMapAccess, which only a Requester can issue, and only for namespaces that it may name: text
// that was parsed wrongly elsewhere cannot lead to a ConfigMap of another namespace.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

// The right to read the ConfigMaps of one namespace.
class ConfigMapAccess {
 public:
  [[nodiscard]] const std::string& namespace_name() const { return namespace_; }

 private:
  friend class Requester;
  explicit ConfigMapAccess(std::string namespace_name) : namespace_(std::move(namespace_name)) {}

  std::string namespace_;
};

class Requester {
 public:
  // An object in a namespace. Its author may name what a Pod there may: ConfigMaps of that
  // namespace and no other.
  [[nodiscard]] static Requester in_namespace(std::string namespace_name) {
    return Requester(std::move(namespace_name));
  }
  // A cluster-scoped object, which only an administrator can create, or a person at the command
  // line: ConfigMaps of any namespace.
  [[nodiscard]] static Requester cluster_wide() { return Requester(std::nullopt); }

  // The same requester, restricted to public addresses; `who` is the object that requires this:
  // "TenantPolicy a".
  [[nodiscard]] Requester at_public_addresses(std::string who) const {
    Requester narrowed = *this;
    narrowed.public_because_ = std::move(who);
    return narrowed;
  }
  // The object that requires public addresses; empty: URLs may reach the addresses that are usual
  // for the requester's kind.
  [[nodiscard]] const std::string& public_because() const { return public_because_; }

  // The key for its proofs of access: requesters with the same id may run what each of them was
  // given. A namespace, or "*", which cannot be the name of a namespace.
  [[nodiscard]] std::string id() const { return namespace_.value_or("*"); }

  // The namespace of a requester that is in one: its author is not trusted by the administrator.
  // Empty for a cluster-wide requester.
  [[nodiscard]] std::string tenant() const { return namespace_.value_or(std::string()); }

  // For fair shares: the namespace, or the cluster. `name` tells its consumers apart.
  [[nodiscard]] budget::Tenant budget_tenant() const {
    return budget::Tenant::of_namespace(tenant());
  }
  [[nodiscard]] budget::Consumer consumer(std::string name) const {
    return {.tenant = budget_tenant(), .name = std::move(name)};
  }

  // Denied for a namespace that this requester may not name.
  [[nodiscard]] Result<ConfigMapAccess> config_maps_of(std::string_view namespace_name) const;

 private:
  explicit Requester(std::optional<std::string> namespace_name)
      : namespace_(std::move(namespace_name)) {}

  std::optional<std::string> namespace_;  // std::nullopt: cluster-wide.
  std::string public_because_;
};

}  // namespace hangar::modules
