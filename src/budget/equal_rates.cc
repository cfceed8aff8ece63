#include "budget/equal_rates.h"

#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hangar::budget {

namespace {

constexpr std::uint64_t kMillicores = 1000;
// Tenants that take this part of all processors keep others waiting, whatever the kernel says.
constexpr std::uint64_t kMostPercent = 75;
// Enough for a tenant to owe; a turn of an operator takes no longer.
constexpr std::chrono::seconds kOwedMax{10};

}  // namespace

void EqualRates::look(const std::vector<Rates::TenantUse>& uses,
                      std::optional<bool> are_processors_short, Instant now) {
  const std::optional<Instant> before = std::exchange(looked_, now);
  const Duration passed = before ? now - *before : Duration::zero();

  std::map<Tenant, Account> accounts;
  Duration sum{};
  std::size_t active = 0;
  for (const auto& [tenant, use] : uses) {
    Account account;
    // The first look only learns what was used before.
    if (const auto known = accounts_.find(tenant); known != accounts_.end()) {
      account = known->second;
    } else if (!before) {
      account.total = use.total;
    }
    account.took = std::max(use.total - account.total, Duration::zero());
    if (account.took > Duration::zero()) account.active_until = now + kActiveFor;
    if (account.slowed && use.braked > account.braked) account.slowed->waited = now;
    account.total = use.total;
    account.braked = use.braked;
    sum += account.took;
    // A slowed tenant may pay for a long turn for longer than others count as active.
    if (account.active_until > now || account.slowed) ++active;
    accounts.emplace(tenant, account);
  }
  accounts_ = std::move(accounts);
  if (passed <= Duration::zero()) return;

  const Duration all = passed * cores_;
  const bool is_short = are_processors_short.value_or(false) || sum * 100 >= all * kMostPercent;
  part_millicores_ =
      std::max(cores_ * kMillicores / std::max<std::size_t>(active, 1), kPartMillicoresMin);
  for (auto& [tenant, account] : accounts_) {
    if (active < 2 || tenant.namespace_name().empty()) {
      account.slowed.reset();
      account.excess = Duration::zero();
      account.exceeds_since = Instant();
      continue;
    }
    judge(account, passed, is_short, now);
  }
}

void EqualRates::judge(Account& account, Duration passed, bool is_short, Instant now) const {
  const Duration part = passed * part_millicores_ / kMillicores;
  // What it takes while processors are not short keeps nothing from others.
  const Duration counted = is_short ? account.took : Duration::zero();
  account.excess =
      std::clamp<Duration>(account.excess + counted - part, Duration::zero(), kOwedMax);
  // Processors may be short at every second look only, because of the tenant itself.
  if (account.took <= part) {
    account.exceeds_since = Instant();
  } else if (account.exceeds_since == Instant()) {
    account.exceeds_since = now - passed;
  }
  if (!account.slowed) {
    if (is_too_much(account, now)) account.slowed = Slowed{.waited = now, .wanted = now};
    return;
  }
  if (is_short) account.slowed->wanted = now;
  if (now - account.slowed->waited < kUnusedFor && now - account.slowed->wanted < kQuietFor) return;
  account.slowed.reset();
  account.excess = Duration::zero();
  account.exceeds_since = Instant();
}

bool EqualRates::is_too_much(const Account& account, Instant now) const {
  if (account.excess > kExcessMax) return true;
  const Duration lasting_max =
      std::min<Duration>(kLastingExcessMax, kLastingExcessParts * part_millicores_ / kMillicores);
  return account.exceeds_since != Instant() && now - account.exceeds_since >= kLasting &&
         account.excess > lasting_max;
}

std::optional<RateLimit> EqualRates::limit_of(const Tenant& tenant) const {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end() || !found->second.slowed) return std::nullopt;
  return RateLimit{.millicores = part_millicores_};
}

}  // namespace hangar::budget
