#include "budget/rates.h"

#include "base/assert.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/consumer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hangar::budget {

namespace {

// With this many accounts, tenants that have done nothing for an hour are forgotten.
constexpr std::size_t kAccountsMax = 10'000;
constexpr std::chrono::hours kIdle{1};

// A millicore is a millisecond of processor time a second.
TokenBucket::Options bucket_of(std::uint64_t millicores) {
  const auto per_second = static_cast<double>(millicores);
  return {.per_second = per_second, .burst = per_second * static_cast<double>(kRateWindow.count())};
}

// An equal part begins with an empty bucket: the tenant has had its burst, which is why it is
// slowed (EqualRates). No policy has set it.
bool begins_empty(const RateLimit& limit) {
  return limit.set_by.empty();
}

TokenBucket begun(const RateLimit& limit, Instant now) {
  TokenBucket bucket(bucket_of(limit.millicores));
  if (begins_empty(limit)) bucket.take(now, bucket.options().burst);
  return bucket;
}

// The same tenant goes on at another rate: it neither loses what it owes nor gets another burst.
TokenBucket continued(TokenBucket bucket, const RateLimit& limit, Instant now) {
  TokenBucket next(bucket_of(limit.millicores));
  if (bucket.is_full(now) && !begins_empty(limit)) return next;
  const double owed_seconds = std::chrono::duration<double>(bucket.until_one(now)).count();
  next.take(now, next.options().burst + owed_seconds * bucket.options().per_second);
  return next;
}

}  // namespace

void Rates::charge(const Tenant& tenant, std::uint64_t nanoseconds, Instant now) {
  if (tenant.is_host() || nanoseconds == 0) return;
  const std::scoped_lock lock(mutex_);
  if (accounts_.size() >= kAccountsMax && !accounts_.contains(tenant)) forget_idle(now);
  Account& account = accounts_[tenant];
  account.nanoseconds += nanoseconds;
  account.used_nanoseconds.add(now, nanoseconds);
  account.unpaid_milliseconds += static_cast<double>(nanoseconds) / 1e6;
}

void Rates::charge_equally(std::span<const Tenant> tenants, std::uint64_t nanoseconds,
                           Instant now) {
  for (const Tenant& tenant : tenants)
    charge(tenant, nanoseconds / tenants.size(), now);
}

Duration Rates::wait_of(const Tenant& tenant, Instant now) {
  if (tenant.is_host()) return Duration::zero();
  const std::optional<RateLimit> limit = limit_ ? limit_(tenant) : std::nullopt;
  const Duration wait = limited_wait(tenant, limit, now);
  if (wait > Duration::zero()) brake_waits(tenant, *limit);
  return wait;
}

Duration Rates::limited_wait(const Tenant& tenant, const std::optional<RateLimit>& limit,
                             Instant now) {
  const std::scoped_lock lock(mutex_);
  const auto found = accounts_.find(tenant);
  // A tenant that was never charged has its whole burst.
  if (found == accounts_.end()) return Duration::zero();
  Account& account = found->second;
  if (!limit) {
    account.bucket.reset();
  } else if (!account.bucket) {
    account.bucket = begun(*limit, now);
  } else if (account.millicores != limit->millicores) {
    account.bucket = continued(*account.bucket, *limit, now);
  }
  if (limit) account.millicores = limit->millicores;
  const double unpaid = std::exchange(account.unpaid_milliseconds, 0);
  Duration wait = Duration::zero();
  if (account.bucket) {
    account.bucket->take(now, unpaid);
    wait = account.bucket->until_one(now);
  }
  const bool was_braked = account.braked_since != Instant();
  if (wait > Duration::zero()) {
    if (!was_braked) account.braked_since = now;
    account.braked_until = now + wait;
  } else if (was_braked) {
    account.braked += braked_time(account, now);
    account.braked_since = Instant();
  }
  return wait;
}

void Rates::brake_waits(const Tenant& tenant, const RateLimit& limit) {
  auto at = unbraked_.lower_bound({.tenant = tenant, .name = {}});
  while (at != unbraked_.end() && at->tenant == tenant) {
    const Consumer consumer = *at;
    at = unbraked_.erase(at);
    waits_[consumer].brake = limit;
    if (on_brake_) on_brake_(consumer);
  }
}

void Rates::begin_wait(const Consumer& consumer) {
  Wait& wait = waits_[consumer];
  ++wait.count;
  if (!wait.brake) unbraked_.insert(consumer);
}

void Rates::end_wait(const Consumer& consumer) {
  const auto found = waits_.find(consumer);
  HANGAR_ASSERT(found != waits_.end(), "a wait that ends has begun");
  if (--found->second.count > 0) return;
  const bool was_braked = found->second.brake.has_value();
  waits_.erase(found);
  unbraked_.erase(consumer);
  if (was_braked && on_brake_) on_brake_(consumer);
}

std::optional<RateLimit> Rates::brake_of(const Consumer& consumer) const {
  const auto found = waits_.find(consumer);
  return found == waits_.end() ? std::nullopt : found->second.brake;
}

Rates::Use Rates::use_of(const Tenant& tenant, Instant now) const {
  const std::scoped_lock lock(mutex_);
  const auto found = accounts_.find(tenant);
  return found == accounts_.end() ? Use() : use_of(found->second, now);
}

std::vector<Rates::TenantUse> Rates::uses(Instant now) const {
  const std::scoped_lock lock(mutex_);
  std::vector<TenantUse> uses;
  uses.reserve(accounts_.size());
  for (const auto& [tenant, account] : accounts_)
    uses.push_back({.tenant = tenant, .use = use_of(account, now)});
  return uses;
}

Rates::Use Rates::use_of(const Account& account, Instant now) {
  Use use{.millicores = account.used_nanoseconds.last(now) /
                        static_cast<std::uint64_t>(Duration(kRateMeasured).count() / 1000),
          .total = Duration(static_cast<Duration::rep>(account.nanoseconds)),
          .braked = account.braked,
          .limit_millicores = std::nullopt};
  if (account.braked_since != Instant()) use.braked += braked_time(account, now);
  if (account.bucket) use.limit_millicores = account.millicores;
  return use;
}

// Counts only up to `braked_until`: no later wait_of() follows if the waiting work was cancelled.
Duration Rates::braked_time(const Account& account, Instant now) {
  return std::min(now, account.braked_until) - account.braked_since;
}

void Rates::forget_idle(Instant now) {
  for (auto at = accounts_.begin(); at != accounts_.end();)
    at = at->second.used_nanoseconds.began() + kIdle < now ? accounts_.erase(at) : std::next(at);
}

}  // namespace hangar::budget
