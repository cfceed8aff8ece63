#include "operators/guest_reviews.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/messages.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"
#include "io/loop.h"
#include "io/task.h"
#include "operators/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

using abi::kube_runtime::Guest;
using abi::kube_runtime::HttpRequest;
using abi::kube_runtime::InboundAnswer;
using abi::kube_runtime::Wakeup;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GuestReviewsTest : public testing::Test {
 protected:
  using Review = std::shared_ptr<const GuestReviews::Review>;

  Result<Review> try_add(std::string body) {
    return reviews_.add(loop_, {.method = "POST", .uri = "/validate", .body = std::move(body)});
  }
  Review add(std::string body = "{}") {
    Result<Review> added = try_add(std::move(body));
    EXPECT_TRUE(added.has_value());
    return *added;
  }
  // The bodies that the guest gets.
  std::vector<std::string> hand_over() {
    std::vector<Wakeup> wakeups;
    reviews_.hand_over([this](std::uint64_t id) { forgotten_.push_back(id); },
                       [this](const HttpRequest& request) -> Result<Guest::Inbound> {
                         if (takes_none_) return fail(ErrorKind::NotFound, "no listener");
                         return Guest::Inbound{.id = next_id_++, .wakeup = {.bytes = request.body}};
                       },
                       wakeups);
    std::vector<std::string> bodies;
    for (Wakeup& wakeup : wakeups)
      bodies.push_back(std::move(wakeup.bytes));
    return bodies;
  }
  void answer(std::uint64_t id, std::string body) {
    std::vector<InboundAnswer> answers(1);
    answers[0] = {.id = id, .status = 200, .body = std::move(body)};
    reviews_.on_answers(answers);
  }
  // The body of an answer, or the error; it has to be there.
  std::string answer_of(const Review& review) {
    std::string text = "(none)";
    loop_.spawn([](Review waited, std::string& into) -> io::Task<void> {
      const GuestReviews::Answer answer = co_await waited->wait();
      into = answer ? answer->body : answer.error().message();
    }(review, text));
    loop_.post([this] { loop_.post([this] { loop_.stop(); }); });
    loop_.run();
    return text;
  }

  io::Loop loop_;
  budget::Accounts accounts_{{}};
  GuestReviews reviews_{budget::SteppedReservation(accounts_, budget::unnamed_consumer(),
                                                   limits::kAnswersCountedStep)};
  std::uint64_t next_id_ = 7;
  bool takes_none_ = false;
  std::vector<std::uint64_t> forgotten_;
};

TEST_F(GuestReviewsTest, EachHasTheAnswerThatItsGuestHasGivenToIt) {
  const Review first = add("1");
  const Review second = add("2");

  EXPECT_THAT(hand_over(), ElementsAre("1", "2"));
  EXPECT_TRUE(reviews_.are_awaited());
  answer(8, "to the second");
  answer(8, "again");
  answer(7, "to the first");
  answer(99, "to nobody");

  EXPECT_TRUE(reviews_.is_empty());
  EXPECT_EQ(answer_of(first), "to the first");
}

TEST_F(GuestReviewsTest, AGuestHasSomeAtATimeAndTheOthersWait) {
  for (std::size_t index = 0; index < limits::kReviewsAskedMax + 2; ++index)
    add();

  EXPECT_EQ(hand_over().size(), limits::kReviewsAskedMax);
  EXPECT_FALSE(reviews_.may_hand_over());
  EXPECT_THAT(hand_over(), IsEmpty());
  answer(7, "");
  EXPECT_TRUE(reviews_.may_hand_over());
  EXPECT_EQ(hand_over().size(), 1U);
}

TEST_F(GuestReviewsTest, ATurnHasOneLargeReviewAtMost) {
  const std::string large(limits::kReviewsTurnBytesMax, 'x');
  add(large);
  add("small");

  EXPECT_EQ(hand_over().size(), 1U);
  EXPECT_TRUE(reviews_.may_hand_over());
  EXPECT_THAT(hand_over(), ElementsAre("small"));
}

TEST_F(GuestReviewsTest, TheGuestMayForgetThoseThatWereGivenUp) {
  const Review asked = add("1");
  EXPECT_EQ(hand_over().size(), 1U);
  const Review waiting = add("2");

  reviews_.give_up(*asked);
  reviews_.give_up(*waiting);
  reviews_.give_up(*waiting);

  EXPECT_FALSE(reviews_.may_hand_over());
  EXPECT_THAT(hand_over(), IsEmpty());
  EXPECT_THAT(forgotten_, ElementsAre(7));
  EXPECT_TRUE(reviews_.is_empty());
}

TEST_F(GuestReviewsTest, OneBeyondTheBoundIsRefused) {
  for (std::size_t index = 0; index < limits::kReviewsPerOperatorMax; ++index)
    add();

  const Result<Review> refused = try_add("{}");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("wait for the operator already"));
}

TEST_F(GuestReviewsTest, TheirBodiesCountForTheNamespace) {
  const Review review = add(std::string(10 * limits::kAnswersCountedStep, 'x'));
  EXPECT_GE(accounts_.held_bytes(), 10 * limits::kAnswersCountedStep);

  hand_over();
  answer(7, "");

  EXPECT_LT(accounts_.held_bytes(), 2 * limits::kAnswersCountedStep);
}

TEST_F(GuestReviewsTest, AllEndWithTheirGuest) {
  const Review asked = add();
  hand_over();
  const Review waiting = add();

  reviews_.clear(Error(ErrorKind::Unavailable, "the operator has ended"));

  EXPECT_TRUE(reviews_.is_empty());
  EXPECT_EQ(answer_of(waiting), "the operator has ended");
}

TEST_F(GuestReviewsTest, AGuestThatTakesNoneAnyMoreIsNotAskedAgain) {
  const Review review = add();
  takes_none_ = true;

  EXPECT_THAT(hand_over(), IsEmpty());

  EXPECT_TRUE(reviews_.is_empty());
  EXPECT_EQ(answer_of(review), "no listener");
}

}  // namespace
}  // namespace hangar::operators
