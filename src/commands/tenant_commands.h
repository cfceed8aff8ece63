// `hangar tenant allow`, `list` and `remove`: in which namespaces hangar may act.
//
// They write with the rights of the kubeconfig. hangar itself has no right to change RBAC.
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
  TenantRights rights;  // Its impersonation is chosen here.
  // Act for the service accounts wherever their own rights reach, and not only in tenants'
  // namespaces.
  bool cluster_reach = false;
  DryRun dry_run = DryRun::None;
  ManifestFormat format = ManifestFormat::None;
};

struct TenantOutput {
  std::string text;     // For the standard output.
  std::string warning;  // For the standard error; may be empty.
};

// Writes the Role and the RoleBinding by server-side apply. What was allowed there before and is
// not named any more is not allowed any more. Does not ask the cluster anything for
// DryRun::Client, and takes it for one that knows constrained impersonation.
[[nodiscard]] Result<TenantOutput> allow_tenant(const host::Config& config,
                                                const AllowTenantOptions& options, const Log& log);

// All that say so by kTenantLabel, also those of the chart.
[[nodiscard]] Result<std::string> list_tenants(const host::Config& config, ManifestFormat format,
                                               const Log& log);

struct RemoveTenantOptions {
  std::string namespace_;
  ServiceAccount host;
  DryRun dry_run = DryRun::None;
};

// Deletes what allow_tenant wrote. NotFound, naming the source, when something else lets the host
// act there (the chart).
[[nodiscard]] Result<std::string> remove_tenant(const host::Config& config,
                                                const RemoveTenantOptions& options, const Log& log);

}  // namespace hangar::commands
