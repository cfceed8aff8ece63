// Counts the memory of one feed's objects against the bounds of its tenant and of the host.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"
#include "kube/cache/cache.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

  [[nodiscard]] Result<> resize(std::uint64_t bytes) override;

 private:
  const std::shared_ptr<budget::Accounts> accounts_;
  const std::string what_;
  budget::SteppedReservation held_;
};

}  // namespace hangar::gateway
