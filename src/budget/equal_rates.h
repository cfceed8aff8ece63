// Decides which tenants are slowed to an equal part of the processors while there are too few for
// all, without any policy.
//
// Tenants take turns at the workers, but the kernel divides processors between threads, and work of
// one tenant delays that of others also while nobody waits for a turn. A tenant that keeps taking
// more than its part gets a rate, which brakes it like a TenantPolicy's, but without a first burst
// (Rates). No I/O.
#pragma once

#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace hangar::budget {

// Guarantees: a tenant that is alone is not slowed, and no tenant is slowed while nothing waits for
// a processor. Nothing but namespaces is slowed. Loop thread.
class EqualRates {
 public:
  // How often to call look().
  static constexpr std::chrono::seconds kLookEvery{2};
  // A tenant that has worked within this time has a part.
  static constexpr std::chrono::seconds kActiveFor{15};
  // How much more than its part a tenant may take while processors are short: work such as the
  // start of an operator ends within this time.
  static constexpr std::chrono::milliseconds kExcessMax{2500};
  // A tenant that has taken more than its part for this time, without a pause, may have taken less
  // beyond it: what its part gives in kLastingExcessParts, and at most kLastingExcessMax. So it is
  // slowed within ten seconds if it takes twice its part, however small that is.
  static constexpr std::chrono::seconds kLasting{6};
  static constexpr std::chrono::seconds kLastingExcessParts{5};
  static constexpr std::chrono::milliseconds kLastingExcessMax{1000};
  // A tenant is slowed until its work has not had to wait for the first time, or until
  // processors have not been short for the second one.
  static constexpr std::chrono::seconds kUnusedFor{10};
  static constexpr std::chrono::seconds kQuietFor{60};
  // The least part: that many tenants take turns well enough.
  static constexpr std::uint64_t kPartMillicoresMin = 100;

  explicit EqualRates(std::uint32_t cores) : cores_(cores) {}

  // `uses`: of all tenants since the host started. `are_processors_short`: tasks have waited for a
  // processor since the last call; std::nullopt: unknown. Work that takes most of the processors is
  // a sign, too.
  void look(const std::vector<Rates::TenantUse>& uses, std::optional<bool> are_processors_short,
            Instant now);

  // std::nullopt: the tenant is not slowed.
  [[nodiscard]] std::optional<RateLimit> limit_of(const Tenant& tenant) const;

 private:
  struct Slowed {
    Instant waited;  // When its work last had to wait.
    Instant wanted;  // When processors were last short.
  };
  struct Account {
    Duration total{};       // As of the last look.
    Duration braked{};      // As of the last look.
    Duration took{};        // Between the last two looks.
    Duration excess{};      // What it has taken beyond its part.
    Instant exceeds_since;  // It takes more than its part. The epoch: it does not.
    Instant active_until;   // The epoch: it was never active.
    std::optional<Slowed> slowed;
  };

  void judge(Account& account, Duration passed, bool is_short, Instant now) const;
  [[nodiscard]] bool is_too_much(const Account& account, Instant now) const;

  const std::uint32_t cores_;
  std::optional<Instant> looked_;
  std::uint64_t part_millicores_ = 0;
  std::map<Tenant, Account> accounts_;
};

}  // namespace hangar::budget
