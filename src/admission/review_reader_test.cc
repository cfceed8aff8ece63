#include "admission/review_reader.h"

#include "admission/review.h"
#include "base/consumer.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::admission {
namespace {

using ::testing::HasSubstr;

std::string body_of(std::size_t bytes) {
  return fmt::format(
      R"({{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{"uid": "u1",
      "operation": "CREATE", "object": {{"text": "{}"}}}}}})",
      std::string(bytes, 'x'));
}

class ReviewReaderTest : public ::testing::Test {
 protected:
  using Outcome = std::optional<Result<ReviewReader::Read>>;

  // Starts to read a body; the returned outcome is set later.
  Outcome& read(std::string body, std::string source = "10.0.0.1") {
    Outcome& outcome = outcomes_.emplace_back();
    loop_.spawn(read_into(std::move(body), std::move(source), outcome));
    return outcome;
  }
  void run_ready() {
    bool done = false;
    loop_.post([&] { loop_.post([&] { done = true; }); });
    loop_.run_until([&] { return done; });
  }
  void run_until_all_ended() {
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }
  // Until release(), no other work gets a worker.
  void occupy_workers() {
    workers_.submit(unnamed_consumer(), [held = released_.get_future().share()] { held.wait(); });
  }
  void release() { released_.set_value(); }

  io::Loop loop_;
  std::promise<void> released_;
  io::Workers workers_{loop_, 1};
  ReviewReader reader_{loop_, workers_};
  std::stop_source stop_;
  std::list<Outcome> outcomes_;

 private:
  io::Task<void> read_into(std::string body, std::string source, Outcome& outcome) {
    outcome.emplace(co_await reader_.read(std::move(body), std::move(source), stop_.get_token()));
  }
};

std::string refusal_of(const std::optional<Result<ReviewReader::Read>>& outcome, ErrorKind kind) {
  if (!outcome || outcome->has_value()) return "it is not refused";
  EXPECT_EQ(outcome->error().kind(), kind);
  return outcome->error().message();
}

TEST_F(ReviewReaderTest, ParsesLargeBodiesElsewhereAndSmallOnesAtOnce) {
  occupy_workers();

  const auto& large = read(body_of(kParsedAtOnceBytesMax));
  const auto& small = read(body_of(100));
  run_ready();

  ASSERT_TRUE(small && *small);
  EXPECT_EQ((*small)->review.uid, "u1");
  EXPECT_FALSE(large) << "the loop has parsed it";
  release();
  run_until_all_ended();
  ASSERT_TRUE(large && *large);
  EXPECT_EQ((*large)->review.uid, "u1");
}

TEST_F(ReviewReaderTest, BoundsHowManyOfOneSourceWaitToBeParsed) {
  occupy_workers();
  // One of them is at the worker: the other place is for another source.
  for (std::size_t i = 0; i < 1 + kParsingWaitingMax; ++i)
    read(body_of(kParsedAtOnceBytesMax));

  const auto& one_more = read(body_of(kParsedAtOnceBytesMax));
  const auto& small = read(body_of(100));
  const auto& anothers = read(body_of(kParsedAtOnceBytesMax), "10.0.0.2");
  run_ready();

  EXPECT_THAT(refusal_of(one_more, ErrorKind::Unavailable), HasSubstr("wait to be read"));
  EXPECT_TRUE(small && *small);
  EXPECT_FALSE(anothers) << "it is at the workers";
  release();
  run_until_all_ended();
  EXPECT_TRUE(anothers && *anothers);
}

TEST_F(ReviewReaderTest, BoundsTheBytesOfReviewsWithoutAnAnswer) {
  const std::string body = body_of(kReviewBytesMax - 1000);
  const std::size_t fitting = kReviewsBytesMax / body.size();
  for (std::size_t i = 0; i < fitting; ++i)
    read(body, fmt::format("10.0.0.{}", i % 2));
  run_until_all_ended();

  const auto& one_more = read(body, "10.0.0.9");
  run_until_all_ended();
  EXPECT_THAT(refusal_of(one_more, ErrorKind::Unavailable), HasSubstr("limit of their bytes"));

  outcomes_.pop_front();  // That one is answered.
  const auto& later = read(body, "10.0.0.9");
  run_until_all_ended();
  EXPECT_TRUE(later && *later);
}

TEST_F(ReviewReaderTest, LeavesHalfOfTheBytesToOtherSources) {
  const std::string body = body_of(kReviewBytesMax - 1000);
  const std::size_t fitting = kSourceReviewsBytesMax / body.size();
  for (std::size_t i = 0; i < fitting; ++i)
    read(body);
  run_until_all_ended();

  const auto& one_more = read(body);
  const auto& anothers = read(body, "10.0.0.2");
  run_until_all_ended();

  EXPECT_THAT(refusal_of(one_more, ErrorKind::Unavailable), HasSubstr("limit of their bytes"));
  EXPECT_TRUE(anothers && *anothers);
}

TEST_F(ReviewReaderTest, CountsTheMemoryOfShortValues) {
  const auto numbers = [](std::size_t count) {
    std::string list = "1";
    for (std::size_t number = 1; number < count; ++number)
      list += ",1";
    return fmt::format(
        R"({{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
        "uid": "u1", "operation": "CREATE", "object": {{"list": [{}]}}}}}})",
        list);
  };
  const auto& fits = read(numbers(1'500'000));
  const auto& another = read(numbers(1'500'000));
  const auto& too_dense = read(numbers(3'000'000), "10.0.0.2");
  run_until_all_ended();

  EXPECT_TRUE(fits && *fits);
  EXPECT_THAT(refusal_of(another, ErrorKind::Unavailable), HasSubstr("limit of their bytes"));
  EXPECT_THAT(refusal_of(too_dense, ErrorKind::InvalidInput), HasSubstr("too much memory"));
}

TEST_F(ReviewReaderTest, RefusesWhatIsTooLargeForAReview) {
  const auto& outcome = read(body_of(kReviewBytesMax));
  run_until_all_ended();

  EXPECT_THAT(refusal_of(outcome, ErrorKind::InvalidInput), HasSubstr("over the limit of 7 MiB"));
}

TEST_F(ReviewReaderTest, SaysWhatIsWrongWithALargeBody) {
  const auto& outcome = read(body_of(kParsedAtOnceBytesMax) + "x");
  run_until_all_ended();

  EXPECT_NE(refusal_of(outcome, ErrorKind::InvalidInput), "it is not refused");
}

}  // namespace
}  // namespace hangar::admission
