#include "operators/guest_reviews.h"

#include "budget/accounts.h"
#include "operators/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hangar::operators {

using abi::kube_runtime::Guest;
using abi::kube_runtime::HttpRequest;
using abi::kube_runtime::InboundAnswer;
using abi::kube_runtime::Wakeup;

Result<std::shared_ptr<const GuestReviews::Review>> GuestReviews::add(io::Loop& loop,
                                                                      HttpRequest request) {
  if (reviews_.size() >= limits::kReviewsPerOperatorMax) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{} reviews wait for the operator already", reviews_.size()));
  }
  std::uint64_t bytes = request.body.size();
  for (const std::shared_ptr<Review>& review : reviews_)
    bytes += review->bytes_;
  if (const auto shortage = memory_.set(bytes)) {
    return fail(ErrorKind::Unavailable,
                fmt::format("there is no memory for the review: {}", to_text(*shortage)));
  }
  reviews_.push_back(std::make_shared<Review>(loop, std::move(request)));
  return reviews_.back();
}

void GuestReviews::give_up(const Review& review) {
  const auto found = std::ranges::find(reviews_, &review, &std::shared_ptr<Review>::get);
  if (found == reviews_.end()) return;
  if (review.asked_) forgotten_.push_back(*review.asked_);
  reviews_.erase(found);
  recount();
}

bool GuestReviews::may_hand_over() const {
  const std::size_t asked = asked_count();
  return asked < reviews_.size() && asked < limits::kReviewsAskedMax;
}

void GuestReviews::hand_over(const std::function<void(std::uint64_t id)>& forget,
                             const HandIn& hand_in, std::vector<Wakeup>& wakeups) {
  for (const std::uint64_t id : std::exchange(forgotten_, {}))
    forget(id);
  std::size_t asked = asked_count();
  std::uint64_t bytes = 0;
  for (auto next = reviews_.begin(); next != reviews_.end() && asked < limits::kReviewsAskedMax;) {
    Review& review = **next;
    if (review.asked_) {
      ++next;
      continue;
    }
    // A large one waits until it is the first.
    if (bytes > 0 && bytes + review.bytes_ > limits::kReviewsTurnBytesMax) break;
    Result<Guest::Inbound> inbound = hand_in(review.request_);
    if (!inbound) {
      review.end(std::unexpected(inbound.error()));
      next = reviews_.erase(next);
      continue;
    }
    bytes += review.bytes_;
    ++asked;
    review.asked_ = inbound->id;
    review.request_ = {};
    wakeups.push_back(std::move(inbound->wakeup));
    ++next;
  }
  recount();
}

void GuestReviews::on_answers(std::span<InboundAnswer> answers) {
  for (InboundAnswer& answer : answers) {
    const auto found = std::ranges::find_if(reviews_, [&](const std::shared_ptr<Review>& review) {
      return review->asked_ == answer.id;
    });
    if (found == reviews_.end()) continue;  // It was given up, or is not a review.
    (*found)->end(std::move(answer));
    reviews_.erase(found);
  }
  recount();
}

void GuestReviews::clear(const Error& why) {
  for (const std::shared_ptr<Review>& review : std::exchange(reviews_, {}))
    review->end(std::unexpected(why));
  forgotten_.clear();
  recount();
}

std::size_t GuestReviews::asked_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      reviews_, [](const auto& review) { return review->asked_.has_value(); }));
}

void GuestReviews::recount() {
  std::uint64_t bytes = 0;
  for (const std::shared_ptr<Review>& review : reviews_)
    bytes += review->bytes_;
  (void)memory_.set(bytes);
}

}  // namespace hangar::operators
