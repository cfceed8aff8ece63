#include "abi/kube_runtime/pending_calls.h"

#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hangar::abi::kube_runtime {
namespace {

using testing::HasSubstr;

HttpRequest get(const std::string& uri) {
  return {.method = "GET", .uri = uri};
}

TEST(PendingCalls, GivesCallsOnceInTheirOrderUnderIdsOfTheirOwn) {
  PendingCalls pending;
  EXPECT_EQ(pending.add_request(get("/a"), false), 0U);
  EXPECT_EQ(pending.add_delay(1500), 1U);
  EXPECT_EQ(pending.add_request(get("/b"), true), 2U);

  const std::vector<HttpCall> calls = pending.take_calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].id, 0U);
  EXPECT_FALSE(calls[0].is_stream);
  EXPECT_EQ(calls[1].id, 2U);
  EXPECT_TRUE(calls[1].is_stream);
  EXPECT_EQ(calls[1].request.uri, "/b");
  const std::vector<Delay> delays = pending.take_delays();
  ASSERT_EQ(delays.size(), 1U);
  EXPECT_EQ(delays[0].id, 1U);
  EXPECT_EQ(delays[0].duration, std::chrono::milliseconds(1500));

  EXPECT_TRUE(pending.take_calls().empty());
  EXPECT_TRUE(pending.take_delays().empty());
}

TEST(PendingCalls, ForgetsWhatHasFinishedAndNeverGivesItsIdAgain) {
  PendingCalls pending;
  const std::uint64_t request = *pending.add_request(get("/"), false);
  const std::uint64_t delay = *pending.add_delay(1);
  EXPECT_EQ(pending.take_calls().size(), 1U);
  EXPECT_TRUE(pending.has(request));
  EXPECT_TRUE(pending.has(delay));
  EXPECT_FALSE(pending.has(99));

  pending.finish(request);
  pending.finish(request);
  pending.finish(99);
  EXPECT_FALSE(pending.has(request));
  EXPECT_FALSE(pending.is_empty());
  pending.finish(delay);
  EXPECT_TRUE(pending.is_empty());
  EXPECT_EQ(pending.add_delay(1), 2U);
}

TEST(PendingCalls, TellsOfWhatIsCancelledOnlyIfItHasBegun) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  PendingCalls pending;
  const std::uint64_t begun = *pending.add_request(get("/begun"), true);
  const std::uint64_t begun_delay = *pending.add_delay(1);
  EXPECT_EQ(pending.take_calls().size(), 1U);
  EXPECT_EQ(pending.take_delays().size(), 1U);
  const std::uint64_t waiting = *pending.add_request(get("/waiting"), true);
  const std::uint64_t waiting_delay = *pending.add_delay(1);

  for (const std::uint64_t id : {waiting, begun_delay, waiting_delay, begun, begun})
    pending.cancel(id);
  pending.cancel(99);

  EXPECT_FALSE(pending.has(begun));
  EXPECT_TRUE(pending.is_empty());
  EXPECT_THAT(pending.take_calls(), IsEmpty());
  EXPECT_THAT(pending.take_delays(), IsEmpty());
  EXPECT_THAT(pending.take_cancelled(), ElementsAre(begun_delay, begun));
  EXPECT_THAT(pending.take_cancelled(), IsEmpty());
  EXPECT_EQ(pending.add_delay(1), 4U);
}

TEST(PendingCalls, WhatIsCancelledMakesRoomForWhatWaits) {
  PendingCalls pending;
  for (std::uint32_t index = 0; index <= limits::kGuestRequestsMax; ++index)
    ASSERT_TRUE(pending.add_request(get("/"), true).has_value());
  EXPECT_EQ(pending.take_calls().size(), limits::kGuestRequestsMax);

  pending.cancel(3);

  const std::vector<HttpCall> next = pending.take_calls();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].id, limits::kGuestRequestsMax);
}

TEST(PendingCalls, RequestsBeyondThoseUnderWayWait) {
  PendingCalls pending;
  const std::uint32_t count = limits::kGuestRequestsMax + 2;
  for (std::uint32_t index = 0; index < count; ++index)
    ASSERT_TRUE(pending.add_request(get("/"), index % 2 == 0).has_value());
  EXPECT_EQ(pending.take_calls().size(), limits::kGuestRequestsMax);
  EXPECT_TRUE(pending.take_calls().empty());
  // It has not started, so it cannot have finished.
  pending.finish(limits::kGuestRequestsMax);
  EXPECT_TRUE(pending.has(limits::kGuestRequestsMax));

  pending.finish(7);
  const std::vector<HttpCall> next = pending.take_calls();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].id, limits::kGuestRequestsMax);
  pending.finish(8);
  pending.finish(9);
  EXPECT_EQ(pending.take_calls().size(), 1U);
}

