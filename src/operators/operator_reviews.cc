#include "operators/operator_reviews.h"

#include "base/seconds.h"
#include "base/time.h"
#include "io/loop.h"
#include "operators/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace hangar::operators {

namespace {

constexpr std::size_t kQueryBytesMax = 256;

// Of a guest that has not answered. The API server tells its user the words that come with it, and
// its own instead of those with 504.
constexpr int kBadGateway = 502;

// What the guest learns of the query: how long the API server waits.
std::string target_of(const std::string& path, const std::string& query) {
  const bool is_passed_on = !query.empty() && query.size() <= kQueryBytesMax &&
                            std::ranges::all_of(query, [](unsigned char letter) {
                              return letter > ' ' && letter < 0x7f;
                            });
  return is_passed_on ? fmt::format("{}?{}", path, query) : path;
}

}  // namespace

ReviewPlaces::Place::Place(ReviewPlaces& places, std::string tenant, std::uint64_t bytes)
    : places_(&places), tenant_(std::move(tenant)), bytes_(bytes) {
  for (Held* const held : {&places_->by_tenant_[tenant_], &places_->all_}) {
    ++held->count;
    held->bytes += bytes_;
  }
}

ReviewPlaces::Place::Place(Place&& other) noexcept
    : places_(std::exchange(other.places_, nullptr)),
      tenant_(std::move(other.tenant_)),
      bytes_(other.bytes_) {}

ReviewPlaces::Place::~Place() {
  if (places_ == nullptr) return;
  const auto own = places_->by_tenant_.find(tenant_);
  for (Held* const held : {&own->second, &places_->all_}) {
    --held->count;
    held->bytes -= bytes_;
  }
  if (own->second.count == 0) places_->by_tenant_.erase(own);
}

Result<ReviewPlaces::Place> ReviewPlaces::take(std::string tenant, std::uint64_t bytes) {
  if (bytes > limits::kReviewBodyBytesMax) {
    return fail(ErrorKind::InvalidInput, fmt::format("a review of {} bytes, the most is {}", bytes,
                                                     limits::kReviewBodyBytesMax));
  }
  const Held after = {.count = all_.count + 1, .bytes = all_.bytes + bytes};
  if (after.count > limits::kReviewsMax || after.bytes > limits::kReviewsBodyBytesMax) {
    return fail(
        ErrorKind::Unavailable,
        fmt::format("{} reviews of {} bytes are under way on this host", all_.count, all_.bytes));
  }
  const auto found = by_tenant_.find(tenant);
  const Held own = found == by_tenant_.end() ? Held() : found->second;
  const bool leaves_room = own.count + 1 <= limits::kReviewsMax - after.count &&
                           own.bytes + bytes <= limits::kReviewsBodyBytesMax - after.bytes;
  if (own.count > 0 && (own.count >= limits::kReviewsPerTenantMax || !leaves_room)) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{} reviews of {} bytes are under way in namespace {}", own.count,
                            own.bytes, tenant));
  }
  return Place(*this, std::move(tenant), bytes);
}

OperatorReviews::OperatorReviews(Metrics& metrics, const Fleet& fleet,
                                 const WebhookConfigurations& configurations, Knowledge knowledge)
    : metrics_(metrics),
      seconds_(metrics.histogram("hangar_operator_webhook_seconds",
                                 "Time of one review or conversion by an operator, in seconds.",
                                 latency_buckets())),
      fleet_(fleet),
      configurations_(configurations),
      knowledge_(std::move(knowledge)) {}

io::Task<Result<http::Response>> OperatorReviews::answer(admission::Passed passed,
                                                         std::stop_token stop) {
  std::optional<ReviewTarget> target = parse_review_path(passed.path);
  if (!target) co_return refuse("unknown", 404, "the path names no operator");
  if (!is_leading_) {
    co_return refuse("not_leading", 503, "this replica does not lead, and runs no operators");
  }
  // Only the leader knows the paths of conversions.
  if (!passed.is_caller && !configurations_.converts_at(target->key, target->path)) {
    if (knowledge_.are_webhooks_read(target->key)) {
      co_return refuse("unknown_caller", 401, std::string(admission::kWhoAreYou));
    }
    co_return refuse("unavailable", 503, "this host has not read its operators' webhooks yet");
  }
  co_return co_await hand_over(*std::move(target), std::move(passed), std::move(stop));
}

io::Task<http::Response> OperatorReviews::hand_over(ReviewTarget target, admission::Passed passed,
                                                    std::stop_token stop) {
  const std::string name = target.key.to_string();
  const Result<ReviewPlaces::Place> place = places_.take(target.key.namespace_, passed.body.size());
  if (!place) {
    const bool is_too_large = place.error().kind() == ErrorKind::InvalidInput;
    co_return refuse("crowded", is_too_large ? 413 : 503, place.error().message());
  }
  const Instant begin = io::Loop::now();
  GuestReviews::Answer answer =
      co_await fleet_.review(target.key,
                             {.method = "POST",
                              .uri = target_of(target.path, passed.query),
                              .headers = {{"content-type", "application/json"}},
                              .body = std::move(passed.body)},
                             stop);
  seconds_.observe(in_seconds(io::Loop::now() - begin));
  if (!answer) {
    const std::string words = fmt::format("operator {}: {}", name, answer.error().message());
    if (answer.error().kind() == ErrorKind::NotFound) {
      if (!knowledge_.may_answer_later(target.key)) co_return refuse("unknown", 404, words);
      co_return refuse("unavailable", 503,
                       fmt::format("operator {}: it does not answer reviews yet", name));
    }
    if (stop.stop_requested()) co_return refuse("late", kBadGateway, words);
    co_return refuse("unavailable", 503, words);
  }
  const bool is_fine = answer->status == 200;
  count(is_fine ? "answered" : "failed");
  co_return http::Response{
      .status = answer->status,
      .headers = {{"Content-Type", is_fine ? "application/json" : "text/plain; charset=utf-8"}},
      .body = std::move(answer->body)};
}

http::Response OperatorReviews::refuse(const char* result, int status, std::string words) {
  count(result);
  return admission::in_words(status, std::move(words));
}

void OperatorReviews::count(const char* result) {
  metrics_
      .counter("hangar_operator_webhooks_total",
               "Reviews and conversions for operators, by result.", {{"result", result}})
      .add();
}

}  // namespace hangar::operators
