#include "operators/guest_metrics.h"

#include "abi/kube_runtime/messages.h"
#include "base/limits.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"
#include "io/loop.h"
#include "operators/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

using abi::kube_runtime::InboundAnswer;
using testing::HasSubstr;

constexpr Instant kScrape{std::chrono::hours(1)};

class GuestMetricsTest : public testing::Test {
 protected:
  void answer(std::uint64_t id, std::string body, int status = 200) {
    std::vector<InboundAnswer> answers(1);
    answers[0] = {.id = id, .status = status, .body = std::move(body)};
    metrics_.on_answers(answers);
  }
  void expect_refused(std::string body, int status, const std::string& why) {
    metrics_.on_turn();
    metrics_.on_asked(7);
    answer(7, std::move(body), status);
    ASSERT_TRUE(metrics_.last().has_value());
    ASSERT_FALSE(metrics_.last()->has_value()) << why;
    EXPECT_THAT(metrics_.last()->error().message(), HasSubstr(why));
  }

  io::Loop loop_;
  budget::Accounts accounts_{{}};
  GuestMetrics metrics_{budget::SteppedReservation(accounts_, budget::unnamed_consumer(),
                                                   limits::kAnswersCountedStep)};
};

TEST_F(GuestMetricsTest, AreCurrentFromTheTurnInWhichTheGuestIsAskedUntilItsNextTurn) {
  EXPECT_FALSE(metrics_.is_current());
  metrics_.on_asked(7);
  answer(7, "a 1\n");
  EXPECT_TRUE(metrics_.is_current());
  EXPECT_EQ(metrics_.last()->value(), "a 1\n");

  metrics_.on_turn();
  EXPECT_FALSE(metrics_.is_current());
  EXPECT_EQ(metrics_.last()->value(), "a 1\n");
}

TEST_F(GuestMetricsTest, OnlyTheLastRequestHasAnAnswerAndOnlyOnce) {
  answer(7, "never asked for");
  EXPECT_FALSE(metrics_.last().has_value());
  metrics_.on_asked(7);
  metrics_.on_asked(8);
  answer(7, "late");
  EXPECT_FALSE(metrics_.last().has_value());
  answer(8, "first");
  answer(8, "second");
  EXPECT_EQ(metrics_.last()->value(), "first");

  metrics_.on_asked(std::nullopt);
  answer(0, "to nothing");
  EXPECT_EQ(metrics_.last()->value(), "first");
}

TEST_F(GuestMetricsTest, AnAnswerThatCannotBeServedSaysWhy) {
  expect_refused("broken", 500, "answers with status 500");
  expect_refused(std::string(limits::kMetricsBytesMax + 1, 'x'), 200, "have 1048577 bytes");
  expect_refused("\xff", 200, "are not text");
  expect_refused(std::string("a\0b", 3), 200, "are not text");

  metrics_.on_asked(9);
  answer(9, std::string(limits::kMetricsBytesMax, 'x'));
  EXPECT_TRUE(metrics_.last()->has_value());
}

TEST_F(GuestMetricsTest, AreGoneWithTheGuestAndNobodyWaitsOn) {
  metrics_.on_asked(7);
  answer(7, "a 1\n");
  const io::OneShot<bool> waiting = metrics_.wait(loop_);
  EXPECT_TRUE(metrics_.is_waited_for());

  metrics_.clear();

  EXPECT_TRUE(waiting.is_set());
  EXPECT_FALSE(metrics_.is_waited_for());
  EXPECT_FALSE(metrics_.is_current());
  EXPECT_FALSE(metrics_.last().has_value());
}

TEST_F(GuestMetricsTest, AScrapeThatHasGivenUpIsNotWaitingAnyMore) {
  metrics_.wait(loop_).set(false);
  EXPECT_FALSE(metrics_.is_waited_for());
}

TEST_F(GuestMetricsTest, AreWantedForSomeTimeAfterAScrape) {
  metrics_.on_scrape(kScrape);
  EXPECT_TRUE(metrics_.was_scraped_lately(kScrape + limits::kMetricsWanted - Duration(1)));
  EXPECT_FALSE(metrics_.was_scraped_lately(kScrape + limits::kMetricsWanted));
}

}  // namespace
}  // namespace hangar::operators
