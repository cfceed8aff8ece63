#include "tenants/rules.h"

#include "base/result.h"
#include "modules/allow_list.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "tenants/outbound_server.h"
#include "tenants/tenant_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::tenants {

namespace {

// How many entries of a list a message repeats.
constexpr std::size_t kNamedMax = 5;

std::unexpected<Error> refused(const TenantPolicy& policy, std::string_view what) {
  return std::unexpected(
      Error(ErrorKind::Denied, fmt::format("TenantPolicy {} {}", policy.name, what))
          .with_reason(std::string(kRefusedByPolicy)));
}

// An invalid policy may forbid anything.
Result<> check_readable(const TenantPolicy& policy) {
  if (policy.problem.empty()) return {};
  return refused(policy, fmt::format("is invalid ({}), so nothing may run here: fix or "
                                     "delete the policy",
                                     policy.problem));
}

std::string choice_of(const std::vector<std::string>& allowed) {
  if (allowed.empty()) return "it allows none";
  const std::span<const std::string> named(allowed.data(), std::min(allowed.size(), kNamedMax));
  return fmt::format("it allows {}{}", fmt::join(named, ", "),
                     allowed.size() > kNamedMax ? " and others" : "");
}

// What is known of a module's source.
enum class Known : std::uint8_t {
  Reference,  // As its author wrote it.
  Place,      // Reference::place().
};

Result<> check_url(const TenantPolicy& policy, const modules::Reference& reference, Known known) {
  if (policy.modules.urls) {
    const std::vector<std::string>& urls = *policy.modules.urls;
    modules::AllowList allowed(urls);
    if (known == Known::Place) allowed = allowed.of_places();
    // An AllowList without globs allows everything.
    if (urls.empty() || !allowed.check(reference)) {
      return refused(policy, fmt::format("does not allow the module {}: {}", reference.display(),
                                         choice_of(urls)));
    }
  }
  const auto* const http = std::get_if<modules::HttpSource>(&reference.source());
  const bool is_plain = http != nullptr && http->url.starts_with("http://");
  if (!is_plain || policy.modules.allows_http) return {};
  return refused(policy, fmt::format("does not allow modules over plain http ({}): use https",
                                     reference.display()));
}

}  // namespace

Result<> Rules::check_service_account(std::string_view name) const {
  for (const auto& policy : policies_) {
    HANGAR_TRY(check_readable(*policy));
    if (!policy->service_accounts) continue;
    const std::vector<std::string>& allowed = *policy->service_accounts;
    if (std::ranges::find(allowed, name) != allowed.end()) continue;
    return refused(*policy, fmt::format("does not allow the ServiceAccount {}: {}. Name another "
                                        "one in serviceAccountName, or have the policy changed",
                                        name, choice_of(allowed)));
  }
  return {};
}

Result<> Rules::check_module(const modules::Source& source) const {
  if (policies_.empty()) return {};
  const Result<modules::Reference> reference = modules::Reference::parse(source.reference);
  if (!reference) return {};
  for (const auto& policy : policies_) {
    HANGAR_TRY(check_readable(*policy));
    HANGAR_TRY(check_url(*policy, *reference, Known::Reference));
    if (source.insecure && !policy->modules.allows_insecure) {
      return refused(*policy, fmt::format("does not allow insecure for the module {}: leave it "
                                          "out, and serve the module with a certificate that the "
                                          "host trusts",
                                          reference->display()));
    }
  }
  return {};
}

Result<> Rules::check_loaded_module(std::string_view resolved, const modules::Source& named) const {
  if (policies_.empty()) return {};
  const Result<modules::Reference> loaded = modules::Reference::parse(resolved);
  if (!loaded) return {};
  const std::string place = loaded->place();
  const Result<modules::Reference> present = modules::Reference::parse(named.reference);
  if (present && present->place() == place) return {};
  const Result<modules::Reference> reference = modules::Reference::parse(place);
  if (!reference) return {};
  for (const auto& policy : policies_) {
    HANGAR_TRY(check_readable(*policy));
    HANGAR_TRY(check_url(*policy, *reference, Known::Place));
  }
  return {};
}

