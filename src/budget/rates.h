// Bounds the processor time of tenants over time: cores, on average.
//
// What work costs is known afterwards, so it is charged then. A tenant that has used more than its
// rate begins no further work until time has paid for it (FairSlots::brake); what it has begun is
// not interrupted. After a rest it may use kRateWindow of its rate at once.
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
// What a tenant is shown to use is the average of the last whole period of this length.
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

  // The rate of a tenant; nothing: it has no bound. Called within wait_of().
  void limit_tenants(std::function<std::optional<RateLimit>(const Tenant&)> limit) {
    limit_ = std::move(limit);
  }

  // The tenant has used that much more. The host's own work is not counted. Any thread.
  void charge(const Tenant& tenant, std::uint64_t nanoseconds, Instant now);

  // Work that several want: each pays an equal part, and a tenant as many parts as it is listed.
  void charge_equally(std::span<const Tenant> tenants, std::uint64_t nanoseconds, Instant now);

  // How long the tenant's next work has to wait; zero: it may begin. Loop thread.
  [[nodiscard]] Duration wait_of(const Tenant& tenant, Instant now);

  // Work of the consumer waits for a slot that its tenant's rate may withhold, or waits no longer;
  // each begin has an end. Loop thread.
  void begin_wait(const Consumer& consumer);
  void end_wait(const Consumer& consumer);
  // The rate that keeps work of the consumer waiting: set while it waits, and its tenant has been
  // braked meanwhile. Loop thread.
  [[nodiscard]] std::optional<RateLimit> brake_of(const Consumer& consumer) const;
  // Called when brake_of() a consumer is set or no longer. It must not call this object but for
  // brake_of(). Unset it before what it refers to is destroyed.
  void set_on_brake(std::function<void(const Consumer&)> on_brake) {
    on_brake_ = std::move(on_brake);
  }

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
    PeriodSum used_nanoseconds{kRateMeasured};
    std::uint64_t millicores = 0;       // The rate of `bucket`.
    std::optional<TokenBucket> bucket;  // Of milliseconds. Nothing: the tenant has no bound.
    Instant braked_since;               // The epoch: its work may begin.
    Instant braked_until;               // As far as is known.
    Duration braked{};
  };

  [[nodiscard]] static Duration braked_time(const Account& account, Instant now);
  [[nodiscard]] static Use use_of(const Account& account, Instant now);
  void forget_idle(Instant now);
  [[nodiscard]] Duration limited_wait(const Tenant& tenant, const std::optional<RateLimit>& limit,
                                      Instant now);
  void brake_waits(const Tenant& tenant, const RateLimit& limit);

  struct Wait {
    std::size_t count = 0;  // Of the consumer's work.
    std::optional<RateLimit> brake;
  };

  std::function<std::optional<RateLimit>(const Tenant&)> limit_;
  std::function<void(const Consumer&)> on_brake_;
  std::map<Consumer, Wait> waits_;
  std::set<Consumer> unbraked_;  // Those of `waits_` without a brake.
  mutable std::mutex mutex_;
  std::map<Tenant, Account> accounts_;
};

}  // namespace hangar::budget
