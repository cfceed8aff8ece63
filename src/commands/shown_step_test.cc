#include "commands/shown_step.h"

#include "base/time.h"
#include "commands/streams.h"
#include "io/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {
namespace {

using testing::ElementsAre;

TEST(StepText, HasTheTimeOfWhatTakesLong) {
  EXPECT_EQ(step_text("compiling", std::chrono::milliseconds(1999)), "compiling");
  EXPECT_EQ(step_text("compiling", std::chrono::milliseconds(2000)), "compiling (2 s)");
  EXPECT_EQ(step_text("fetching, 3.1 of 16.0 MiB", std::chrono::seconds(75)),
            "fetching, 3.1 of 16.0 MiB (75 s)");
}

class ShownStepTest : public testing::Test {
 protected:
  Say remember() {
    return [this](std::string_view text) { shown_.emplace_back(text); };
  }
  void until_shown(std::size_t count) {
    loop_.run_until([this, count] { return shown_.size() >= count; });
  }

  static constexpr Duration kAtOnce{0};
  io::Loop loop_;
  std::vector<std::string> shown_;
};

TEST_F(ShownStepTest, ShowsEachStepAndFreesTheLineAtTheEnd) {
  {
    ShownStep step(loop_, remember(), kAtOnce, std::chrono::hours(1));
    step.is("fetching");
    until_shown(1);
    step.is("compiling");
  }

  EXPECT_THAT(shown_, ElementsAre("fetching", "compiling", ""));
}

TEST_F(ShownStepTest, ShowsAStepAgainWhileItLasts) {
  ShownStep step(loop_, remember(), kAtOnce, std::chrono::milliseconds(1));
  step.is("compiling");

  until_shown(3);

  EXPECT_THAT(shown_, ElementsAre("compiling", "compiling", "compiling"));
}

TEST_F(ShownStepTest, ShowsNothingOfWhatIsDoneQuickly) {
  {
    ShownStep step(loop_, remember(), std::chrono::hours(1));
    step.is("fetching");
    step.is("compiling");
  }

  EXPECT_THAT(shown_, ElementsAre());
}

TEST_F(ShownStepTest, NeedsNobodyWhoLooks) {
  ShownStep step(loop_, nullptr);
  step.is("compiling");
}

}  // namespace
}  // namespace hangar::commands
