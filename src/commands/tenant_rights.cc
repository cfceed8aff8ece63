#include "commands/tenant_rights.h"

#include "base/dns_name.h"
#include "base/text.h"
#include "commands/rbac.h"
#include "json/texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <utility>

namespace hangar::commands {

namespace {

constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";
constexpr std::string_view kOurs = "hangar-tenant";

constexpr std::string_view kConstrainedVerb = "impersonate:serviceaccount";
constexpr std::string_view kLegacyVerb = "impersonate";

using Words = std::initializer_list<std::string_view>;

json::Object rule(std::string_view group, Words resources, Words verbs) {
  return json::Object{{"apiGroups", json::array_of(Words{group})},
                      {"resources", json::array_of(resources)},
                      {"verbs", json::array_of(verbs)}};
}

json::Object named(json::Object rule, const std::vector<std::string>& names) {
  if (!names.empty()) rule["resourceNames"] = json::array_of(names);
  return rule;
}

void add_acting(json::Array& rules, const TenantRights& rights) {
  if (rights.impersonation == Impersonation::Legacy) {
    rules.emplace_back(
        named(rule("", {"serviceaccounts"}, {kLegacyVerb}), rights.service_accounts));
    return;
  }
  rules.emplace_back(named(rule("authentication.k8s.io", {"serviceaccounts"}, {kConstrainedVerb}),
                           rights.service_accounts));
  // The verbs that are allowed as a service account, one by one: RBAC has no wildcard for a part of
  // a verb.
  json::Object on = rule("*", {"*"}, {});
  json::Array& verbs = on["verbs"].get_array();
  for (const std::string_view verb : kResourceVerbs)
    verbs.emplace_back(json::String(fmt::format("impersonate-on:serviceaccount:{}", verb)));
  rules.emplace_back(std::move(on));
}

json::Value object_of(std::string_view kind, const TenantRights& rights) {
  json::Value object =
      json::Object{{"apiVersion", fmt::format("{}/v1", kRbacGroup)}, {"kind", json::String(kind)}};
  json::set_at(object, {"metadata", "name"}, json::String(tenant_role_name(rights.host)));
  json::set_at(object, {"metadata", "namespace"}, json::String(rights.namespace_));
  json::set_at(object, {"metadata", "labels", kTenantLabel}, "true");
  json::set_at(object, {"metadata", "labels", kManagedBy}, json::String(kOurs));
  return object;
}

bool has_text(const json::Value& rule, std::string_view member, std::string_view text) {
  const json::Array* const array = json::array_at(rule, {member});
  return array != nullptr && std::ranges::any_of(*array, [text](const json::Value& entry) {
           return entry.is_string() && std::string_view(entry.get_string()) == text;
         });
}

bool is_tenants(const json::Value& object) {
  return json::string_at(object, {"metadata", "labels", kTenantLabel}) == "true";
}

void read_rules(const json::Value& role, TenantRow& row) {
  const json::Array* const rules = json::array_at(role, {"rules"});
  if (rules == nullptr) return;
  for (const json::Value& rule : *rules) {
    const bool is_legacy = has_text(rule, "verbs", kLegacyVerb);
    if (!is_legacy && !has_text(rule, "verbs", kConstrainedVerb)) continue;
    row.acts = true;
    row.impersonation = is_legacy ? Impersonation::Legacy : Impersonation::Constrained;
    const json::Array* const names = json::array_at(rule, {"resourceNames"});
    if (names == nullptr) continue;
    for (const json::Value& name : *names)
      if (name.is_string()) row.service_accounts.emplace(name.get_string());
  }
}

std::string names_of(const TenantRow& row) {
  if (!row.acts) return "<none>";
  if (row.service_accounts.empty()) return "*";
  return fmt::format("{}", fmt::join(row.service_accounts, ","));
}

std::string_view reach_of(const TenantRow& row) {
  return row.impersonation == Impersonation::Legacy ? "cluster" : "namespace";
}

std::string text_of(const ServiceAccount& account) {
  return fmt::format("{}:{}", account.namespace_, account.name);
}

}  // namespace

Result<ServiceAccount> parse_service_account(std::string_view text) {
  const std::size_t colon = text.find(':');
  ServiceAccount account{.namespace_ = std::string(text.substr(0, colon))};
  if (colon != std::string_view::npos) account.name = text.substr(colon + 1);
  if (!is_dns_subdomain(account.namespace_) || !is_dns_subdomain(account.name)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" must be a service account such as hangar-system:hangar, its "
                            "namespace and its name",
                            text));
  }
  return account;
}

std::string tenant_role_name(const ServiceAccount& host) {
  return fmt::format("hangar:tenant:{}:{}", host.namespace_, host.name);
}

