#include "workflows/ledger.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hangar::workflows {
namespace {

PendingAction action(std::int64_t id, std::string actor = {}) {
  return {.id = id, .type = "CREATE_PVC", .params = json::Object(), .actor = std::move(actor)};
}

Ledger with(std::vector<PendingAction> outbox) {
  Ledger ledger;
  ledger.state = R"({"value":"idle"})";
  ledger.run = "r1";
  ledger.outbox = std::move(outbox);
  return ledger;
}

// The answer of an API server whose schema has all fields.
json::Value answer_to(const Ledger& ledger) {
  json::Value status = json::Object();
  put_ledger(status, ledger);
  return json::Object{{"status", std::move(status)}};
}

TEST(IsKeptIn, AnAnswerWithAllThatWasWritten) {
  const Ledger ledger = with({action(1), action(2, "worker#1")});

  EXPECT_TRUE(is_kept_in(answer_to(ledger), ledger));
}

TEST(IsKeptIn, NotAnAnswerWithoutTheRun) {
  const Ledger ledger = with({});
  json::Value answer = answer_to(ledger);
  json::erase_at(answer, {"status", "run"});

  EXPECT_FALSE(is_kept_in(answer, ledger));
}

TEST(IsKeptIn, NotTheAnswerToAnotherRun) {
  Ledger other = with({});
  other.run = "r0";

  EXPECT_FALSE(is_kept_in(answer_to(other), with({})));
}

// Without the actor, the result of its action would go to another one.
TEST(IsKeptIn, NotAnAnswerWithoutTheActorOfAnAction) {
  const Ledger ledger = with({action(1), action(2, "worker#1")});
  json::Value answer = answer_to(ledger);
  for (json::Value& kept : answer.at("status").at("outbox").as_array())
    kept.as_object().erase("actor");

  EXPECT_FALSE(is_kept_in(answer, ledger));
}

TEST(IsKeptIn, NotAnAnswerWithTheActorAtAnotherAction) {
  const Ledger ledger = with({action(1), action(2, "worker#1")});
  const Ledger swapped = with({action(1, "worker#1"), action(2)});

  EXPECT_FALSE(is_kept_in(answer_to(swapped), ledger));
}

TEST(IsKeptIn, NotAnAnswerWithoutTheOutbox) {
  const Ledger ledger = with({action(2, "worker#1")});
  json::Value answer = answer_to(ledger);
  json::erase_at(answer, {"status", "outbox"});

  EXPECT_FALSE(is_kept_in(answer, ledger));
}

TEST(Ledger, FindsAnActionByItsIdOnly) {
  Ledger ledger = with({action(1), action(7)});

  ASSERT_NE(ledger.find_action(7), nullptr);
  EXPECT_EQ(ledger.find_action(7)->id, 7);
  EXPECT_EQ(ledger.find_action(2), nullptr);
}

TEST(Ledger, IsAtRestOnceItsMachineHasFinishedAndNothingIsLeftToDo) {
  EXPECT_FALSE(with({}).is_at_rest());
  Ledger finished = with({action(1)});
  finished.finished_at = WallTime();
  EXPECT_FALSE(finished.is_at_rest()) << "an action is left";
  finished.outbox.clear();
  EXPECT_TRUE(finished.is_at_rest());
}

TEST(ReadableValue, ComesBackAsTheValueOfTheMachine) {
  for (const char* const value : {R"("idle")", R"({"a":"b"})", R"({"a":{"b":"c"},"d":"e"})"})
    EXPECT_EQ(value_json(readable_value(value)), value);
  EXPECT_EQ(readable_value(R"("idle")"), "idle");
  EXPECT_EQ(value_json(""), "");
}

// Ids of actions are small numbers: a timer is never taken for one.
TEST(NumberOfTimer, IsAboveAllActionsAndTheSameForTheSameTimer) {
  EXPECT_GT(number_of_timer("xstate.after.1000.m"),
            static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()));
  EXPECT_EQ(number_of_timer("a"), number_of_timer("a"));
  EXPECT_NE(number_of_timer("a"), number_of_timer("b"));
}

}  // namespace
}  // namespace hangar::workflows
