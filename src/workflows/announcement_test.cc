#include "workflows/announcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace hangar::workflows {
namespace {

using reconcile::EventType;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Announcement, OfATransitionSaysFromWhereAndOnWhat) {
  const auto events =
      announcements_of({{.to = "idle"}, {.from = "idle", .to = "making", .event = "PROVISION"}}, {},
                       "making", std::nullopt);

  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].message, "began in idle");
  EXPECT_EQ(events[1].message, "idle -> making on PROVISION");
  for (const auto& event : events) {
    EXPECT_EQ(event.reason, "Transition");
    EXPECT_EQ(event.type, EventType::Normal);
  }
}

TEST(Announcement, OfAnIgnoredSignalNamesTheStateThatDoesNotKnowIt) {
  const auto events = announcements_of({}, {"APPROVE"}, "making", std::nullopt);

  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].type, EventType::Warning);
  EXPECT_EQ(events[0].reason, "EventIgnored");
  EXPECT_EQ(events[0].message, "APPROVE means nothing in state making");
}

TEST(Announcement, OfAProblemComesLastUnlessItPassesByItself) {
  const Problem stuck{.reason = "MachineFailed", .message = "it failed"};
  const auto events = announcements_of({{.to = "idle"}}, {}, "idle", stuck);

  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[1].type, EventType::Warning);
  EXPECT_EQ(events[1].reason, "MachineFailed");
  EXPECT_EQ(events[1].message, "it failed");

  const Problem waiting{.reason = "LoadingModule", .message = "soon", .is_waiting = true};
  EXPECT_THAT(announcements_of({}, {}, "idle", waiting), IsEmpty());
}

}  // namespace
}  // namespace hangar::workflows
