#include "admission/review_reader.h"

#include "admission/review.h"
#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::admission {

namespace {

Error too_much(const char* what) {
  return {ErrorKind::Unavailable,
          fmt::format("too many reviews are under way ({}): try again in a moment", what)};
}

}  // namespace

ReviewReader::ReviewReader(io::Loop& loop, io::Workers& workers)
    : workers_(workers),
      parsing_(loop, {.slots = kParsingMax, .waiting_per_tenant_max = kParsingWaitingMax}) {}

io::Task<Result<ReviewReader::Read>> ReviewReader::read(std::string body, std::string source,
                                                        std::stop_token stop) {
  if (body.size() > kReviewBytesMax) {
    co_return invalid(fmt::format("a review of {} bytes is over the limit of {} MiB", body.size(),
                                  kReviewBytesMax / limits::kMiB));
  }
  const std::uint64_t counted =
      std::max<std::uint64_t>(body.size(), json::parsed_bytes_max(body) / kReviewMemoryPerByte);
  if (counted > kSourceReviewsBytesMax) {
    co_return invalid(
        fmt::format("a review of {} bytes whose values take too much memory", body.size()));
  }
  if (bytes_ + counted > kReviewsBytesMax || bytes_of(source) + counted > kSourceReviewsBytesMax) {
    co_return std::unexpected(too_much("the limit of their bytes is reached"));
  }
  Bytes bytes(*this, source, counted);
  if (body.size() <= kParsedAtOnceBytesMax) {
    co_return Read{.review = HANGAR_CO_TRY(parse_review(body)), .bytes = std::move(bytes)};
  }
  Result<Review> review =
      co_await parse_elsewhere(std::move(body), std::move(source), std::move(stop));
  if (!review) co_return std::unexpected(std::move(review).error());
  co_return Read{.review = *std::move(review), .bytes = std::move(bytes)};
}

io::Task<Result<Review>> ReviewReader::parse_elsewhere(std::string body, std::string source,
                                                       std::stop_token stop) {
  const budget::Consumer consumer{.tenant = budget::Tenant::of_namespace(std::move(source)),
                                  .name = "review"};
  const Result<budget::FairSlots::Slot> slot =
      co_await parsing_.acquire(consumer, {.cost = body.size()}, std::move(stop));
  if (!slot && slot.error().kind() == ErrorKind::LimitExceeded) {
    co_return std::unexpected(too_much("large ones wait to be read"));
  }
  if (!slot) co_return std::unexpected(slot.error());
  co_return co_await workers_.run(consumer,
                                  [body = std::move(body)] { return parse_review(body); });
}

std::uint64_t ReviewReader::bytes_of(const std::string& source) const {
  const auto found = source_bytes_.find(source);
  return found == source_bytes_.end() ? 0 : found->second;
}

void ReviewReader::give_back(const std::string& source, std::uint64_t count) {
  bytes_ -= count;
  const auto found = source_bytes_.find(source);
  found->second -= count;
  if (found->second == 0) source_bytes_.erase(found);
}

}  // namespace hangar::admission
