#include "gateway/feed_memory.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace hangar::gateway {

FeedMemory::FeedMemory(std::shared_ptr<budget::Accounts> accounts, budget::Consumer consumer,
                       std::string what)
    : accounts_(std::move(accounts)),
      what_(std::move(what)),
      held_(*accounts_, std::move(consumer), kFeedCountedStep) {}

Result<> FeedMemory::resize(std::uint64_t bytes) {
  const auto shortage = held_.set(bytes);
  if (!shortage) return {};
  return std::unexpected(
      Error(ErrorKind::LimitExceeded,
            fmt::format("the host has no memory for all {} that this would watch, beside what "
                        "operators watch already: {}; watch fewer of them (selectors)",
                        what_, to_text(*shortage)))
          .with_reason(std::string(kTooLargeToWatch)));
}

}  // namespace hangar::gateway
