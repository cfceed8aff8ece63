#include "gateway/feed_memory.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

FeedMemory::FeedMemory(std::shared_ptr<budget::Accounts> accounts, budget::Consumer consumer,
                       std::string what)
    : accounts_(std::move(accounts)),
      what_(std::move(what)),
      consumer_(std::move(consumer)),
      held_(std::in_place, *accounts_, consumer_, kFeedCountedStep) {}

Result<> FeedMemory::resize(std::uint64_t bytes) {
  const auto shortage = held_->set(bytes);
  if (!shortage || (sharers_ && hand_over(sharers_(), bytes))) {
    bytes_ = bytes;
    return {};
  }
  return std::unexpected(
      Error(ErrorKind::LimitExceeded,
            fmt::format("the host has no memory for all {} that this would watch, in addition to "
                        "those that operators watch already: {}; watch fewer of them (selectors)",
                        what_, to_text(*shortage)))
          .with_reason(std::string(kTooLargeToWatch)));
}

bool FeedMemory::hand_over(std::vector<budget::Tenant> tenants, std::uint64_t bytes) {
  std::erase(tenants, payer());
  if (tenants.empty()) return false;
  // Released first: the host needs room for the objects once, not twice.
  (void)held_->set(0);
  const auto heir = std::ranges::max_element(
      tenants, {}, [this](const budget::Tenant& one) { return accounts_->room_of(one); });
  budget::Consumer consumer{.tenant = *heir, .name = consumer_.name};
  budget::SteppedReservation taken(*accounts_, consumer, kFeedCountedStep);
  if (taken.set(bytes)) {
    // If others took assured bytes beyond the host's limit, this fails: then the feed ends, too.
    (void)held_->set(bytes_);
    return false;
  }
  held_.emplace(std::move(taken));
  consumer_ = std::move(consumer);
  return true;
}

}  // namespace hangar::gateway
