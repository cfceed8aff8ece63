// Identifies the tenant and the consumer for whom work is done and memory is held.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar {

// A namespace, the cluster-scoped objects, or the host itself.
//
// The three are different values, not different names: no spelling of a namespace equals the host.
class Tenant {
 public:
  // The host's own work: the Lease, watches, discovery. It is served before the work of tenants.
  [[nodiscard]] static Tenant host() { return Tenant(Kind::Host, {}); }
  // The tenant of an object in the namespace `name`; empty for a cluster-scoped one (an Airway,
  // a Node).
  [[nodiscard]] static Tenant of_namespace(std::string name) {
    const Kind kind = name.empty() ? Kind::Cluster : Kind::Namespace;
    return {kind, std::move(name)};
  }

  [[nodiscard]] bool is_host() const { return kind_ == Kind::Host; }
  // Empty for tenants without one.
  [[nodiscard]] const std::string& namespace_name() const { return name_; }
  // For metrics and messages. Names of namespaces have no parentheses.
  [[nodiscard]] std::string_view label() const {
    if (kind_ == Kind::Host) return "(host)";
    return kind_ == Kind::Cluster ? std::string_view("(cluster)") : std::string_view(name_);
  }

  auto operator<=>(const Tenant&) const = default;

 private:
  enum class Kind : std::uint8_t { Host, Cluster, Namespace };

  Tenant(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  Kind kind_;
  std::string name_;
};

// One of a tenant's consumers: an Operator, a workflow, an instance of an Airway.
struct Consumer {
  Tenant tenant;
  // Unique among those that share a queue or an account: "operator/mirror".
  std::string name;
  // For short work that others wait for: see budget::Accounts::Limits::kept_bytes.
  bool may_use_kept = false;

  // One of the host itself: "keys".
  [[nodiscard]] static Consumer of_host(std::string name) {
    return {.tenant = Tenant::host(), .name = std::move(name)};
  }

  auto operator<=>(const Consumer&) const = default;
};

// For work that belongs to no object: a command, a test. All such work counts as one tenant.
[[nodiscard]] inline Consumer unnamed_consumer() {
  return {.tenant = Tenant::of_namespace({}), .name = "unnamed"};
}

}  // namespace hangar
