// `hangar rights`: the smallest roles that cover the rights that a guest has used, for the guest's
// owner to apply.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/tenant_commands.h"
#include "commands/used_rights.h"
#include "host/config.h"
#include "seeing/uses.h"

#include <string>

namespace hangar::commands {

struct RightsOptions {
  seeing::UsesQuestion question;
  RoleOptions roles;
  ManifestFormat format = ManifestFormat::Yaml;  // Not None.
};

struct RightsOutput {
  std::string text;     // Manifests; as YAML with the remarks as comments.
  std::string remarks;  // For stderr; only with JSON.
};

// Reads the rights of the guest's ServiceAccount for the remarks, as far as the kubeconfig's user
// may read them. If they cannot be read, or there is no cluster, a remark says so.
[[nodiscard]] RightsOutput rights(const host::Config& config, const RightsOptions& options,
                                  const seeing::FoundUses& found, const Log& log);

}  // namespace hangar::commands
