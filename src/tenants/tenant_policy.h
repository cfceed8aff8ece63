// A TenantPolicy as a struct: the resources that some namespaces may use, and the objects that they
// may name. The schema is in deploy/crds/tenantpolicies.hangar.dev.yaml.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/selector.h"
#include "tenants/outbound_server.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hangar::tenants {

[[nodiscard]] kube::Resource tenant_policy_resource();

// Budgets of one namespace. Unset: the host's own bound applies.
struct Budgets {
  std::optional<std::uint64_t> guest_memory_bytes = {};
  std::optional<std::uint64_t> guest_disk_bytes = {};
  std::optional<std::uint64_t> module_disk_bytes = {};
  std::optional<std::uint64_t> cpu_millicores = {};
  std::optional<std::uint64_t> output_bytes_per_second = {};
  std::optional<std::uint64_t> operators = {};
  std::optional<std::uint64_t> feeds = {};
  std::optional<std::uint64_t> own_watches = {};
  std::optional<std::uint64_t> upstream_requests = {};
  std::optional<std::uint64_t> fetches = {};

  bool operator==(const Budgets&) const = default;
};

struct ModuleRules {
  // Globs as modules::AllowList reads them. Unset: any module; an empty list: none.
  std::optional<std::vector<std::string>> urls = {};
  bool allows_http = true;
  bool allows_insecure = true;
  bool allows_private_addresses = true;

  bool operator==(const ModuleRules&) const = default;
};

// Servers other than the API server to which operators may send requests.
struct OutboundRules {
  std::vector<OutboundPattern> hosts = {};
  // The addresses that the host's setting names; otherwise public ones only.
  bool allows_private_addresses = false;

  bool operator==(const OutboundRules&) const = default;
};

// What the host keeps of what operators do.
struct RecordRules {
  // Whether bodies of their writes may be recorded. Unset: the policy neither allows nor forbids
  // it.
  std::optional<bool> bodies = {};

  bool operator==(const RecordRules&) const = default;
};

struct TenantPolicy {
  std::string name;
  kube::LabelSelector namespaces = {};  // By default all namespaces.
  Budgets budgets = {};
  ModuleRules modules = {};
  // Unset: the policy neither allows nor forbids any server.
  std::optional<OutboundRules> outbound = {};
  RecordRules records = {};
  // Unset: any; an empty list: none.
  std::optional<std::vector<std::string>> service_accounts = {};
  // Why the manifest is invalid; empty: it is valid. The intent of an invalid policy is not known,
  // so it allows nothing.
  std::string problem = {};
};

// Never fails: an invalid manifest is a policy with a problem, for the namespaces that it selects,
// or for all if the selector is invalid. Refuses all that the API server's schema refuses: a host
// may be older or newer than the cluster's schema.
[[nodiscard]] TenantPolicy parse_tenant_policy(const json::Value& manifest);

// Turns a metav1.LabelSelector into the form of a request. InvalidInput names the field.
[[nodiscard]] Result<kube::LabelSelector> parse_label_selector(const json::Object& selector,
                                                               const std::string& path);

}  // namespace hangar::tenants
