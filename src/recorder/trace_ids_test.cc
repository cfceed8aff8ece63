#include "recorder/trace_ids.h"

#include "base/digest.h"
#include "recorder/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace hangar::recorder {
namespace {

Guest guest_named(std::string_view namespace_, std::string_view name) {
  return {.namespace_ = namespace_, .name = name, .instance = 5};
}

}  // namespace

TEST(TraceIds, AreTheSameForARequestAndItsTurn) {
  const TraceIds ids("key", 1);
  const Guest guest = guest_named("team", "mirror");
  const TurnTrace turn = ids.of_turn(guest, 7);

  EXPECT_EQ(ids.traceparent(guest, 7, 3),
            "00-" + to_hex(turn.trace) + "-" + to_hex(ids.of_request(turn, 3)) + "-01");
  EXPECT_EQ(ids.of_turn(guest, 7), turn);
}

TEST(TraceIds, DifferForEachTurnGuestAndRequest) {
  const TraceIds ids("key", 1);
  std::set<TraceId> traces;
  for (const Guest& guest :
       {guest_named("a", "bc"), guest_named("ab", "c"), guest_named("", "abc")}) {
    for (const std::uint64_t turn : {std::uint64_t{1}, std::uint64_t{2}}) {
      traces.insert(ids.of_turn(guest, turn).trace);
      traces.insert(TraceIds("other key", 1).of_turn(guest, turn).trace);
    }
  }
  EXPECT_EQ(traces.size(), 12);
  const TurnTrace turn = ids.of_turn(guest_named("a", "b"), 1);
  EXPECT_NE(ids.of_request(turn, 1), ids.of_request(turn, 2));
  EXPECT_NE(ids.of_request(turn, 1), turn.span);
}

TEST(TraceIds, SampleTheShareThatIsAsked) {
  const Guest guest = guest_named("team", "mirror");
  const auto sampled_of = [&guest](double ratio) {
    const TraceIds ids("key", ratio);
    int count = 0;
    for (std::uint64_t turn = 0; turn < 2000; ++turn)
      count += ids.of_turn(guest, turn).is_sampled ? 1 : 0;
    return count;
  };
  EXPECT_EQ(sampled_of(0), 0);
  EXPECT_EQ(sampled_of(1), 2000);
  // Deterministic, because the key and the numbers are fixed.
  EXPECT_NEAR(sampled_of(0.25), 500, 75);
}

TEST(Traceparent, IsReadAsItWasWritten) {
  const TraceIds ids("key", 1);
  const Guest guest = guest_named("team", "mirror");
  const TurnTrace turn = ids.of_turn(guest, 7);
  EXPECT_EQ(parse_traceparent(ids.traceparent(guest, 7, 3)),
            (TraceContext{.trace = turn.trace, .span = ids.of_request(turn, 3)}));
}

TEST(Traceparent, IsRefusedUnlessItIsValid) {
  const std::string trace(32, 'a');
  const std::string span(16, 'b');
  const auto is_valid = [](const std::string& text) { return parse_traceparent(text).has_value(); };
  EXPECT_TRUE(is_valid("00-" + trace + "-" + span + "-01"));
  EXPECT_TRUE(is_valid("01-" + trace + "-" + span + "-01-more"));
  EXPECT_FALSE(is_valid("00-" + trace + "-" + span + "-01-more"));
  EXPECT_FALSE(is_valid("01-" + trace + "-" + span + "-01more"));
  EXPECT_FALSE(is_valid("ff-" + trace + "-" + span + "-01"));
  EXPECT_FALSE(is_valid("00-" + std::string(32, '0') + "-" + span + "-01"));
  EXPECT_FALSE(is_valid("00-" + trace + "-" + std::string(16, '0') + "-01"));
  EXPECT_FALSE(is_valid("00-" + std::string(32, 'A') + "-" + span + "-01"));
  EXPECT_FALSE(is_valid("00-" + trace + "-" + span + "-0"));
  EXPECT_FALSE(is_valid("00_" + trace + "-" + span + "-01"));
  EXPECT_FALSE(is_valid(""));
}

TEST(TraceIds, SayInTheHeaderWhetherTheTurnIsSampled) {
  EXPECT_THAT(TraceIds("key", 0).traceparent(guest_named("a", "b"), 1, 1),
              testing::EndsWith("-00"));
}

}  // namespace hangar::recorder
