#include "tracing/turn_spans.h"

#include "base/utf8.h"
#include "recorder/record.h"
#include "recorder/trace_ids.h"
#include "tracing/limits.h"
#include "tracing/span.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::tracing {
namespace {

using recorder::Turn;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr recorder::Guest kGuest{.namespace_ = "team", .name = "mirror", .instance = 9};

class TurnSpansTest : public testing::Test {
 protected:
  TurnSpans& spans_of(double ratio) {
    ids_.emplace("key", ratio);
    spans_.emplace(*ids_, [this](Span span) { given_.push_back(std::move(span)); });
    return *spans_;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const Span& span : given_)
      found.push_back(span.name);
    return found;
  }
  [[nodiscard]] const recorder::TraceIds& ids() const { return *ids_; }
  [[nodiscard]] static std::string text_in(const Span& span, std::string_view key) {
    for (const auto& [name, value] : span.attributes) {
      if (name == key && std::holds_alternative<std::string>(value))
        return std::get<std::string>(value);
    }
    return {};
  }

  std::vector<Span> given_;

 private:
  std::optional<recorder::TraceIds> ids_;
  std::optional<TurnSpans> spans_;
};

Turn turn_numbered(std::uint64_t number, Turn::Outcome outcome = Turn::Outcome::Waits) {
  Turn turn;
  turn.guest = kGuest;
  turn.number = number;
  turn.outcome = outcome;
  return turn;
}

recorder::Asked asked_in(std::uint64_t turn, std::uint64_t id) {
  recorder::Asked asked;
  asked.guest = kGuest;
  asked.turn = turn;
  asked.id = id;
  asked.verb = recorder::Verb::Update;
  asked.resource = "configmaps";
  asked.name = "made";
  return asked;
}

recorder::Answered answer_to(std::uint64_t id, std::uint64_t status) {
  recorder::Answered answered;
  answered.guest = kGuest;
  answered.id = id;
  answered.status = status;
  return answered;
}

// The turn of a guest that is recorded before its requests.
constexpr recorder::Guest kFlight{
    .contract = recorder::Contract::Airway, .namespace_ = "team", .name = "backends/web"};

template <class Record>
Record by_flight(Record record) {
  record.guest = kFlight;
  return record;
}

constexpr recorder::Guest kOther{.namespace_ = "others", .name = "mirror", .instance = 9};

recorder::Asked by_other(std::uint64_t id) {
  recorder::Asked asked = asked_in(1, id);
  asked.guest = kOther;
  return asked;
}

recorder::Answered answer_to_other(std::uint64_t id, std::uint64_t status) {
  recorder::Answered answered = answer_to(id, status);
  answered.guest = kOther;
  return answered;
}

}  // namespace

TEST_F(TurnSpansTest, OfAFlightIsKeptForTheRequestsThatFollowItsRun) {
  TurnSpans& spans = spans_of(0);
  spans.on_turn(by_flight(turn_numbered(3)));
  spans.on_asked(by_flight(asked_in(3, 1)));
  spans.on_answered(by_flight(answer_to(1, 200)));
  EXPECT_THAT(names(), IsEmpty());
  spans.on_asked(by_flight(asked_in(3, 2)));
  spans.on_answered(by_flight(answer_to(2, 422)));
  EXPECT_THAT(names(), ElementsAre("turn of airway", "update configmaps", "update configmaps"));

  // An open request keeps a turn, the next turn does not.
  spans.on_asked(by_flight(asked_in(3, 3)));
  spans.on_turn(by_flight(turn_numbered(4)));
  EXPECT_EQ(spans.trace_count(), 2U);
  spans.on_answered(by_flight(answer_to(3, 200)));
  spans.on_turn(by_flight(turn_numbered(5)));
  EXPECT_EQ(spans.trace_count(), 1U);
}

TEST_F(TurnSpansTest, OfASampledTurnAreItselfAndItsRequests) {
  TurnSpans& spans = spans_of(1);
  spans.on_asked(asked_in(3, 1));
  spans.on_turn(turn_numbered(3));
  spans.on_answered(answer_to(1, 200));

  EXPECT_THAT(names(), ElementsAre("turn of operator", "update configmaps"));
  const recorder::TurnTrace trace = ids().of_turn(kGuest, 3);
  EXPECT_EQ(given_[0].trace, trace.trace);
  EXPECT_EQ(given_[0].id, trace.span);
  EXPECT_FALSE(given_[0].parent);
  EXPECT_EQ(given_[1].trace, trace.trace);
  EXPECT_EQ(given_[1].parent, trace.span);
  EXPECT_EQ(given_[1].id, ids().of_request(trace, 1));
  EXPECT_EQ(given_[1].kind, Span::Kind::Client);
  EXPECT_EQ(text_in(given_[1], "hangar.object.name"), "made");
  EXPECT_EQ(spans.trace_count(), 0);
}

