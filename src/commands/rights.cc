#include "commands/rights.h"

#include "base/log.h"
#include "base/result.h"
#include "commands/held_rights.h"
#include "commands/tenant_commands.h"
#include "commands/used_rights.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/client.h"
#include "seeing/uses.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

HeldRights held_now(const host::Config& config, const seeing::FoundUses& found, const Log& log) {
  std::optional<kube::Identity> account = kube::service_account_of(found.user);
  if (!account) return {};
  Result<kube::Login> login = host::find_login(config);
  if (!login) return {.bindings = {}, .unread = {login.error().message()}};
  host::ClusterSession session(*std::move(login), log);
  return session.run(read_held_rights(session.client, *std::move(account), namespaces_of(found)));
}

}  // namespace

RightsOutput rights(const host::Config& config, const RightsOptions& options,
                    const seeing::FoundUses& found, const Log& log) {
  const UsedRights used =
      used_rights(options.question, found, held_now(config, found, log), options.roles);
  RightsOutput output;
  if (options.format == ManifestFormat::Json) {
    for (const std::string& remark : used.remarks)
      output.remarks += remark + "\n";
    output.text = json::dump_pretty(json::Object{
                      {"apiVersion", "v1"},
                      {"kind", "List"},
                      {"items", json::Array(used.manifests.begin(), used.manifests.end())}}) +
                  "\n";
    return output;
  }
  for (const std::string& remark : used.remarks)
    output.text += "# " + remark + "\n";
  for (const json::Value& manifest : used.manifests)
    output.text += "---\n" + json::to_yaml(manifest);
  return output;
}

}  // namespace hangar::commands
