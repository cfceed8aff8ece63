#include "admission/review_reader.h"

#include "admission/review.h"
#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <fmt/format.h>

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
    : workers_(workers), parsing_(loop, kParsingMax) {}

io::Task<Result<ReviewReader::Read>> ReviewReader::read(std::string body, std::stop_token stop) {
  if (body.size() > kReviewBytesMax) {
    co_return invalid(fmt::format("a review of {} bytes is over the limit of {} MiB", body.size(),
                                  kReviewBytesMax / limits::kMiB));
  }
  if (bytes_ + body.size() > kReviewsBytesMax) {
    co_return std::unexpected(too_much("the limit of their bytes is reached"));
  }
  Bytes bytes(*this, body.size());
  if (body.size() <= kParsedAtOnceBytesMax) {
    co_return Read{.review = HANGAR_CO_TRY(parse_review(body)), .bytes = std::move(bytes)};
  }
  Result<Review> review = co_await parse_elsewhere(std::move(body), std::move(stop));
  if (!review) co_return std::unexpected(std::move(review).error());
  co_return Read{.review = *std::move(review), .bytes = std::move(bytes)};
}

io::Task<Result<Review>> ReviewReader::parse_elsewhere(std::string body, std::stop_token stop) {
  if (waiting_ >= kParsingWaitingMax) {
    co_return std::unexpected(too_much("large ones wait to be read"));
  }
  ++waiting_;
  const Result<io::Semaphore::Slot> slot = co_await parsing_.acquire(std::move(stop));
  --waiting_;
  if (!slot) co_return std::unexpected(slot.error());
  co_return co_await workers_.run([body = std::move(body)] { return parse_review(body); });
}

}  // namespace hangar::admission