Result<> Rules::check_operator_count(std::uint64_t position) const {
  for (const auto& policy : policies_) {
    const std::optional<std::uint64_t>& most = policy->budgets.operators;
    if (!most || position < *most) continue;
    // The message names the strictest policy: that is the one to change.
    const Bound bound = *operators();
    return std::unexpected(
        Error(ErrorKind::Denied,
              fmt::format("TenantPolicy {} allows {} Operators in this namespace, and as many were "
                          "there before: delete one of them, or have the policy changed",
                          bound.policy, bound.value))
            .with_reason(std::string(kRefusedByPolicy)));
  }
  return {};
}

Result<Rules::Addresses> Rules::check_outbound(const OutboundServer& server) const {
  bool is_listed = false;
  Addresses addresses = Addresses::AsHostSays;
  for (const auto& policy : policies_) {
    HANGAR_TRY(check_readable(*policy));
    if (!policy->outbound) continue;
    const std::vector<OutboundPattern>& hosts = policy->outbound->hosts;
    if (std::ranges::none_of(hosts, [&](const auto& one) { return one.matches(server); })) {
      std::vector<std::string> names;
      names.reserve(hosts.size());
      for (const OutboundPattern& host : hosts)
        names.push_back(host.to_string());
      return refused(*policy, fmt::format("does not list it: {}", choice_of(names)));
    }
    is_listed = is_listed || !presumed_.contains(policy->name);
    if (!policy->outbound->allows_private_addresses) addresses = Addresses::Public;
  }
  if (is_listed) return addresses;
  return std::unexpected(
      allowed_by_none("no TenantPolicy lists servers for this namespace (outbound.hosts)"));
}

Result<> Rules::check_recorded_bodies() const {
  bool is_allowed = false;
  for (const auto& policy : policies_) {
    HANGAR_TRY(check_readable(*policy));
    if (!policy->records.bodies) continue;
    if (!*policy->records.bodies) {
      return refused(*policy, "does not allow that bodies are recorded (records.bodies)");
    }
    is_allowed = is_allowed || !presumed_.contains(policy->name);
  }
  if (is_allowed) return {};
  return std::unexpected(allowed_by_none(
      "no TenantPolicy of this namespace allows that bodies are recorded (records.bodies)"));
}

Error Rules::allowed_by_none(std::string_view why) const {
  std::string text(why);
  if (!presumed_.empty()) {
    text += "; the host does not know the labels of this namespace, which some policies look at";
  }
  return Error(ErrorKind::Denied, std::move(text)).with_reason(std::string(kRefusedByPolicy));
}

std::optional<Bound> Rules::guest_memory_bytes() const {
  return least(&Budgets::guest_memory_bytes);
}

std::optional<Bound> Rules::guest_disk_bytes() const {
  return least(&Budgets::guest_disk_bytes);
}

std::optional<Bound> Rules::module_disk_bytes() const {
  return least(&Budgets::module_disk_bytes);
}

std::optional<Bound> Rules::cpu_millicores() const {
  return least(&Budgets::cpu_millicores);
}

std::optional<Bound> Rules::output_bytes_per_second() const {
  return least(&Budgets::output_bytes_per_second);
}

std::optional<Bound> Rules::operators() const {
  return least(&Budgets::operators);
}

std::optional<Bound> Rules::feeds() const {
  return least(&Budgets::feeds);
}

std::optional<Bound> Rules::own_watches() const {
  return least(&Budgets::own_watches);
}

std::optional<Bound> Rules::upstream_requests() const {
  return least(&Budgets::upstream_requests);
}

std::optional<Bound> Rules::fetches() const {
  return least(&Budgets::fetches);
}

std::string Rules::public_addresses_because() const {
  for (const auto& policy : policies_) {
    if (!policy->modules.allows_private_addresses || !policy->problem.empty()) return policy->name;
  }
  return {};
}

modules::Requester Rules::requester(std::string namespace_name) const {
  modules::Requester requester = modules::Requester::in_namespace(std::move(namespace_name));
  const std::string because = public_addresses_because();
  if (because.empty()) return requester;
  return requester.at_public_addresses("TenantPolicy " + because);
}

std::optional<Bound> Rules::least(std::optional<std::uint64_t> Budgets::* budget) const {
  std::optional<Bound> least;
  for (const auto& policy : policies_) {
    const std::optional<std::uint64_t>& own = policy->budgets.*budget;
    if (own && (!least || *own < least->value)) {
      least = Bound{.value = *own, .policy = policy->name};
    }
  }
  return least;
}

}  // namespace hangar::tenants
