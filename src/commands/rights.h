// `hangar rights`: the smallest roles that cover what a guest has used, for its owner to apply.
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
  std::string text;     // Manifests; of YAML with the remarks as comments.
  std::string remarks;  // For the standard error; of JSON.
};

// Beside what its ServiceAccount has, as far as the user of the kubeconfig may read that: what may
// not be read, or that there is no cluster, is a remark.
[[nodiscard]] RightsOutput rights(const host::Config& config, const RightsOptions& options,
                                  const seeing::FoundUses& found, const Log& log);

}  // namespace hangar::commands
