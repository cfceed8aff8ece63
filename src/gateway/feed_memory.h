// Counts the memory of one feed's objects against the bounds of one tenant, its payer, and of the
// host. Where the payer has no room, another tenant that shares the feed pays instead: no tenant's
// bound takes the objects away from another one that has room.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"
#include "kube/cache/cache.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

// The reason() of the error of a feed that was too large. Such a watch is not forwarded to the API
// server either, since the host would have to hold its answers.
inline constexpr std::string_view kTooLargeToWatch = "TooLargeToWatch";

// Feeds count in steps of this size; less of each is not counted.
inline constexpr std::uint64_t kFeedCountedStep = 64 * limits::kKiB;

class FeedMemory final : public kube::Allowance {
 public:
  // `what` is for people: "configmaps". The cache may hold this longer than the gateway lives.
  FeedMemory(std::shared_ptr<budget::Accounts> accounts, budget::Consumer consumer,
             std::string what);

  // The tenants that share the feed now. Without it, or while it returns none, the payer stays.
  using Sharers = std::function<std::vector<budget::Tenant>()>;
  void set_sharers(Sharers sharers) { sharers_ = std::move(sharers); }

  [[nodiscard]] Result<> resize(std::uint64_t bytes) override;

  [[nodiscard]] const budget::Tenant& payer() const { return consumer_.tenant; }
  // Makes the one with the most room the payer. False when none but the present payer has room for
  // all bytes.
  [[nodiscard]] bool hand_over(std::vector<budget::Tenant> tenants) {
    return hand_over(std::move(tenants), bytes_);
  }

 private:
  [[nodiscard]] bool hand_over(std::vector<budget::Tenant> tenants, std::uint64_t bytes);

  const std::shared_ptr<budget::Accounts> accounts_;
  const std::string what_;
  budget::Consumer consumer_;
  std::optional<budget::SteppedReservation> held_;  // Always set; replaced with the payer.
  std::uint64_t bytes_ = 0;
  Sharers sharers_;
};

}  // namespace hangar::gateway
