#include "workflows/verdict.h"

#include "base/time.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::workflows {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr WallTime kNow{std::chrono::hours(500'000)};

struct Said {
  std::string status;
  std::string reason;
  std::string message;
};

class VerdictTest : public testing::Test {
 public:
  VerdictTest() {
    ledger_.state = R"({"value":"work"})";
    ledger_.value = "work";
  }

  Said said(std::string_view type, const std::optional<Problem>& problem = std::nullopt) {
    put_conditions(status_, ledger_, problem, 7, kNow);
    for (const json::Value& condition : *json::array_at(status_, {"conditions"})) {
      if (json::string_at(condition, {"type"}) != type) continue;
      EXPECT_EQ(json::int_at(condition, {"observedGeneration"}), 7);
      return {.status = std::string(json::string_at(condition, {"status"})),
              .reason = std::string(json::string_at(condition, {"reason"})),
              .message = std::string(json::string_at(condition, {"message"}))};
    }
    ADD_FAILURE() << "no condition " << type;
    return {};
  }

  static PendingAction action(std::int64_t id, std::string type) {
    return {.id = id, .type = std::move(type), .params = json::Object(), .requested_at = kNow};
  }

  Ledger ledger_;
  json::Value status_ = json::Object();
};

TEST_F(VerdictTest, SaysWhereTheActorsAre) {
  ledger_.actors = {{.id = "worker#1", .value = "making", .status = "", .entered_at = kNow},
                    {.id = "old#2", .value = "made", .status = "done", .entered_at = kNow}};
  EXPECT_EQ(said("Ready").message, "in state work (worker#1: making)");
  EXPECT_EQ(said("Progressing").message, "in state work (worker#1: making), waiting for an event");
  for (int number = 3; number < 9; ++number) {
    ledger_.actors.push_back({.id = "more", .value = "on", .status = "", .entered_at = kNow});
  }
  EXPECT_THAT(said("Ready").message, HasSubstr("more: on, ...)"));
}

TEST_F(VerdictTest, NothingIsReadyBeforeItHasBegun) {
  ledger_ = {};
  EXPECT_EQ(said("Ready").status, "False");
  EXPECT_EQ(said("Ready").reason, "NotStarted");
  EXPECT_EQ(said("Stalled").status, "False");
}

TEST_F(VerdictTest, AWorkflowThatWaitsForAnEventIsProgressing) {
  EXPECT_EQ(said("Ready").reason, "InProgress");
  EXPECT_EQ(said("Progressing").status, "True");
  EXPECT_EQ(said("Progressing").reason, "Waiting");
  EXPECT_EQ(said("Stalled").status, "False");
  EXPECT_EQ(said("Stalled").reason, "NotStalled");
}

TEST_F(VerdictTest, ActionsThatAreCarriedOutAreNamed) {
  ledger_.outbox = {action(3, "CREATE_PVC"), action(4, "EMIT")};
  EXPECT_EQ(said("Progressing").reason, "Acting");
  EXPECT_THAT(said("Progressing").message, HasSubstr("CREATE_PVC#3, EMIT#4"));
}

TEST_F(VerdictTest, WhatHindersAnActionThatWaitsIsTold) {
  ledger_.outbox = {action(3, "WAIT_FOR"), action(4, "RUN_JOB")};
  ledger_.outbox[1].last_error = "the host may not watch jobs.batch";
  EXPECT_EQ(said("Progressing").reason, "Acting");
  EXPECT_THAT(said("Progressing").message,
              HasSubstr("WAIT_FOR#3, RUN_JOB#4; RUN_JOB#4: the host may not watch jobs.batch"));
}

TEST_F(VerdictTest, AnActionThatFailedIsToldWhileItIsTriedAgain) {
  ledger_.outbox = {action(3, "CREATE_PVC")};
  ledger_.outbox[0].attempts = 2;
  ledger_.outbox[0].last_error = "quota exceeded";
  EXPECT_EQ(said("Progressing").reason, "Retrying");
  EXPECT_THAT(said("Progressing").message,
              AllOf(HasSubstr("CREATE_PVC#3"), HasSubstr("2 times"), HasSubstr("quota exceeded")));
}

TEST_F(VerdictTest, AGoodEndIsReadyAndNotProgressing) {
  ledger_.finished_at = kNow;
  EXPECT_EQ(said("Ready").status, "True");
  EXPECT_EQ(said("Progressing").status, "False");
  EXPECT_EQ(said("Progressing").reason, "Finished");
}

TEST_F(VerdictTest, AnEndThatAFailureLedToIsNotReadyAndSaysWhy) {
  ledger_.finished_at = kNow;
  ledger_.has_failed = true;
  ledger_.failure = "quota exceeded";
  EXPECT_EQ(said("Ready").status, "False");
  EXPECT_EQ(said("Ready").reason, "Failed");
  EXPECT_THAT(said("Ready").message, HasSubstr("quota exceeded"));
  EXPECT_EQ(said("Stalled").status, "False") << "it is over: nothing is to be repaired";
}

TEST_F(VerdictTest, AnUnknownActionStallsAndSaysHowToGiveItUp) {
  ledger_.outbox = {action(3, "CREATE_PVC"), action(4, "MAKE_COFFEE")};
  EXPECT_EQ(said("Stalled").status, "True");
  EXPECT_EQ(said("Stalled").reason, "UnknownAction");
  EXPECT_THAT(said("Stalled").message,
              AllOf(HasSubstr("MAKE_COFFEE#4"), HasSubstr("RUN_JOB"), HasSubstr("skip-action=4")));
  EXPECT_EQ(said("Progressing").status, "False");
}

TEST_F(VerdictTest, AFailureThatTheStateDoesNotKnowStalls) {
  ledger_.failure = "quota exceeded";
  EXPECT_EQ(said("Stalled").reason, "FailureIgnored");
  EXPECT_THAT(said("Stalled").message,
              AllOf(HasSubstr("work"), HasSubstr("quota exceeded"), HasSubstr("migrate")));
}

TEST_F(VerdictTest, AnIgnoredSignalIsNamedWithoutStalling) {
  ledger_.ignored = "APROVE";
  EXPECT_EQ(said("Stalled").status, "False");
  EXPECT_THAT(said("Progressing").message,
              AllOf(HasSubstr("APROVE"), HasSubstr("hangar workflow show")));
}

TEST_F(VerdictTest, AProblemGoesBeforeWhatTheLedgerSays) {
  ledger_.failure = "quota exceeded";
  const Problem problem{.reason = "MachineFailed", .message = "it threw: mend it"};
  EXPECT_EQ(said("Stalled", problem).reason, "MachineFailed");
  EXPECT_EQ(said("Progressing", problem).message, "it threw: mend it");
}

TEST_F(VerdictTest, WhatIsOnlyWaitedForDoesNotStall) {
  const Problem problem{
      .reason = "WaitingForModule", .message = "make the ConfigMap", .is_waiting = true};
  EXPECT_EQ(said("Stalled", problem).status, "False");
  EXPECT_EQ(said("Progressing", problem).reason, "WaitingForModule");
}

TEST_F(VerdictTest, ATimeOfTransitionIsThatOfTheChange) {
  put_conditions(status_, ledger_, std::nullopt, 1, kNow);
  const json::Value before = status_;
  put_conditions(status_, ledger_, std::nullopt, 1, kNow + std::chrono::hours(1));
  EXPECT_TRUE(json::equal(before, status_)) << "nothing has changed, nothing is to be written";
}

}  // namespace
}  // namespace hangar::workflows