TEST_F(TurnSpansTest, OfATurnThatIsNotSampledAreNone) {
  TurnSpans& spans = spans_of(0);
  spans.on_asked(asked_in(3, 1));
  spans.on_answered(answer_to(1, 404));
  spans.on_turn(turn_numbered(3));

  EXPECT_THAT(given_, IsEmpty());
  EXPECT_EQ(spans.trace_count(), 0);
}

TEST_F(TurnSpansTest, OfATurnThatFailsAreAllWhateverTheRatio) {
  TurnSpans& spans = spans_of(0);
  spans.on_asked(asked_in(3, 1));
  spans.on_answered(answer_to(1, 200));
  spans.on_turn(turn_numbered(3, Turn::Outcome::Failed));

  EXPECT_THAT(names(), UnorderedElementsAre("turn of operator", "update configmaps"));
  EXPECT_TRUE(std::ranges::any_of(given_, &Span::is_error));
  EXPECT_EQ(spans.trace_count(), 0);
}

TEST_F(TurnSpansTest, OfARefusedRequestAreAllWhateverTheRatio) {
  TurnSpans& spans = spans_of(0);
  spans.on_asked(asked_in(3, 1));
  spans.on_turn(turn_numbered(3));
  spans.on_answered(answer_to(1, 403));

  EXPECT_THAT(names(), ElementsAre("turn of operator", "update configmaps"));
  EXPECT_EQ(given_[1].error, "HTTP status 403");
}

TEST_F(TurnSpansTest, AreThoseOfRequestsThatArePassedOnAfterTheTurn) {
  TurnSpans& spans = spans_of(0);
  Turn turn = turn_numbered(3);
  turn.asked = 2;
  spans.on_turn(turn);
  recorder::Asked watch = asked_in(3, 1);
  watch.verb = recorder::Verb::Watch;
  spans.on_asked(watch);
  spans.on_asked(asked_in(3, 2));
  spans.on_answered(answer_to(2, 500));

  EXPECT_THAT(names(), ElementsAre("turn of operator", "update configmaps"));
  EXPECT_EQ(spans.trace_count(), 0);
}

TEST_F(TurnSpansTest, OfWatchesAreNone) {
  TurnSpans& spans = spans_of(1);
  recorder::Asked watch = asked_in(3, 1);
  watch.verb = recorder::Verb::Watch;
  spans.on_asked(watch);
  spans.on_turn(turn_numbered(3));

  EXPECT_THAT(names(), ElementsAre("turn of operator"));
  EXPECT_EQ(spans.trace_count(), 0);
}

TEST_F(TurnSpansTest, AreLinkedToTheTracesThatObjectsName) {
  TurnSpans& spans = spans_of(1);
  const std::string valid = "00-" + std::string(32, 'a') + "-" + std::string(16, 'b') + "-01";
  Turn turn = turn_numbered(3);
  turn.wakings.push_back({.traceparent = "nonsense"});
  for (std::size_t at = 0; at < kLinksMax + 5; ++at)
    turn.wakings.push_back({.traceparent = valid});
  spans.on_turn(turn);

  ASSERT_EQ(given_.size(), 1);
  EXPECT_EQ(given_[0].links.size(), kLinksMax);
  EXPECT_EQ(given_[0].links[0], recorder::parse_traceparent(valid));
  EXPECT_NE(given_[0].trace, given_[0].links[0].trace);
}

TEST_F(TurnSpansTest, NameNoSecretByAPathOfNoResource) {
  TurnSpans& spans = spans_of(1);
  recorder::Asked asked = asked_in(3, 1);
  asked.resource = {};
  asked.name = {};
  asked.path = "/api/v1/proxy/namespaces/team/secrets/password";
  spans.on_asked(asked);
  spans.on_answered(answer_to(1, 404));

  ASSERT_EQ(given_.size(), 1);
  EXPECT_EQ(text_in(given_[0], "url.path"), "/api/v1/proxy/namespaces/team/secrets/");
}

