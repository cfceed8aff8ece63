#include "tenants/tenant_policy.h"

#include "base/quantity.h"
#include "base/result.h"
#include "json/fields.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/selector.h"
#include "tenants/outbound_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tenants {

namespace {

using json::Fields;

// A key or value of a label has none of the characters with a meaning in a selector's text.
// LabelSelector::parse() finds other errors.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '-' || character == '_' ||
           character == '.' || character == '/';
  });
}

Result<std::string> term_of(const Fields& expression) {
  std::string key = HANGAR_TRY(expression.required_text("key"));
  if (!is_plain(key)) return expression.wrong("key", "the key of a label");
  const std::string relation = HANGAR_TRY(expression.required_text("operator"));
  const std::vector<std::string> values = HANGAR_TRY(expression.texts("values"));
  if (!std::ranges::all_of(values, is_plain)) {
    return expression.wrong("values", "values of a label");
  }
  const bool has_values = relation == "In" || relation == "NotIn";
  if (has_values == values.empty()) {
    return expression.wrong("values", has_values ? "a list with at least one value"
                                                 : fmt::format("empty for {}", relation));
  }
  if (relation == "In") return fmt::format("{} in ({})", key, fmt::join(values, ","));
  if (relation == "NotIn") return fmt::format("{} notin ({})", key, fmt::join(values, ","));
  if (relation == "Exists") return key;
  if (relation == "DoesNotExist") return "!" + key;
  return expression.wrong("operator", "In, NotIn, Exists or DoesNotExist");
}

// A field of a later version may forbid anything. The API server drops fields that are in no CRD.
Result<> check_known(const json::Object& object, const Fields& fields,
                     std::initializer_list<std::string_view> known) {
  for (const auto& member : object) {
    const std::string_view key = member.key();
    if (std::ranges::find(known, key) != known.end() || member.value().is_null()) continue;
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("{}: this version of hangar does not know the field", fields.name(key)));
  }
  return {};
}

// A missing field forbids nothing.
Result<bool> allows(const Fields& fields, std::string_view key) {
  if (!fields.has(key)) return true;
  return fields.flag(key);
}

Result<std::optional<std::vector<std::string>>> list_at(const Fields& fields,
                                                        std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  return HANGAR_TRY(fields.texts(key));
}

Result<std::optional<std::uint64_t>> count_at(const Fields& fields, std::string_view key,
                                              std::int64_t least) {
  if (!fields.has(key)) return std::nullopt;
  const std::int64_t count = HANGAR_TRY(fields.integer(key));
  if (count < least) return fields.wrong(key, fmt::format("{} or more", least));
  return static_cast<std::uint64_t>(count);
}

Result<std::optional<std::uint64_t>> bytes_at(const Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  const Result<std::uint64_t> bytes = parse_bytes(HANGAR_TRY(fields.text(key)));
  if (!bytes) return fields.wrong(key, "a number of bytes such as 256Mi");
  return *bytes;
}

// With zero cores, a namespace could do no work at all.
Result<std::optional<std::uint64_t>> cores_at(const Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  const Result<std::uint64_t> millicores = parse_millicores(HANGAR_TRY(fields.text(key)));
  if (!millicores || *millicores == 0) {
    return fields.wrong(key, "a number of cores, more than 0, such as 500m or 2");
  }
  return *millicores;
}

Result<Budgets> parse_budgets(const json::Object& object, const Fields& fields) {
  HANGAR_TRY(check_known(object, fields,
                         {"guestMemory", "guestDisk", "moduleDisk", "cpu", "output", "operators",
                          "feeds", "ownWatches", "upstreamRequests", "fetches"}));
  Budgets budgets;
  budgets.guest_memory_bytes = HANGAR_TRY(bytes_at(fields, "guestMemory"));
  budgets.guest_disk_bytes = HANGAR_TRY(bytes_at(fields, "guestDisk"));
  budgets.module_disk_bytes = HANGAR_TRY(bytes_at(fields, "moduleDisk"));
  budgets.cpu_millicores = HANGAR_TRY(cores_at(fields, "cpu"));
  budgets.output_bytes_per_second = HANGAR_TRY(bytes_at(fields, "output"));
  budgets.operators = HANGAR_TRY(count_at(fields, "operators", 0));
  budgets.feeds = HANGAR_TRY(count_at(fields, "feeds", 0));
  budgets.own_watches = HANGAR_TRY(count_at(fields, "ownWatches", 0));
  // With 0 of these, a namespace could do no work at all.
  budgets.upstream_requests = HANGAR_TRY(count_at(fields, "upstreamRequests", 1));
  budgets.fetches = HANGAR_TRY(count_at(fields, "fetches", 1));
  return budgets;
}

Result<ModuleRules> parse_modules(const json::Object& object, const Fields& fields) {
  HANGAR_TRY(check_known(object, fields, {"urls", "http", "insecure", "privateAddresses"}));
  ModuleRules rules;
  rules.urls = HANGAR_TRY(list_at(fields, "urls"));
  rules.allows_http = HANGAR_TRY(allows(fields, "http"));
  rules.allows_insecure = HANGAR_TRY(allows(fields, "insecure"));
  rules.allows_private_addresses = HANGAR_TRY(allows(fields, "privateAddresses"));
  return rules;
}