TEST(PendingCalls, DelaysTakeNoPlaceOfRequests) {
  PendingCalls pending;
  for (std::uint32_t index = 0; index < limits::kGuestRequestsMax; ++index)
    ASSERT_TRUE(pending.add_delay(1).has_value());
  ASSERT_TRUE(pending.add_request(get("/"), false).has_value());
  EXPECT_EQ(pending.take_calls().size(), 1U);
}

TEST(PendingCalls, ShrinkingKeepsWhatIsOpenAndWhatWaits) {
  PendingCalls pending;
  const std::uint32_t count = limits::kGuestRequestsMax + 3;
  for (std::uint32_t index = 0; index < count; ++index)
    ASSERT_TRUE(pending.add_request(get("/" + std::to_string(index)), false).has_value());
  EXPECT_EQ(pending.take_calls().size(), limits::kGuestRequestsMax);
  for (std::uint64_t id = 2; id < limits::kGuestRequestsMax; ++id)
    pending.finish(id);

  pending.shrink();
  for (std::uint64_t id = 0; id <= count; ++id)
    EXPECT_EQ(pending.has(id), id < 2 || (id >= limits::kGuestRequestsMax && id < count)) << id;
  const std::vector<HttpCall> calls = pending.take_calls();
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[2].id, count - 1);
  EXPECT_EQ(calls[2].request.uri, "/" + std::to_string(count - 1));
  EXPECT_EQ(pending.add_delay(1), count);
  pending.shrink();
  EXPECT_EQ(pending.take_delays().size(), 1U);
}

TEST(PendingCalls, FinishInAnyOrder) {
  for (const std::uint64_t step : {1U, 7U, 13U, 15U}) {  // Each has no divisor in common with 16.
    PendingCalls pending;
    for (std::uint64_t id = 0; id < 16; ++id)
      ASSERT_EQ(pending.add_delay(1), id);
    std::vector<bool> is_open(16, true);
    for (std::uint64_t times = 0; times < 16; ++times) {
      EXPECT_FALSE(pending.is_empty());
      const std::uint64_t id = times * step % 16;
      pending.finish(id);
      pending.finish(id);
      is_open[id] = false;
      for (std::uint64_t other = 0; other < 16; ++other)
        EXPECT_EQ(pending.has(other), is_open[other]) << other << " after " << id;
    }
    EXPECT_TRUE(pending.is_empty());
  }
}

TEST(PendingCalls, AFloodOfRequestsIsALimit) {
  PendingCalls pending;
  Result<std::uint64_t> last = 0;
  std::uint32_t taken = 0;
  while ((last = pending.add_request(get("/"), false)))
    ++taken;
  EXPECT_EQ(taken, limits::kGuestRequestsWaitingMax);
  EXPECT_EQ(last.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(last.error().message(), "the guest asks for more than 16384 requests at once");
}

TEST(PendingCalls, AFloodOfBytesIsALimitUntilTheyAreSent) {
  PendingCalls pending;
  HttpRequest large = get("/");
  large.body.assign(limits::kGuestRequestBytesMax - 8, 'x');
  const std::uint64_t fitting =
      limits::kGuestRequestsWaitingBytesMax / limits::kGuestRequestBytesMax;
  for (std::uint64_t index = 0; index < fitting; ++index)
    ASSERT_TRUE(pending.add_request(large, false).has_value());
  const Result<std::uint64_t> refused = pending.add_request(large, false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused.error().message(), HasSubstr("bytes at once"));

  EXPECT_EQ(pending.take_calls().size(), fitting);
  EXPECT_TRUE(pending.add_request(large, false).has_value());
}

TEST(PendingCalls, AFloodOfEmptyHeadersIsALimit) {
  PendingCalls pending;
  HttpRequest request = get("/");
  request.headers.assign(8000, {"a", ""});
  Result<std::uint64_t> last = 0;
  std::uint64_t taken = 0;
  while ((last = pending.add_request(request, false)))
    ++taken;

  EXPECT_LT(taken, limits::kGuestRequestsWaitingBytesMax / (8000 * 2 * sizeof(std::string)));
  EXPECT_THAT(last.error().message(), HasSubstr("bytes at once"));
}

TEST(PendingCalls, AFloodOfDelaysIsALimitUntilTheyEnd) {
  PendingCalls pending;
  for (std::uint32_t index = 0; index < limits::kGuestDelaysMax; ++index)
    ASSERT_TRUE(pending.add_delay(1).has_value());
  const Result<std::uint64_t> refused = pending.add_delay(1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);

  pending.finish(0);
  EXPECT_TRUE(pending.add_delay(1).has_value());
}

TEST(PendingCalls, AListenerHasOneIdAndIsNoCall) {
  PendingCalls pending;
  EXPECT_EQ(pending.find(Listener::Metrics), std::nullopt);

  EXPECT_EQ(pending.listen(Listener::Metrics), 0U);
  EXPECT_EQ(pending.listen(Listener::Metrics), 0U);

  EXPECT_EQ(pending.find(Listener::Metrics), 0U);
  EXPECT_TRUE(pending.has(0));
  EXPECT_TRUE(pending.is_empty());
  pending.finish(0);
  pending.shrink();
  EXPECT_TRUE(pending.has(0)) << "it is cancelled, not finished";
  pending.cancel(0);
  EXPECT_FALSE(pending.has(0));
  EXPECT_TRUE(pending.take_cancelled().empty());
  EXPECT_EQ(pending.find(Listener::Metrics), std::nullopt);
  EXPECT_EQ(pending.listen(Listener::Metrics), 1U);
}

TEST(PendingCalls, TakesOneAnswerToEachRequestIntoTheGuest) {
  PendingCalls pending;
  const std::uint64_t delay = *pending.add_delay(1);
  const std::uint64_t asked = *pending.add_inbound();
  EXPECT_FALSE(pending.has(asked)) << "the guest does not wait for it";

  pending.answer_inbound({.id = delay, .status = 200});
  pending.answer_inbound({.id = 99, .status = 200});
  pending.cancel(asked);
  pending.finish(asked);
  pending.answer_inbound({.id = asked, .status = 200, .body = "first"});
  pending.answer_inbound({.id = asked, .status = 500, .body = "second"});

  const std::vector<InboundAnswer> answers = pending.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].id, asked);
  EXPECT_EQ(answers[0].body, "first");
  EXPECT_TRUE(pending.take_answers().empty());
  EXPECT_TRUE(pending.has(delay));
}