json::Value tenant_role(const TenantRights& rights) {
  const auto has = [&rights](host::Feature feature) {
    return rights.features.empty() ||
           std::ranges::find(rights.features, feature) != rights.features.end();
  };
  json::Array rules;
  // Flights of instances act as service accounts only if accounts are named.
  const bool is_named = has(host::Feature::Airways) && !rights.service_accounts.empty();
  const bool has_guests =
      has(host::Feature::Operators) || has(host::Feature::Workflows) || has(host::Feature::Flights);
  if (has_guests || is_named) {
    add_acting(rules, rights);
  }
  // Modules and their changes.
  if (has_guests || has(host::Feature::Airways)) {
    rules.emplace_back(rule("", {"configmaps"}, {"get", "list", "watch"}));
  }
  // The environment and files of operators.
  if (has(host::Feature::Operators)) rules.emplace_back(rule("", {"secrets"}, {"get"}));
  if (has(host::Feature::Flights) || has(host::Feature::Workflows)) {
    // Copies of the modules that Flights and workflows are pinned to.
    rules.emplace_back(rule("apps", {"controllerrevisions"}, {"get", "list", "create", "delete"}));
  }
  if (has(host::Feature::Airways) || has(host::Feature::Flights)) {
    // The history of releases, stored next to their instances.
    rules.emplace_back(rule("", {"secrets"}, {"list", "create", "patch", "delete"}));
    // The readiness of Services.
    rules.emplace_back(rule("discovery.k8s.io", {"endpointslices"}, {"list"}));
  }
  json::Value role = object_of("Role", rights);
  role.as_object()["rules"] = std::move(rules);
  return role;
}

json::Value tenant_role_binding(const TenantRights& rights) {
  json::Value binding = object_of("RoleBinding", rights);
  binding.as_object()["roleRef"] = json::Object{
      {"apiGroup", kRbacGroup}, {"kind", "Role"}, {"name", tenant_role_name(rights.host)}};
  binding.as_object()["subjects"] =
      json::Array{json::Object{{"kind", "ServiceAccount"},
                               {"name", rights.host.name},
                               {"namespace", rights.host.namespace_}}};
  return binding;
}

Result<> check_tenant(const TenantRights& rights) {
  if (rights.namespace_ != rights.host.namespace_) return {};
  const auto& names = rights.service_accounts;
  if (!names.empty() && std::ranges::find(names, rights.host.name) == names.end()) return {};
  return fail(ErrorKind::InvalidInput,
              fmt::format("{} is the host's own namespace: an Operator there could act as the "
                          "ServiceAccount {} itself. Keep tenants in other namespaces, or name the "
                          "service accounts (--service-account)",
                          rights.namespace_, rights.host.name));
}

bool knows_constrained_impersonation(const json::Value& version) {
  constexpr int kMajor = 1;
  constexpr int kMinor = 36;  // Beta, and on by default.
  const auto number = [&version](std::string_view member) {
    const std::string_view text = json::string_at(version, {member});
    int value = 0;  // "36+" of cloud providers is 36.
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  return std::pair(number("major"), number("minor")) >= std::pair(kMajor, kMinor);
}

std::vector<TenantRow> tenant_rows(const std::vector<json::Value>& roles,
                                   const std::vector<json::Value>& bindings) {
  using Key = std::pair<std::string_view, std::string_view>;
  std::map<Key, const json::Value*> role_of;
  for (const json::Value& role : roles) {
    role_of[{json::string_at(role, {"metadata", "namespace"}),
             json::string_at(role, {"metadata", "name"})}] = &role;
  }
  std::vector<TenantRow> rows;
  for (const json::Value& binding : bindings) {
    const std::string_view namespace_ = json::string_at(binding, {"metadata", "namespace"});
    const auto role = role_of.find({namespace_, json::string_at(binding, {"roleRef", "name"})});
    const json::Array* const subjects = json::array_at(binding, {"subjects"});
    if (!is_tenants(binding) || role == role_of.end() || subjects == nullptr) continue;
    for (const json::Value& subject : *subjects) {
      const std::string_view source = json::string_at(binding, {"metadata", "labels", kManagedBy});
      TenantRow row{.namespace_ = std::string(namespace_),
                    .host = {.namespace_ = std::string(json::string_at(subject, {"namespace"})),
                             .name = std::string(json::string_at(subject, {"name"}))},
                    .source = source == kOurs ? std::string("hangar tenant") : std::string(source)};
      read_rules(*role->second, row);
      rows.push_back(std::move(row));
    }
  }
  std::ranges::sort(rows, {}, [](const TenantRow& row) {
    return std::tuple(row.namespace_, row.host, row.source);
  });
  return rows;
}

std::string tenant_table(const std::vector<TenantRow>& rows) {
  if (rows.empty()) return "hangar may act in no namespace\n";
  using Line = std::array<std::string, 5>;
  std::vector<Line> lines = {{"NAMESPACE", "SERVICE ACCOUNTS", "REACH", "HOST", "GIVEN BY"}};
  for (const TenantRow& row : rows) {
    // Members of a namespace may write Roles there, whose names of resources may be any text.
    lines.push_back({row.namespace_, printable(names_of(row)),
                     std::string(row.acts ? reach_of(row) : "-"), printable(text_of(row.host)),
                     printable(row.source)});
  }
  std::array<std::size_t, 5> widths{};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i)
      widths.at(i) = std::max(widths.at(i), line.at(i).size());
  }
  std::string table;
  for (const Line& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      table += fmt::format("{:<{}}   ", line.at(i), widths.at(i));
    table += line.back() + "\n";
  }
  return table;
}

json::Value tenant_document(const std::vector<TenantRow>& rows) {
  json::Array tenants;
  for (const TenantRow& row : rows) {
    tenants.emplace_back(json::Object{
        {"namespace", row.namespace_},
        {"serviceAccounts", json::array_of(row.service_accounts)},
        {"actsAs", row.acts ? (row.service_accounts.empty() ? "All" : "Named") : "None"},
        {"reach", json::String(reach_of(row))},
        {"host", text_of(row.host)},
        {"givenBy", row.source}});
  }
  return json::Object{{"tenants", std::move(tenants)}};
}

}  // namespace hangar::commands
