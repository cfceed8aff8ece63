// The bounds and permissions of one namespace: all policies that select it, combined. The strictest
// policy applies for each field, and a refusal names the policy that decided.
//
// Rules only narrow the host's own settings, which are checked elsewhere and always apply.
#pragma once

#include "base/result.h"
#include "budget/cache_charges.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "tenants/outbound_server.h"
#include "tenants/tenant_policy.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tenants {

// The reason in the errors below, and in the conditions that show them.
inline constexpr std::string_view kRefusedByPolicy = budget::kRefusedByPolicy;

// A bound, and the policy that sets it.
struct Bound {
  std::uint64_t value = 0;
  std::string policy;

  bool operator==(const Bound&) const = default;
};

// Immutable.
class Rules {
 public:
  using Policies = std::vector<std::shared_ptr<const TenantPolicy>>;

  // No policy: nothing is narrowed.
  Rules() = default;
  // If several policies decide the same, the first one is named.
  explicit Rules(Policies policies) : policies_(std::move(policies)) {}
  // `presumed`: those of `policies` of which it is not known whether they select the namespace.
  // They narrow, but allow nothing that is refused without a policy.
  Rules(Policies policies, std::set<std::string> presumed)
      : policies_(std::move(policies)), presumed_(std::move(presumed)) {}

  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] bool empty() const { return policies_.empty(); }

  // Denied with the reason kRefusedByPolicy; the message says what to do.
  [[nodiscard]] Result<> check_service_account(std::string_view name) const;
  // The same. A reference that does not parse is not refused here: it fails later, as without
  // policies.
  [[nodiscard]] Result<> check_module(const modules::Source& source) const;
  // The same for a module that is used although its definition may name another source by now.
  // `resolved`: its Supplied::resolved; refused only if it is known. The tag and the query that led
  // to it are not in that text, so it is enough that a policy allows any tag, digest or query of
  // the place. A module from the place of `named`, which the definition names, is not refused here:
  // check_module() is about that place.
  [[nodiscard]] Result<> check_loaded_module(std::string_view resolved,
                                             const modules::Source& named) const;
  // The same. `position`: index of the Operator among those of its namespace that run or wait to
  // run, from 0.
  [[nodiscard]] Result<> check_operator_count(std::uint64_t position) const;

  // Whether operators may send requests to that server, and to which addresses its name may
  // resolve. Denied as above unless at least one policy that is not presumed lists servers, and
  // each policy with a list lists this one.
  enum class Addresses : std::uint8_t { Public, AsHostSays };
  [[nodiscard]] Result<Addresses> check_outbound(const OutboundServer& server) const;

  // Whether bodies of what operators write may be recorded. Denied as above unless at least one
  // policy that is not presumed allows it, and none forbids it.
  [[nodiscard]] Result<> check_recorded_bodies() const;

  // std::nullopt: the host's setting applies.
  [[nodiscard]] std::optional<Bound> guest_memory_bytes() const;
  [[nodiscard]] std::optional<Bound> guest_disk_bytes() const;
  [[nodiscard]] std::optional<Bound> module_disk_bytes() const;
  [[nodiscard]] std::optional<Bound> cpu_millicores() const;
  [[nodiscard]] std::optional<Bound> output_bytes_per_second() const;
  [[nodiscard]] std::optional<Bound> operators() const;
  [[nodiscard]] std::optional<Bound> feeds() const;
  [[nodiscard]] std::optional<Bound> own_watches() const;
  [[nodiscard]] std::optional<Bound> upstream_requests() const;
  [[nodiscard]] std::optional<Bound> fetches() const;
  // The policy that restricts URLs of modules to public addresses; empty: none.
  [[nodiscard]] std::string public_addresses_because() const;
  // The requester for the modules of that namespace, restricted by these rules.
  [[nodiscard]] modules::Requester requester(std::string namespace_name) const;

 private:
  // Denied, because no policy allows it.
  [[nodiscard]] Error allowed_by_none(std::string_view why) const;
  [[nodiscard]] std::optional<Bound> least(std::optional<std::uint64_t> Budgets::* budget) const;

  Policies policies_;
  std::set<std::string> presumed_;  // Their names.
};

}  // namespace hangar::tenants
