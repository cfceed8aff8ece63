#include "budget/equal_parts.h"

#include "budget/consumer.h"

#include <algorithm>
#include <cstdint>

namespace hangar::budget {

namespace {

constexpr std::uint64_t kHostsPart = 8;

}  // namespace

EqualParts::EqualParts(const Contest& contest)
    : hosts_bytes_max_(contest.all_bytes / kHostsPart), held_(contest.held) {
  for (const auto& [tenant, bytes] : contest.claims)
    held_.try_emplace(tenant, 0);
  std::uint64_t shared = contest.all_bytes;
  if (const auto own = held_.extract(Tenant::host())) {
    const auto claim = contest.claims.find(Tenant::host());
    const bool may_claim = claim != contest.claims.end() && allow(claim->first, claim->second);
    shared -= std::min(shared, own.mapped() + (may_claim ? claim->second : 0));
  }
  if (!held_.empty()) bytes_ = shared / held_.size();
}

bool EqualParts::allow(const Tenant& tenant, std::uint64_t claim) const {
  if (tenant.is_host()) return claim <= hosts_bytes_max_;
  const auto held = held_.find(tenant);
  return claim <= bytes_ && (held == held_.end() || held->second <= bytes_ - claim);
}

}  // namespace hangar::budget
