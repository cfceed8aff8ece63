#include "abi/kube_runtime/known_calls.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/pending_calls.h"
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {
namespace {

using testing::HasSubstr;

TurnOutcome outcome_of(std::vector<std::uint64_t> calls, std::vector<std::uint64_t> delays = {},
                       std::vector<std::uint64_t> cancelled = {},
                       std::vector<std::uint64_t> answers = {}) {
  TurnOutcome outcome;
  for (const std::uint64_t id : calls)
    outcome.calls.push_back({.id = id, .is_stream = false, .request = {}});
  for (const std::uint64_t id : delays)
    outcome.delays.push_back({.id = id, .duration = {}});
  for (const std::uint64_t id : answers)
    outcome.answers.push_back({.id = id, .status = 200, .headers = {}, .body = {}});
  outcome.cancelled = std::move(cancelled);
  return outcome;
}

class KnownCallsTest : public testing::Test {
 public:
  void expect_fine(const TurnOutcome& outcome, const KnownCalls::Ids& ids) {
    const Result<> taken = calls_.take(outcome, ids);
    EXPECT_TRUE(taken.has_value()) << taken.error().message();
  }
  void expect_impossible(const TurnOutcome& outcome, const KnownCalls::Ids& ids,
                         const std::string& text) const {
    KnownCalls copy = calls_;
    const Result<> taken = copy.take(outcome, ids);
    ASSERT_FALSE(taken.has_value()) << text;
    EXPECT_EQ(taken.error().kind(), ErrorKind::GuestFault);
    EXPECT_THAT(taken.error().message(), HasSubstr(text));
  }

 protected:
  KnownCalls calls_;
};

TEST_F(KnownCallsTest, GoOnInAnotherHost) {
  expect_fine(outcome_of({0, 2}, {1, 3}), {.metrics = 4, .webhooks = 5, .next = 6});
  calls_.finish(3);
  const std::uint64_t asked = calls_.hand_in(Listener::Metrics, {}).value().id;

  KnownCalls again = KnownCalls::restored(calls_.carry());

  EXPECT_TRUE(again.has(0));
  EXPECT_TRUE(again.has(1));
  EXPECT_FALSE(again.has(3));
  EXPECT_TRUE(again.listens(Listener::Webhooks));
  EXPECT_EQ(again.take_forgotten(), std::vector<std::uint64_t>{asked}) << "nobody waits any more";
  // Ids are still not given twice.
  KnownCalls copy = again;
  EXPECT_FALSE(copy.take(outcome_of({2}), {.next = 9}).has_value());
  EXPECT_TRUE(again.take(outcome_of({7}), {.metrics = 4, .webhooks = 5, .next = 8}).has_value());
  EXPECT_EQ(again.carry().calls.size(), 4U);
}

TEST_F(KnownCallsTest, AreWaitedForUntilTheyFinish) {
  expect_fine(outcome_of({0, 2}, {1}), {.metrics = std::nullopt, .next = 3});

  EXPECT_TRUE(calls_.has(0));
  EXPECT_TRUE(calls_.has(1));
  EXPECT_FALSE(calls_.has(3));
  calls_.finish(1);
  calls_.finish(1);
  EXPECT_FALSE(calls_.has(1));
  EXPECT_TRUE(calls_.has(2));
  expect_fine(outcome_of({}, {}, {2}), {.metrics = std::nullopt, .next = 3});
  EXPECT_FALSE(calls_.has(2));
  EXPECT_TRUE(calls_.has(0));
}

TEST_F(KnownCallsTest, HaveIdsOfTheirOwn) {
  expect_fine(outcome_of({4}, {5}), {.metrics = std::nullopt, .next = 6});

  expect_impossible(outcome_of({}), {.metrics = std::nullopt, .next = 5}, "used before");
  expect_impossible(outcome_of({7}), {.metrics = std::nullopt, .next = 7}, "without an id");
  expect_impossible(outcome_of({4}), {.metrics = std::nullopt, .next = 6}, "without an id");
  expect_impossible(outcome_of({3}), {.metrics = std::nullopt, .next = 6}, "without an id");
  expect_impossible(outcome_of({5}), {.metrics = std::nullopt, .next = 6}, "two calls with one");
  expect_impossible(outcome_of({7, 7}), {.metrics = std::nullopt, .next = 9}, "without an id");
  expect_impossible(outcome_of({7}, {7}), {.metrics = std::nullopt, .next = 9}, "two calls");
  calls_.finish(4);
  expect_impossible(outcome_of({4}), {.metrics = std::nullopt, .next = 6}, "without an id");
  // A request waits while later delays are taken.
  KnownCalls waiting;
  EXPECT_TRUE(waiting.take(outcome_of({}, {9}), {.metrics = std::nullopt, .next = 10}).has_value());
  EXPECT_TRUE(waiting.take(outcome_of({3}), {.metrics = std::nullopt, .next = 10}).has_value());
}

TEST_F(KnownCallsTest, AreCancelledOnlyWhileTheyAreUnderWay) {
  expect_fine(outcome_of({0}, {1}), {.metrics = 2, .next = 3});
  calls_.finish(0);

  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{8}})
    expect_impossible(outcome_of({}, {}, {id}), {.metrics = 2, .next = 3}, "not under way");
  expect_impossible(outcome_of({}, {}, {1, 1}), {.metrics = 2, .next = 3}, "not under way");
}

