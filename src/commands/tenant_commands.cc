#include "commands/tenant_commands.h"

#include "commands/rbac.h"
#include "host/cluster_session.h"
#include "io/task.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::string_view kFieldManager = "hangar-tenant";

// A message like kubectl's.
std::string done(std::string_view kind, std::string_view name, std::string_view what,
                 DryRun dry_run) {
  constexpr std::string_view kSuffixes[] = {"", " (dry run)", " (server dry run)"};
  return fmt::format("{}.rbac.authorization.k8s.io/{} {}{}\n", kind, name, what,
                     kSuffixes[static_cast<std::size_t>(dry_run)]);
}

std::string manifests_of(const TenantRights& rights, ManifestFormat format) {
  json::Value role = tenant_role(rights);
  json::Value binding = tenant_role_binding(rights);
  if (format == ManifestFormat::Yaml) {
    return json::to_yaml(role) + "---\n" + json::to_yaml(binding);
  }
  return json::dump_pretty(
             json::Object{{"apiVersion", "v1"},
                          {"kind", "List"},
                          {"items", json::Array{std::move(role), std::move(binding)}}}) +
         "\n";
}

std::string report_of(const AllowTenantOptions& options) {
  if (options.format != ManifestFormat::None) return manifests_of(options.rights, options.format);
  const std::string name = tenant_role_name(options.rights.host);
  return done("role", name, "serverside-applied", options.dry_run) +
         done("rolebinding", name, "serverside-applied", options.dry_run);
}

// Explains why the API server does not let the caller grant rights.
Error explain(const Error& error) {
  constexpr std::string_view kEscalation =
      "attempting to grant RBAC permissions not currently held";
  if (error.kind() != ErrorKind::Denied || !error.message().contains(kEscalation)) return error;
  return {ErrorKind::Denied,
          fmt::format(
              "{}: only a user who has these rights, or the verbs escalate on roles and bind on "
              "rolebindings, can grant them: ask a cluster administrator",
              error.message())};
}

io::Task<Result<TenantOutput>> allow(const kube::Client& client, AllowTenantOptions options) {
  TenantOutput output;
  TenantRights& rights = options.rights;
  const std::stop_token stop;
  if (!options.cluster_reach) {
    const json::Value version = HANGAR_CO_TRY(co_await client.get_path("/version", stop));
    if (!knows_constrained_impersonation(version)) {
      rights.impersonation = Impersonation::Legacy;
      output.warning = fmt::format(
          "this API server ({}) does not know constrained impersonation: hangar may act for these "
          "service accounts wherever their own rights reach. Run this again once it is 1.36 or "
          "later",
          json::string_at(version, {"gitVersion"}));
    }
  }
  const kube::ApplyOptions apply{.field_manager = std::string(kFieldManager),
                                 .force = true,
                                 .dry_run = options.dry_run == DryRun::Server};
  const Result<json::Value> role =
      co_await client.apply(role_resource(), tenant_role(rights), apply, stop);
  if (!role) co_return std::unexpected(explain(role.error()).in("write the Role"));
  const Result<json::Value> binding =
      co_await client.apply(role_binding_resource(), tenant_role_binding(rights), apply, stop);
  // The server looks for the Role, which a dry run has not created.
  const bool is_unbound = !binding && options.dry_run == DryRun::Server &&
                          binding.error().kind() == ErrorKind::NotFound;
  if (!binding && !is_unbound) {
    co_return std::unexpected(explain(binding.error()).in("write the RoleBinding"));
  }
  output.text = report_of(options);
  co_return output;
}

io::Task<Result<std::vector<json::Value>>> list_marked(const kube::Client& client,
                                                       kube::Resource resource) {
  const kube::List list = HANGAR_CO_TRY(co_await client.list(
      std::move(resource), {.label_selector = fmt::format("{}=true", kTenantLabel)},
      std::stop_token()));
  std::vector<json::Value> objects;
  objects.reserve(list.items.size());
  for (const kube::ObjectPtr& object : list.items)
    objects.push_back(object->to_value());
  co_return objects;
}

io::Task<Result<std::vector<TenantRow>>> read_rows(const kube::Client& client) {
  const std::vector<json::Value> roles =
      HANGAR_CO_TRY(co_await list_marked(client, role_resource()));
  const std::vector<json::Value> bindings =
      HANGAR_CO_TRY(co_await list_marked(client, role_binding_resource()));
  co_return tenant_rows(roles, bindings);
}

io::Task<Result<std::string>> remove(const kube::Client& client, RemoveTenantOptions options) {
  const std::string name = tenant_role_name(options.host);
  const kube::ObjectKey key{.namespace_ = options.namespace_, .name = name};
  const kube::DeleteOptions how{.dry_run = options.dry_run == DryRun::Server};
  // The binding first: without it the Role grants nothing.
  const Result<json::Value> binding =
      co_await client.remove(role_binding_resource(), key, how, std::stop_token());
  const Result<json::Value> role =
      co_await client.remove(role_resource(), key, how, std::stop_token());
  for (const Result<json::Value>* const removed : {&binding, &role}) {
    if (!*removed && removed->error().kind() != ErrorKind::NotFound) {
      co_return std::unexpected(removed->error());
    }
  }
  std::string text;
  if (binding) text += done("rolebinding", name, "deleted", options.dry_run);
  if (role) text += done("role", name, "deleted", options.dry_run);
  if (!text.empty()) co_return text;
  // Users who may not list them get the generic answer.
  const Result<std::vector<TenantRow>> rows = co_await read_rows(client);
  for (const TenantRow& row : rows ? *rows : std::vector<TenantRow>()) {
    if (row.namespace_ != options.namespace_ || row.host != options.host) continue;
    co_return fail(
        ErrorKind::NotFound,
        fmt::format("namespace {} is allowed by {}: take it off there (the chart's value "
                    "tenants)",
                    row.namespace_, row.source));
  }
  co_return fail(
      ErrorKind::NotFound,
      fmt::format("namespace {} is not allowed for {}:{}: hangar tenant list shows those "
                  "that are",
                  options.namespace_, options.host.namespace_, options.host.name));
}

}  // namespace

Result<TenantOutput> allow_tenant(const host::Config& config, const AllowTenantOptions& options,
                                  const Log& log) {
  AllowTenantOptions chosen = options;
  chosen.rights.impersonation =
      options.cluster_reach ? Impersonation::Legacy : Impersonation::Constrained;
  HANGAR_TRY(check_tenant(chosen.rights));
  if (chosen.dry_run == DryRun::Client) return TenantOutput{.text = report_of(chosen)};
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  return session.run(allow(session.client, std::move(chosen)));
}

Result<std::string> list_tenants(const host::Config& config, ManifestFormat format,
                                 const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  const std::vector<TenantRow> rows = HANGAR_TRY(session.run(read_rows(session.client)));
  if (format == ManifestFormat::Json) return json::dump_pretty(tenant_document(rows)) + "\n";
  if (format == ManifestFormat::Yaml) return json::to_yaml(tenant_document(rows));
  return tenant_table(rows);
}

Result<std::string> remove_tenant(const host::Config& config, const RemoveTenantOptions& options,
                                  const Log& log) {
  if (options.dry_run == DryRun::Client) {
    const std::string name = tenant_role_name(options.host);
    return done("rolebinding", name, "deleted", options.dry_run) +
           done("role", name, "deleted", options.dry_run);
  }
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  return session.run(remove(session.client, options));
}

}  // namespace hangar::commands