Result<OutboundRules> parse_outbound(const json::Object& object, const Fields& fields) {
  HANGAR_TRY(check_known(object, fields, {"hosts", "privateAddresses"}));
  if (!fields.has("hosts")) return fields.wrong("hosts", "a list of host names");
  OutboundRules rules;
  const std::vector<std::string> hosts = HANGAR_TRY(fields.texts("hosts"));
  for (const std::string& host : hosts) {
    const Result<OutboundPattern> pattern = OutboundPattern::parse(host);
    if (!pattern) {
      return std::unexpected(
          Error(pattern.error()).in(fmt::format("{} \"{}\"", fields.name("hosts"), host)));
    }
    rules.hosts.push_back(*pattern);
  }
  rules.allows_private_addresses = HANGAR_TRY(fields.flag("privateAddresses"));
  return rules;
}

Result<RecordRules> parse_records(const json::Object& object, const Fields& fields) {
  HANGAR_TRY(check_known(object, fields, {"bodies"}));
  RecordRules rules;
  if (fields.has("bodies")) rules.bodies = HANGAR_TRY(fields.flag("bodies"));
  return rules;
}

Result<> read_selector(const Fields& spec, TenantPolicy& policy) {
  const json::Object* const selector = HANGAR_TRY(spec.object("namespaceSelector"));
  if (selector == nullptr) return {};
  policy.namespaces = HANGAR_TRY(parse_label_selector(*selector, spec.name("namespaceSelector")));
  return {};
}

Result<> read(const json::Object& object, TenantPolicy& policy) {
  const Fields spec(object, "spec");
  HANGAR_TRY(read_selector(spec, policy));
  HANGAR_TRY(check_known(
      object, spec,
      {"namespaceSelector", "budgets", "modules", "outbound", "records", "serviceAccounts"}));
  if (const json::Object* const budgets = HANGAR_TRY(spec.object("budgets"))) {
    policy.budgets = HANGAR_TRY(parse_budgets(*budgets, Fields(*budgets, spec.name("budgets"))));
  }
  if (const json::Object* const modules = HANGAR_TRY(spec.object("modules"))) {
    policy.modules = HANGAR_TRY(parse_modules(*modules, Fields(*modules, spec.name("modules"))));
  }
  if (const json::Object* const outbound = HANGAR_TRY(spec.object("outbound"))) {
    policy.outbound =
        HANGAR_TRY(parse_outbound(*outbound, Fields(*outbound, spec.name("outbound"))));
  }
  if (const json::Object* const records = HANGAR_TRY(spec.object("records"))) {
    policy.records = HANGAR_TRY(parse_records(*records, Fields(*records, spec.name("records"))));
  }
  policy.service_accounts = HANGAR_TRY(list_at(spec, "serviceAccounts"));
  return {};
}

}  // namespace

kube::Resource tenant_policy_resource() {
  return {.group = "hangar.dev",
          .version = "v1alpha1",
          .plural = "tenantpolicies",
          .kind = "TenantPolicy",
          .namespaced = false};
}

Result<kube::LabelSelector> parse_label_selector(const json::Object& selector,
                                                 const std::string& path) {
  const Fields fields(selector, path);
  std::vector<std::string> terms;
  if (const json::Object* const labels = HANGAR_TRY(fields.object("matchLabels"))) {
    const Fields wanted(*labels, fields.name("matchLabels"));
    for (const auto& label : *labels) {
      const std::string_view key = label.key();
      const std::string value = HANGAR_TRY(wanted.text(key));
      if (!is_plain(key) || !is_plain(value)) return wanted.wrong(key, "the value of a label");
      terms.push_back(fmt::format("{}={}", key, value));
    }
  }
  const std::vector<Fields> expressions = HANGAR_TRY(fields.objects("matchExpressions"));
  for (const Fields& expression : expressions)
    terms.push_back(HANGAR_TRY(term_of(expression)));
  Result<kube::LabelSelector> parsed =
      kube::LabelSelector::parse(fmt::format("{}", fmt::join(terms, ",")));
  if (!parsed) return std::unexpected(std::move(parsed).error().in(path));
  return parsed;
}

TenantPolicy parse_tenant_policy(const json::Value& manifest) {
  TenantPolicy policy{.name = kube::key_of(manifest).name};
  static const json::Object none;
  const json::Value* const spec = json::find(manifest, {"spec"});
  const bool is_object = spec != nullptr && spec->is_object();
  if (!is_object && spec != nullptr && !spec->is_null()) {
    policy.problem = "spec: must be an object";
    return policy;
  }
  if (Result<> understood = read(is_object ? spec->get_object() : none, policy); !understood) {
    policy.problem = understood.error().message();
  }
  return policy;
}

}  // namespace hangar::tenants
