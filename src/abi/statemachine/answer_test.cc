#include "abi/statemachine/answer.h"

#include "abi/statemachine/limits.h"
#include "base/result.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace hangar::abi::statemachine {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// An answer that cancels `count` timers.
std::string cancelling(std::size_t count) {
  std::string ids;
  for (std::size_t index = 0; index < count; ++index)
    ids += fmt::format("{}\"t{}\"", index == 0 ? "" : ",", index);
  return fmt::format(R"({{"newState":{{}},"handled":true,"timersCancelled":[{}]}})", ids);
}

TEST(ReadAnswer, TakesSoManyTimersInAStepAndNoMore) {
  const Result<Step> most = read_answer(cancelling(limits::kMachineStepTimersMax), "{}");
  ASSERT_TRUE(most) << most.error().message();
  EXPECT_THAT(most->timers_cancelled, SizeIs(limits::kMachineStepTimersMax));

  const Result<Step> more = read_answer(cancelling(limits::kMachineStepTimersMax + 1), "{}");

  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(more.error().message(), HasSubstr("more than 1024 timers in one step"));
}

// A State of XState 4 with one state node that was active before and has its own action.
std::string answer_of_state4(const std::string& executed) {
  return fmt::format(
      R"({{"newState":{{"value":"on","_event":{{}},"changed":true,"meta":{{"m.on":{{"actions":["GREET"]}}}},"actions":[{}]}},"actions":["GREET"]}})",
      executed);
}

TEST(ReadAnswer, TellsANodeThatWasEnteredAgainByItsDelays) {
  const std::string before = R"({"value":"on","_event":{},"meta":{"m.on":{"actions":["GREET"]}}})";

  const Result<Step> stayed = read_answer(answer_of_state4(""), before);
  ASSERT_TRUE(stayed) << stayed.error().message();
  EXPECT_THAT(stayed->actions, SizeIs(0)) << "it was carried out when the node was entered";

  const Result<Step> entered = read_answer(
      answer_of_state4(
          R"({"type":"xstate.send","id":"xstate.after(100)#m.on","delay":100,"event":{"type":"xstate.after(100)#m.on"}})"),
      before);
  ASSERT_TRUE(entered) << entered.error().message();
  EXPECT_THAT(entered->actions, SizeIs(1));
}

}  // namespace
}  // namespace hangar::abi::statemachine