TEST(PendingCalls, RequestsIntoTheGuestAreBoundedUntilItAnswers) {
  PendingCalls pending;
  const std::uint64_t first = *pending.add_inbound();
  for (std::uint32_t index = 1; index < limits::kGuestInboundMax; ++index)
    ASSERT_TRUE(pending.add_inbound().has_value());
  EXPECT_EQ(pending.add_inbound().error().kind(), ErrorKind::Unavailable);

  pending.answer_inbound({.id = first, .status = 200});
  EXPECT_TRUE(pending.add_inbound().has_value());
}

TEST(PendingCalls, AListenerForWebhooksKeepsAGuestAlive) {
  PendingCalls pending;
  const std::uint64_t metrics = pending.listen(Listener::Metrics);
  const std::uint64_t webhooks = pending.listen(Listener::Webhooks);

  EXPECT_NE(metrics, webhooks);
  EXPECT_FALSE(pending.is_empty());
  pending.cancel(webhooks);
  EXPECT_TRUE(pending.is_empty());
  EXPECT_EQ(pending.find(Listener::Webhooks), std::nullopt);
  EXPECT_EQ(pending.find(Listener::Metrics), metrics);
}

TEST(PendingCalls, ARequestThatNobodyWaitsForMakesRoomForAnother) {
  PendingCalls pending;
  const std::uint64_t first = *pending.add_inbound();
  for (std::uint32_t index = 1; index < limits::kGuestInboundMax; ++index)
    ASSERT_TRUE(pending.add_inbound().has_value());

  pending.forget_inbound(first);

  const Result<std::uint64_t> next = pending.add_inbound();
  ASSERT_TRUE(next.has_value());
  pending.answer_inbound({.id = first, .status = 200});
  pending.answer_inbound({.id = *next, .status = 201});
  const std::vector<InboundAnswer> answers = pending.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].status, 201);
}

TEST(PendingCalls, TheAnswersOfOneTurnAreBoundedTogether) {
  PendingCalls pending;
  const std::uint64_t first = *pending.add_inbound();
  const std::uint64_t second = *pending.add_inbound();
  const std::uint64_t third = *pending.add_inbound();
  const std::string half(limits::kGuestInboundAnswersBytesMax / 2, 'x');

  pending.answer_inbound({.id = first, .status = 200, .body = half});
  pending.answer_inbound({.id = second, .status = 200, .body = half});
  pending.answer_inbound({.id = third, .status = 200, .body = "x"});

  const std::vector<InboundAnswer> answers = pending.take_answers();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[1].status, 200);
  EXPECT_EQ(answers[2].status, 507);
  const std::uint64_t later = *pending.add_inbound();
  pending.answer_inbound({.id = later, .status = 200, .body = half});
  EXPECT_EQ(pending.take_answers()[0].status, 200) << "each turn has the whole bound";
}

TEST(PendingCalls, DelaysOfAnyLengthFitTheClock) {
  PendingCalls pending;
  ASSERT_TRUE(pending.add_delay(~std::uint64_t{0}).has_value());
  EXPECT_EQ(pending.take_delays()[0].duration, std::chrono::hours(24 * 365));
}

}  // namespace
}  // namespace hangar::abi::kube_runtime
