// `hangar tenant allow`, `list` and `remove`: manage the namespaces in which hangar may act.
//
// They write with the rights of the kubeconfig's user. hangar itself has no right to change RBAC.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/tenant_rights.h"
#include "host/config.h"

#include <cstdint>
#include <string>

namespace hangar::commands {

enum class DryRun : std::uint8_t { None, Client, Server };
enum class ManifestFormat : std::uint8_t { None, Yaml, Json };

struct AllowTenantOptions {
  TenantRights rights;  // allow_tenant() sets its impersonation.
  // Act for the service accounts wherever they have rights, not only in tenants' namespaces.
  bool cluster_reach = false;
  DryRun dry_run = DryRun::None;
  ManifestFormat format = ManifestFormat::None;
};

struct TenantOutput {
  std::string text;     // For stdout.
  std::string warning;  // For stderr; may be empty.
};

// Writes the Role and the RoleBinding by server-side apply, and so revokes earlier rights there
// that are no longer named. DryRun::Client sends no request, and assumes that the API server
// supports constrained impersonation.
[[nodiscard]] Result<TenantOutput> allow_tenant(const host::Config& config,
                                                const AllowTenantOptions& options, const Log& log);

// All Roles and RoleBindings with kTenantLabel, including those of the chart.
[[nodiscard]] Result<std::string> list_tenants(const host::Config& config, ManifestFormat format,
                                               const Log& log);

struct RemoveTenantOptions {
  std::string namespace_;
  ServiceAccount host;
  DryRun dry_run = DryRun::None;
};

// Deletes what allow_tenant() wrote. NotFound if there is none; if other objects (the chart's) let
// the host act there, the message names them.
[[nodiscard]] Result<std::string> remove_tenant(const host::Config& config,
                                                const RemoveTenantOptions& options, const Log& log);

}  // namespace hangar::commands