TEST_F(KnownCallsTest, AreBounded) {
  std::vector<std::uint64_t> most(limits::kGuestRequestsMax);
  for (std::uint64_t id = 0; id < most.size(); ++id)
    most[id] = id;
  expect_fine(outcome_of(most), {.metrics = std::nullopt, .next = 1000});
  expect_impossible(outcome_of({500}), {.metrics = std::nullopt, .next = 1000}, "more requests");
  expect_fine(outcome_of({500}, {}, {0}), {.metrics = std::nullopt, .next = 1000});

  std::vector<std::uint64_t> delays(limits::kGuestDelaysMax + 1);
  for (std::uint64_t index = 0; index < delays.size(); ++index)
    delays[index] = 1000 + index;
  expect_impossible(outcome_of({}, delays), {.metrics = std::nullopt, .next = 100'000},
                    "more delays");
}

TEST_F(KnownCallsTest, AreAnsweredOnceEach) {
  expect_fine(outcome_of({0}), {.metrics = 1, .next = 2});
  ASSERT_TRUE(calls_.listens(Listener::Metrics));
  EXPECT_TRUE(calls_.has(1));

  const Result<Guest::Inbound> inbound =
      calls_.hand_in(Listener::Metrics, {.method = "GET", .uri = "/metrics"});

  ASSERT_TRUE(inbound.has_value()) << inbound.error().message();
  EXPECT_EQ(inbound->id, 2U);
  EXPECT_EQ(inbound->wakeup.id, 1U);
  EXPECT_EQ(calls_.take_inbound_count(), 1U);
  EXPECT_EQ(calls_.take_inbound_count(), 0U);
  EXPECT_FALSE(calls_.has(2));  // It is not a call of the guest.
  expect_impossible(outcome_of({}, {}, {}, {0}), {.metrics = 1, .next = 3}, "nobody waits");
  expect_impossible(outcome_of({}, {}, {}, {2, 2}), {.metrics = 1, .next = 3}, "nobody waits");
  expect_impossible(outcome_of({}, {}, {2}), {.metrics = 1, .next = 3}, "not under way");
  expect_impossible(outcome_of({2}), {.metrics = 1, .next = 3}, "two calls");
  expect_fine(outcome_of({}, {}, {}, {2}), {.metrics = 1, .next = 3});
}

TEST_F(KnownCallsTest, HandInNoMoreThanTheGuestAnswers) {
  EXPECT_EQ(calls_.hand_in(Listener::Metrics, {}).error().kind(), ErrorKind::NotFound);
  expect_fine(outcome_of({0}), {.metrics = 1, .next = 2});
  for (std::uint32_t count = 0; count < limits::kGuestInboundMax; ++count)
    EXPECT_TRUE(calls_.hand_in(Listener::Metrics, {}).has_value());

  EXPECT_EQ(calls_.hand_in(Listener::Metrics, {}).error().kind(), ErrorKind::Unavailable);
}

TEST_F(KnownCallsTest, HaveAListenerWithAnIdOfItsOwn) {
  expect_impossible(outcome_of({0}), {.metrics = 0, .next = 1}, "a listener");
  expect_impossible(outcome_of({0}), {.metrics = 7, .next = 1}, "a listener");
}

// The host accepts any calls that a guest can make with PendingCalls in its own process.
TEST_F(KnownCallsTest, AgreeWithThoseOfAGuestThatKeepsTheContract) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  PendingCalls pending;
  std::uint64_t ids = 0;  // More than were given out.
  for (int turn = 0; turn < 300; ++turn) {
    for (unsigned step = random() % 40; step > 0; --step) {
      const std::uint64_t any = ids == 0 ? 0 : random() % ids;
      switch (random() % 6) {
        case 0:
        case 1:
          ids = pending.add_request({}, false).value_or(ids) + 1;
          break;
        case 2:
          ids = pending.add_delay(1).value_or(ids) + 1;
          break;
        case 3:
          pending.cancel(any);
          break;
        case 4:
          if (random() % 20 == 0) static_cast<void>(pending.listen(Listener::Metrics));
          break;
        default:
          pending.answer_inbound({.id = any, .status = 200, .headers = {}, .body = {}});
      }
    }
    TurnOutcome outcome;
    outcome.calls = pending.take_calls();
    outcome.delays = pending.take_delays();
    outcome.answers = pending.take_answers();
    outcome.cancelled = pending.take_cancelled();
    const KnownCalls::Ids known = {.metrics = pending.find(Listener::Metrics),
                                   .next = pending.next_id()};
    ASSERT_NO_FATAL_FAILURE(expect_fine(outcome, known));
    for (std::uint64_t id = 0; id < ids; ++id) {
      if (calls_.has(id)) EXPECT_TRUE(pending.has(id));
      if (random() % 8 != 0 || !calls_.has(id)) continue;
      calls_.finish(id);
      pending.finish(id);
    }
    if (calls_.listens(Listener::Metrics) && random() % 3 == 0) {
      const auto inbound = calls_.hand_in(Listener::Metrics, {});
      const auto same = pending.add_inbound();
      ASSERT_EQ(inbound.has_value(), same.has_value());
      if (inbound) EXPECT_EQ(inbound->id, *same);
      if (same) ids = *same + 1;
    }
  }
}

