// Reviews for one guest: those that wait for its next turn, and those that it has not answered.
// Apart from what it has asked for itself: they have other bounds, and nobody may wait for them any
// more. No I/O, except that it wakes the tasks that wait.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/messages.h"
#include "base/result.h"
#include "budget/stepped_reservation.h"
#include "io/event.h"
#include "io/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hangar::operators {

// Loop thread only.
class GuestReviews {
 public:
  using Answer = Result<abi::kube_runtime::InboundAnswer>;
  // One review, until it is answered or given up.
  class Review {
   public:
    Review(io::Loop& loop, abi::kube_runtime::HttpRequest request)
        : request_(std::move(request)), bytes_(request_.body.size()), answered_(loop) {}

    // Ends the wait with this answer, unless it has one. Then give_up() is due.
    void end(Answer answer) const { answered_.set(std::move(answer)); }
    // Once.
    [[nodiscard]] io::Task<Answer> wait() const { return answered_.wait(); }

   private:
    friend class GuestReviews;
    abi::kube_runtime::HttpRequest request_;  // Without its body once the guest has it.
    std::uint64_t bytes_;
    std::optional<std::uint64_t> asked_;  // The request into the guest.
    io::OneShot<Answer> answered_;
  };
  // Guest::hand_in.
  using HandIn = std::function<Result<abi::kube_runtime::Guest::Inbound>(
      const abi::kube_runtime::HttpRequest& request)>;

  // `memory` counts the bodies.
  explicit GuestReviews(budget::SteppedReservation memory) : memory_(std::move(memory)) {}
  GuestReviews(const GuestReviews&) = delete;
  GuestReviews& operator=(const GuestReviews&) = delete;
  ~GuestReviews() { clear(Error(ErrorKind::Unavailable, "the operator has ended")); }

  // Unavailable: too many wait, or there is no memory for it.
  [[nodiscard]] Result<std::shared_ptr<const Review>> add(io::Loop& loop,
                                                          abi::kube_runtime::HttpRequest request);
  // Nobody waits for its answer any more.
  void give_up(const Review& review);
  // Whether the guest can be given one more.
  [[nodiscard]] bool may_hand_over() const;
  // For a turn that begins: first the requests into the guest that it need not answer any more, by
  // `forget`, then as many new ones as it may have.
  void hand_over(const std::function<void(std::uint64_t id)>& forget, const HandIn& hand_in,
                 std::vector<abi::kube_runtime::Wakeup>& wakeups);
  // What the guest has answered in a turn, to whatever it was asked.
  void on_answers(std::span<abi::kube_runtime::InboundAnswer> answers);
  // The guest is gone.
  void clear(const Error& why);

  // The guest has some that it has not answered.
  [[nodiscard]] bool are_awaited() const { return asked_count() > 0; }
  [[nodiscard]] bool is_empty() const { return reviews_.empty() && forgotten_.empty(); }

 private:
  [[nodiscard]] std::size_t asked_count() const;
  void recount();

  budget::SteppedReservation memory_;
  std::vector<std::shared_ptr<Review>> reviews_;  // In the order of their arrival.
  std::vector<std::uint64_t> forgotten_;
};

}  // namespace hangar::operators