TEST_F(TurnSpansTest, NameNoSecret) {
  TurnSpans& spans = spans_of(1);
  recorder::Asked asked = asked_in(3, 1);
  asked.resource = "secrets";
  asked.name = "password";
  spans.on_asked(asked);
  spans.on_answered(answer_to(1, 200));
  Turn turn = turn_numbered(3);
  turn.wakings.push_back({.cause = recorder::Waking::Cause::Modified,
                          .object = {.kind = "Secret", .namespace_ = "team", .name = "password"}});
  spans.on_turn(turn);
  // A watch of bare metadata does not tell the kind of its objects.
  turn.number = 4;
  turn.wakings.front().object.group = "meta.k8s.io";
  turn.wakings.front().object.kind = "PartialObjectMetadata";
  spans.on_turn(turn);

  ASSERT_EQ(given_.size(), 3);
  for (const Span& span : given_) {
    for (const auto& [name, value] : span.attributes) {
      const auto* const text = std::get_if<std::string>(&value);
      if (text != nullptr) {
        EXPECT_EQ(text->find("password"), std::string::npos) << name;
      }
    }
  }
}

TEST_F(TurnSpansTest, HaveTextsThatAreShortAndUtf8WhateverAGuestAsksFor) {
  TurnSpans& spans = spans_of(1);
  const std::string name = "\xff" + std::string(10 * kTextBytesMax, 'n');
  const std::string resource = std::string(10 * kTextBytesMax, 'r') + "\xff";
  recorder::Asked asked = asked_in(3, 1);
  asked.name = name;
  asked.resource = resource;
  asked.path = resource;
  spans.on_asked(asked);
  spans.on_answered(answer_to(1, 200));

  ASSERT_EQ(given_.size(), 1);
  EXPECT_LE(given_[0].name.size(), kTextBytesMax + 20);
  EXPECT_EQ(valid_utf8_prefix(given_[0].name), given_[0].name.size());
  EXPECT_EQ(text_in(given_[0], "hangar.object.name").substr(0, 5), "\\xffn");
  for (const auto& [key, value] : given_[0].attributes) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr) continue;
    EXPECT_LE(text->size(), kTextBytesMax) << key;
    EXPECT_EQ(valid_utf8_prefix(*text), text->size()) << key;
  }
}

TEST_F(TurnSpansTest, AreBoundedThoughNoRequestIsEverAnswered) {
  TurnSpans& spans = spans_of(0);
  const std::size_t count = kHeldSpansMax + 100;
  for (std::size_t turn = 1; turn <= count; ++turn) {
    spans.on_asked(asked_in(turn, turn));
    spans.on_turn(turn_numbered(turn));
  }
  EXPECT_LE(spans.trace_count(), kTracesMax);

  // Newer traces are still handled.
  spans.on_asked(asked_in(count + 1, count + 1));
  spans.on_turn(turn_numbered(count + 1, Turn::Outcome::Failed));
  EXPECT_THAT(names(), ElementsAre("turn of operator"));
}

TEST_F(TurnSpansTest, AreSeenThoughAnotherGuestsTracesNeverEnd) {
  TurnSpans& spans = spans_of(0);
  std::uint64_t id = 0;
  for (std::uint64_t number = 1; number <= kTracesMax; ++number) {
    Turn turn = turn_numbered(number);
    turn.asked = 100;  // The other requests are malformed, and never forwarded.
    for (int at = 0; at < 3; ++at) {
      spans.on_asked(asked_in(number, ++id));
      spans.on_answered(answer_to(id, 200));
    }
    spans.on_turn(turn);
  }

  Turn turn = turn_numbered(1);
  turn.guest = kOther;
  spans.on_asked(by_other(1));
  spans.on_answered(answer_to_other(1, 500));
  spans.on_turn(turn);
  EXPECT_THAT(names(), ElementsAre("update configmaps", "turn of operator"));
}

TEST_F(TurnSpansTest, AreSeenThoughAnotherGuestAsksForALotInOneTurn) {
  TurnSpans& spans = spans_of(0);
  spans.on_asked(by_other(1));
  for (std::uint64_t id = 1; id <= kHeldSpansMax + 10; ++id)
    spans.on_asked(asked_in(3, id));
  spans.on_answered(answer_to_other(1, 500));

  EXPECT_THAT(names(), ElementsAre("update configmaps"));
}

}  // namespace hangar::tracing
