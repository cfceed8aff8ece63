#include "io/part.h"

#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hangar::io {
namespace {

using testing::ElementsAre;

class PartTest : public ::testing::Test {
 protected:
  // As another thread sees it.
  void note() {
    std::thread([this] {
      const std::optional<Loop::RunningTurn> turn = loop_.running_turn();
      seen_.push_back(turn ? turn->activity : "no turn");
    }).join();
  }
  Task<void> apply() {
    const Part part(loop_, "its Secrets");
    note();
    co_return;
  }
  Task<void> work() {
    const Loop::Activity activity(loop_, "airway default/web", Tenant::of_namespace("default"));
    {
      Part part(loop_, "plan");
      note();
      const Result<> waited = co_await loop_.sleep(std::chrono::milliseconds(1), std::stop_token());
      EXPECT_TRUE(waited);
      note();
      part.next("apply");
      co_await apply();
      note();
      EXPECT_EQ(loop_.activity()->payer, Tenant::of_namespace("default"));
    }
    note();
    is_over_ = true;
  }

  Loop loop_;
  std::vector<std::string> seen_;
  bool is_over_ = false;
};

TEST_F(PartTest, ShowsWhatATaskIsAtBesideTheObject) {
  loop_.post([this] { loop_.spawn(work()); });
  loop_.run_until([this] { return is_over_; });

  EXPECT_THAT(seen_, ElementsAre("airway default/web: plan", "airway default/web: plan",
                                 "airway default/web: apply: its Secrets",
                                 "airway default/web: apply", "airway default/web"));
}

TEST_F(PartTest, IsAllThatIsKnownWithoutAnActivity) {
  loop_.post([this] {
    const Part part(loop_, "the Lease");
    note();
    EXPECT_TRUE(loop_.activity()->payer.is_host());
  });
  loop_.post([this] {
    EXPECT_EQ(loop_.activity(), nullptr);
    is_over_ = true;
  });
  loop_.run_until([this] { return is_over_; });

  EXPECT_THAT(seen_, ElementsAre("the Lease"));
}

TEST_F(PartTest, AReportOfAWholeTurnNamesTheLongest) {
  std::vector<std::string> reported;
  loop_.observe({.on_turn = [&](Duration /*took*/, std::string_view activity) {
    reported.emplace_back(activity);
  }});
  const auto work_for = [](Duration duration) {
    const Instant end = Loop::now() + duration;
    while (Loop::now() < end) {
    }
  };
  loop_.post([&] {
    const Loop::Activity activity(loop_, "airway default/web");
    Part part(loop_, "plan");
    work_for(std::chrono::milliseconds(50));
    part.next("apply");
    is_over_ = true;
  });
  loop_.run_until([this] { return is_over_; });

  EXPECT_THAT(reported, ElementsAre("airway default/web: plan"));
}

TEST_F(PartTest, ACallbackResumesAnActivity) {
  const auto watch = std::make_shared<const Loop::Doing>(Loop::Doing{.name = "watch of pods"});
  loop_.post([&] {
    const Loop::Activity activity(loop_, "airway default/web");
    {
      const Resumed resumed(loop_, watch);
      note();
    }
    note();
    is_over_ = true;
  });
  loop_.run_until([this] { return is_over_; });

  EXPECT_THAT(seen_, ElementsAre("watch of pods", "airway default/web"));
}

}  // namespace
}  // namespace hangar::io
