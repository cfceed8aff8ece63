// Bounds the processor time of tenants over time: cores, on average.
//
// What work costs is known afterwards, so it is charged then. A tenant that has used more than its
// rate begins no further work until time has paid for it (FairSlots::brake); what it has begun is
// not interrupted. After a rest it may use kRateWindow of its rate at once.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/consumer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace hangar::budget {

inline constexpr std::chrono::seconds kRateWindow{5};
// What a tenant is shown to use is the average of the last whole period of this length.
inline constexpr std::chrono::seconds kRateMeasured{15};

class Rates {
 public:
  Rates() = default;
  Rates(const Rates&) = delete;
  Rates& operator=(const Rates&) = delete;

  // The rate of a tenant in thousandths of a core; nothing: it has no bound. Called within
  // wait_of().
  void limit_tenants(std::function<std::optional<std::uint64_t>(const Tenant&)> millicores) {
    limit_ = std::move(millicores);
  }

  // The tenant has used that much more. The host's own work is not counted. Any thread.
  void charge(const Tenant& tenant, std::uint64_t nanoseconds, Instant now);

  // How long the tenant's next work has to wait; zero: it may begin. Loop thread.
  [[nodiscard]] Duration wait_of(const Tenant& tenant, Instant now);

  struct Use {
    std::uint64_t millicores = 0;  // On average.
    Duration total{};
    Duration braked{};                              // How long its work could not begin, in all.
    std::optional<std::uint64_t> limit_millicores;  // As wait_of() has seen it last.
  };
  // Any thread.
  [[nodiscard]] Use use_of(const Tenant& tenant, Instant now) const;
  struct TenantUse {
    Tenant tenant;
    Use use;
  };
  // Of all tenants that have been charged.
  [[nodiscard]] std::vector<TenantUse> uses(Instant now) const;

 private:
  struct Account {
    std::uint64_t nanoseconds = 0;
    double unpaid_milliseconds = 0;  // Not taken from the bucket yet.
    // Since then `window_nanoseconds` were used, and `last_nanoseconds` in the window before.
    Instant window_began;
    std::uint64_t window_nanoseconds = 0;
    std::uint64_t last_nanoseconds = 0;
    std::uint64_t millicores = 0;       // The rate of `bucket`.
    std::optional<TokenBucket> bucket;  // Of milliseconds. Nothing: the tenant has no bound.
    Instant braked_since;               // The epoch: its work may begin.
    Instant braked_until;               // As far as is known.
    Duration braked{};
  };

  static void roll(Account& account, Instant now);
  [[nodiscard]] static Duration braked_time(const Account& account, Instant now);
  [[nodiscard]] static Use use_of(Account account, Instant now);
  void forget_idle(Instant now);

  std::function<std::optional<std::uint64_t>(const Tenant&)> limit_;
  mutable std::mutex mutex_;
  std::map<Tenant, Account> accounts_;
};

}  // namespace hangar::budget
