// The Role and the RoleBinding that let hangar act in one namespace.
//
// deploy/chart/templates/_rights.tpl has the same rules; tests/e2e/test_tenants.py compares them.
#pragma once

#include "base/result.h"
#include "host/config.h"
#include "json/value.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

// Marks all Roles and RoleBindings that let a hangar host act.
inline constexpr std::string_view kTenantLabel = "hangar.dev/tenant";

enum class Impersonation : std::uint8_t {
  // By the verbs impersonate:serviceaccount and impersonate-on:serviceaccount:<verb>: the right is
  // limited to namespaces that have such a Role. Kubernetes 1.36 and later.
  Constrained,
  // By the verb impersonate: hangar has the rights of the service accounts in all namespaces.
  Legacy,
};

struct ServiceAccount {
  std::string namespace_;
  std::string name;
  auto operator<=>(const ServiceAccount&) const = default;
};

// "namespace:name", as for kubectl create rolebinding.
[[nodiscard]] Result<ServiceAccount> parse_service_account(std::string_view text);

struct TenantRights {
  std::string namespace_;
  std::vector<std::string> service_accounts = {};  // Accounts to act as. Empty: all.
  Impersonation impersonation = Impersonation::Constrained;
  std::vector<host::Feature> features = {};  // Empty: all features.
  ServiceAccount host;                       // The account that gets the right.
};

// The name of both objects: hangar:tenant:<host's namespace>:<host's name>. Each host has its own.
[[nodiscard]] std::string tenant_role_name(const ServiceAccount& host);

[[nodiscard]] json::Value tenant_role(const TenantRights& rights);
[[nodiscard]] json::Value tenant_role_binding(const TenantRights& rights);

// InvalidInput for the host's own namespace, unless service accounts other than the host's are
// named: an Operator there could name the host's account, and act with all of its rights.
[[nodiscard]] Result<> check_tenant(const TenantRights& rights);

// Whether a server with this answer of /version supports constrained impersonation.
[[nodiscard]] bool knows_constrained_impersonation(const json::Value& version);

// The rights by a Role and a RoleBinding in the cluster.
struct TenantRow {
  std::string namespace_;
  std::set<std::string> service_accounts;  // Empty: all, or none; see acts.
  bool acts = false;                       // False: the Role has no right to act as an account.
  Impersonation impersonation = Impersonation::Constrained;
  ServiceAccount host;
  std::string source;  // "hangar tenant", or the label app.kubernetes.io/managed-by: "Helm".
};

// One row for each subject of a RoleBinding whose Role exists, sorted by namespace. Ignores objects
// without kTenantLabel, and invalid ones.
[[nodiscard]] std::vector<TenantRow> tenant_rows(const std::vector<json::Value>& roles,
                                                 const std::vector<json::Value>& bindings);
[[nodiscard]] std::string tenant_table(const std::vector<TenantRow>& rows);
[[nodiscard]] json::Value tenant_document(const std::vector<TenantRow>& rows);

}  // namespace hangar::commands
