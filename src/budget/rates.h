// Bounds the average processor time of tenants, in cores.
//
// The cost of work is known only afterwards, so it is charged then. A tenant that has used more
// than its rate is braked: it starts no further work until its average is back at the rate
// (FairSlots::brake). Work that it has started is not interrupted. After a rest it may use
// kRateWindow of its rate at once.
#pragma once

#include "base/period_sum.h"
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
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {

inline constexpr std::chrono::seconds kRateWindow{5};
// The displayed use of a tenant is the average over the last complete period of this length.
inline constexpr std::chrono::seconds kRateMeasured{15};

struct RateLimit {
  std::uint64_t millicores = 0;  // Thousandths of a core.
  std::string set_by = {};       // "TenantPolicy strangers".

  bool operator==(const RateLimit&) const = default;
};

class Rates {
 public:
  Rates() = default;
  Rates(const Rates&) = delete;
  Rates& operator=(const Rates&) = delete;

  // `limit` returns the rate of a tenant; std::nullopt: no bound. Called within wait_of().
  void limit_tenants(std::function<std::optional<RateLimit>(const Tenant&)> limit) {
    limit_ = std::move(limit);
  }

  // Adds processor time that the tenant has used. The host's own work is not counted. Any thread.
  void charge(const Tenant& tenant, std::uint64_t nanoseconds, Instant now);

  // For work that several tenants want: each entry of `tenants` pays an equal part, so a tenant
  // that is listed twice pays two parts.
  void charge_equally(std::span<const Tenant> tenants, std::uint64_t nanoseconds, Instant now);

  // How long the tenant's next work has to wait; zero: it may start. Loop thread.
  [[nodiscard]] Duration wait_of(const Tenant& tenant, Instant now);

  // Work of the consumer starts or stops to wait for a slot that its tenant's rate may withhold.
  // Pair each begin_wait() with an end_wait(). Loop thread.
  void begin_wait(const Consumer& consumer);
  void end_wait(const Consumer& consumer);
  // The rate that delays work of the consumer: set while work waits whose tenant has been braked
  // since it started to wait. Loop thread.
  [[nodiscard]] std::optional<RateLimit> brake_of(const Consumer& consumer) const;
  // Called when the result of brake_of() for a consumer is set or reset. Of this object it may call
  // only brake_of(). Unset it before the objects that it refers to are destroyed.
  void set_on_brake(std::function<void(const Consumer&)> on_brake) {
    on_brake_ = std::move(on_brake);
  }

  struct Use {
    std::uint64_t millicores = 0;  // On average.
    Duration total{};
    Duration braked{};                              // How long its work could not start, in total.
    std::optional<std::uint64_t> limit_millicores;  // As of the last wait_of().
  };
  // Any thread.
  [[nodiscard]] Use use_of(const Tenant& tenant, Instant now) const;
  struct TenantUse {
    Tenant tenant;
    Use use;
  };
  // The use of all tenants that have been charged.
  [[nodiscard]] std::vector<TenantUse> uses(Instant now) const;

 private:
  struct Account {
    std::uint64_t nanoseconds = 0;
    double unpaid_milliseconds = 0;  // Not taken from the bucket yet.
    PeriodSum used_nanoseconds{kRateMeasured};
    std::uint64_t millicores = 0;       // The rate of `bucket`.
    std::optional<TokenBucket> bucket;  // Tokens are milliseconds. Unset: no bound.
    Instant braked_since;               // The epoch: its work may start.
    Instant braked_until;               // As last computed.
    Duration braked{};
  };

  [[nodiscard]] static Duration braked_time(const Account& account, Instant now);
  [[nodiscard]] static Use use_of(const Account& account, Instant now);
  void forget_idle(Instant now);
  [[nodiscard]] Duration limited_wait(const Tenant& tenant, const std::optional<RateLimit>& limit,
                                      Instant now);
  void brake_waits(const Tenant& tenant, const RateLimit& limit);

  struct Wait {
    std::size_t count = 0;  // How many pieces of its work wait.
    std::optional<RateLimit> brake;
  };

  std::function<std::optional<RateLimit>(const Tenant&)> limit_;
  std::function<void(const Consumer&)> on_brake_;
  std::map<Consumer, Wait> waits_;
  std::set<Consumer> unbraked_;  // Consumers in `waits_` without a brake.
  mutable std::mutex mutex_;
  std::map<Tenant, Account> accounts_;
};

}  // namespace hangar::budget