TEST_F(KnownCallsTest, AreOfTheListenerThatARequestIsFor) {
  expect_fine(outcome_of({}), {.metrics = 0, .webhooks = 1, .next = 2});
  const Result<Guest::Inbound> review =
      calls_.hand_in(Listener::Webhooks, {.method = "POST", .uri = "/validate"});
  ASSERT_TRUE(review.has_value()) << review.error().message();
  EXPECT_EQ(review->wakeup.id, 1U);

  expect_impossible(outcome_of({}), {.metrics = 3, .webhooks = 3, .next = 4}, "listeners");
  expect_impossible(outcome_of({}), {.metrics = 0, .webhooks = 7, .next = 4}, "something else");
}

TEST_F(KnownCallsTest, AreNotAnsweredOnceTheyAreForgotten) {
  expect_fine(outcome_of({}), {.metrics = std::nullopt, .webhooks = 0, .next = 1});
  std::vector<std::uint64_t> ids;
  for (std::uint32_t count = 0; count < limits::kGuestInboundMax; ++count)
    ids.push_back(calls_.hand_in(Listener::Webhooks, {.method = "POST", .uri = "/"})->id);
  EXPECT_FALSE(calls_.hand_in(Listener::Webhooks, {.method = "POST", .uri = "/"}).has_value());

  calls_.forget(ids[2]);
  calls_.forget(0);  // The listener, which is not a request.

  EXPECT_EQ(calls_.take_forgotten(), std::vector{ids[2]});
  EXPECT_EQ(calls_.take_forgotten(), std::vector<std::uint64_t>());
  EXPECT_TRUE(calls_.hand_in(Listener::Webhooks, {.method = "POST", .uri = "/"}).has_value());
}

}  // namespace
}  // namespace hangar::abi::kube_runtime
