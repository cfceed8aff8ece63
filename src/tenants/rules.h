// What one namespace may use and name: all policies that select it, taken together. The strictest
// of them counts for each field, and whatever is refused names the policy that decided.
//
// Rules narrow what the host's own settings allow; those are checked elsewhere, and hold, too.
#pragma once

#include "base/result.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "tenants/tenant_policy.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tenants {

// The reason of the errors below, and of the conditions that tell them.
inline constexpr std::string_view kRefusedByPolicy = "RefusedByPolicy";

// A number, and the policy that says it.
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
  // Of several that decide the same, the first is named.
  explicit Rules(Policies policies) : policies_(std::move(policies)) {}

  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] bool empty() const { return policies_.empty(); }

  // Denied with the reason kRefusedByPolicy, and what to do about it.
  [[nodiscard]] Result<> check_service_account(std::string_view name) const;
  // The same. What does not parse is refused as it would be without policies: later.
  [[nodiscard]] Result<> check_module(const modules::Source& source) const;
  // The same. `position`: of one Operator among those of its namespace that run or would, from 0.
  [[nodiscard]] Result<> check_operator_count(std::uint64_t position) const;

  // Nothing: as the host's settings say.
  [[nodiscard]] std::optional<Bound> guest_memory_bytes() const;
  [[nodiscard]] std::optional<Bound> guest_disk_bytes() const;
  [[nodiscard]] std::optional<Bound> operators() const;
  [[nodiscard]] std::optional<Bound> feeds() const;
  [[nodiscard]] std::optional<Bound> own_watches() const;
  [[nodiscard]] std::optional<Bound> upstream_requests() const;
  [[nodiscard]] std::optional<Bound> fetches() const;
  // The policy that keeps modules' URLs to public addresses; empty: none does.
  [[nodiscard]] std::string public_addresses_because() const;
  // An object in that namespace, as which these rules let it ask for modules.
  [[nodiscard]] modules::Requester requester(std::string namespace_name) const;

 private:
  [[nodiscard]] std::optional<Bound> least(std::optional<std::uint64_t> Budgets::* budget) const;

  Policies policies_;
};

}  // namespace hangar::tenants
