#include "nodes/announcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace hangar::nodes {
namespace {

using namespace std::chrono_literals;
using reconcile::EventType;
using testing::HasSubstr;

const Policy kPolicy = {.version = "v2", .retry_min = 2min};

NodeState in(Phase phase, Action action = Action::Install) {
  return {.phase = phase, .action = action, .attempt = 1};
}

TEST(Announcement, OfAProvisionedNodeNamesWhatProvisionedIt) {
  NodeState after = in(Phase::Provisioned);
  after.version = "registry.example.com/installer:v2";
  const auto told = announcement_of(in(Phase::Verifying), after, kPolicy);

  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->action, Action::Install);
  EXPECT_EQ(told->end, AttemptEnd::Succeeded);
  EXPECT_EQ(told->text.type, EventType::Normal);
  EXPECT_EQ(told->text.reason, "Provisioned");
  EXPECT_THAT(told->text.message, HasSubstr("registry.example.com/installer:v2"));
}

TEST(Announcement, OfAnUninstalledNodeIsASuccessOfUninstall) {
  const auto told =
      announcement_of(in(Phase::Uninstalling, Action::Uninstall), in(Phase::None), kPolicy);

  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->action, Action::Uninstall);
  EXPECT_EQ(told->end, AttemptEnd::Succeeded);
  EXPECT_EQ(told->text.type, EventType::Normal);
  EXPECT_EQ(told->text.reason, "Unprovisioned");
}

TEST(Announcement, OfANodeThatIsOnlyForgottenWarnsThatTheRuntimeStays) {
  for (const Phase before :
       {Phase::Installing, Phase::Verifying, Phase::Provisioned, Phase::Failed}) {
    const auto told = announcement_of(in(before), in(Phase::None), kPolicy);

    ASSERT_TRUE(told.has_value()) << name_of(before);
    EXPECT_EQ(told->action, Action::Uninstall) << name_of(before);
    EXPECT_EQ(told->text.type, EventType::Warning) << name_of(before);
    EXPECT_EQ(told->text.reason, "UninstallUnsupported") << name_of(before);
    EXPECT_THAT(told->text.message, HasSubstr("the runtime stays on the node")) << name_of(before);
  }
}

TEST(Announcement, OfAFailureIsAboutTheActionThatFailedAndSaysWhyAndWhenItIsRetried) {
  const std::array cases = {std::pair(Action::Install, "InstallFailed"),
                            std::pair(Action::Uninstall, "UninstallFailed")};
  for (const auto& [action, reason] : cases) {
    NodeState after = in(Phase::Failed, action);
    after.failures = 2;
    after.last_error = "exit code 1: no containerd";
    // The earlier state names the earlier action, not the one that failed.
    const auto told = announcement_of(in(Phase::Provisioned), after, kPolicy);

    ASSERT_TRUE(told.has_value()) << reason;
    EXPECT_EQ(told->action, action) << reason;
    EXPECT_EQ(told->end, AttemptEnd::Failed) << reason;
    EXPECT_EQ(told->text.type, EventType::Warning) << reason;
    EXPECT_EQ(told->text.reason, reason);
    EXPECT_EQ(
        told->text.message,
        "exit code 1: no containerd; hangar retries in 4m and starts no other node until this "
        "one succeeds or is skipped");
  }
}

TEST(Announcement, TellsNothingOfAChangeThatEndsNoAttempt) {
  const std::array quiet = {
      std::pair(Phase::None, Phase::Installing),
      std::pair(Phase::Installing, Phase::Verifying),
      std::pair(Phase::Provisioned, Phase::Installing),
      std::pair(Phase::Provisioned, Phase::Uninstalling),
      // Labels that a user removed are written again.
      std::pair(Phase::Provisioned, Phase::Provisioned),
      std::pair(Phase::Failed, Phase::Installing),
      // Only the text of the failure changes.
      std::pair(Phase::Failed, Phase::Failed),
      std::pair(Phase::None, Phase::None),
  };
  for (const auto& [before, after] : quiet) {
    EXPECT_FALSE(announcement_of(in(before), in(after), kPolicy).has_value())
        << name_of(before) << " -> " << name_of(after);
  }
}

TEST(Announcement, CountsEndsByTheirPublishedNames) {
  EXPECT_EQ(name_of(AttemptEnd::Succeeded), "succeeded");
  EXPECT_EQ(name_of(AttemptEnd::Failed), "failed");
}

}  // namespace
}  // namespace hangar::nodes
