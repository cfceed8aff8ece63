#include "airways/tracker.h"

#include "airways/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const ResourceRef kWeb = {{"examples.com", "App"}, "default", "web"};
const ResourceRef kApi = {{"examples.com", "App"}, "default", "api"};
const ResourceRef kChild = {{"batch", "Job"}, "default", "one"};
const ResourceRef kOtherChild = {{"batch", "Job"}, "default", "two"};
const ResourceRef kSecret = {{"", "Secret"}, "default", "db"};

struct Looked {
  ResourceRef ref;
  LookupOutcome outcome;
};

// A run from its beginning to its success.
void run(Tracker& tracker, const ResourceRef& instance, Mode mode, std::vector<Looked> lookups,
         std::vector<ResourceRef> released = {}) {
  tracker.begin(instance, mode);
  for (const Looked& looked : lookups)
    tracker.looked_up(instance, looked.ref, looked.outcome);
  tracker.releasing(instance, released);
  tracker.end(instance, Tracker::End::Succeeded);
}

// Which changes of `ref` concern an instance: "AMD".
std::string changes_of(const Tracker& tracker, const ResourceRef& ref) {
  std::string text;
  if (!tracker.concerned(ref, Change::Added).empty()) text += 'A';
  if (!tracker.concerned(ref, Change::Modified).empty()) text += 'M';
  if (!tracker.concerned(ref, Change::Deleted).empty()) text += 'D';
  return text;
}

TEST(Tracker, KnowsWhichChangesConcernWhichMode) {
  struct Case {
    std::string_view name;
    Mode mode;
    std::vector<Looked> lookups;
    std::vector<ResourceRef> released;
    const ResourceRef& ref;
    std::string_view changes;
  };
  const std::vector<Looked> none;
  const Case cases[] = {
      {"standard: child", Mode::Standard, none, {kChild}, kChild, ""},
      {"static: child", Mode::Static, none, {kChild}, kChild, ""},
      {"dynamic: child", Mode::Dynamic, none, {kChild}, kChild, "MD"},
      {"subscription: child", Mode::Subscription, none, {kChild}, kChild, ""},
      {"standard: own child looked up",
       Mode::Standard,
       {{kChild, LookupOutcome::Owned}},
       {kChild},
       kChild,
       ""},
      {"subscription: own child looked up",
       Mode::Subscription,
       {{kChild, LookupOutcome::Owned}},
       {kChild},
       kChild,
       "MD"},
      {"subscription: child looked up in vain, then made",
       Mode::Subscription,
       {{kChild, LookupOutcome::Candidate}},
       {kChild},
       kChild,
       "MD"},
      {"subscription: another child than the one looked up",
       Mode::Subscription,
       {{kChild, LookupOutcome::Owned}},
       {kChild, kOtherChild},
       kOtherChild,
       ""},
      {"dynamic: looked up in vain, not allowed, not made",
       Mode::Dynamic,
       {{kSecret, LookupOutcome::Candidate}},
       {},
       kSecret,
       ""},
      {"dynamic: external",
       Mode::Dynamic,
       {{kSecret, LookupOutcome::External}},
       {},
       kSecret,
       "AMD"},
      {"dynamic: external that is not there yet",
       Mode::Dynamic,
       {{kSecret, LookupOutcome::Absent}},
       {},
       kSecret,
       "AMD"},
      {"subscription: external that is not there yet",
       Mode::Subscription,
       {{kSecret, LookupOutcome::Absent}},
       {},
       kSecret,
       "AMD"},
      {"standard: external", Mode::Standard, {{kSecret, LookupOutcome::External}}, {}, kSecret, ""},
      {"static: external", Mode::Static, {{kSecret, LookupOutcome::External}}, {}, kSecret, ""},
      {"dynamic: never heard of", Mode::Dynamic, none, {kChild}, kSecret, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Tracker tracker;
    run(tracker, kWeb, c.mode, c.lookups, c.released);
    EXPECT_EQ(changes_of(tracker, c.ref), c.changes);
  }
}

TEST(Tracker, KnowsWhetherARunHasAskedForAnything) {
  Tracker tracker;
  tracker.begin(kWeb, Mode::Standard);
  EXPECT_FALSE(tracker.has_asked(kWeb));

  tracker.asked(kWeb);

  EXPECT_TRUE(tracker.has_asked(kWeb));
  EXPECT_THAT(tracker.tracked(kWeb), IsEmpty());
  EXPECT_FALSE(tracker.has_asked(kApi));
  tracker.begin(kWeb, Mode::Standard);
  EXPECT_FALSE(tracker.has_asked(kWeb));
}

TEST(Tracker, CountsALookupFromTheMomentItIsMade) {
  Tracker tracker;
  tracker.begin(kWeb, Mode::Dynamic);
  tracker.looked_up(kWeb, kSecret, LookupOutcome::Absent);

  EXPECT_THAT(tracker.concerned(kSecret, Change::Added), ElementsAre(kWeb));
}

TEST(Tracker, CountsChildrenFromTheMomentTheyAreReleased) {
  Tracker tracker;
  tracker.begin(kWeb, Mode::Dynamic);
  tracker.releasing(kWeb, std::vector{kChild});

  EXPECT_THAT(tracker.concerned(kChild, Change::Deleted), ElementsAre(kWeb));
}

TEST(Tracker, ForgetsWhatAGoodRunNoLongerRefersTo) {
  Tracker tracker;
  run(tracker, kWeb, Mode::Dynamic, {{kSecret, LookupOutcome::External}}, {kChild});

  run(tracker, kWeb, Mode::Dynamic, {}, {kOtherChild});

  EXPECT_EQ(changes_of(tracker, kSecret), "");
  EXPECT_EQ(changes_of(tracker, kChild), "");
  EXPECT_EQ(changes_of(tracker, kOtherChild), "MD");
  EXPECT_THAT(tracker.tracked(kWeb), ElementsAre(kOtherChild));
}

TEST(Tracker, KeepsEverythingWhileARunGoesOnOrHasFailed) {
  Tracker tracker;
  run(tracker, kWeb, Mode::Dynamic, {{kSecret, LookupOutcome::External}}, {kChild});

  tracker.begin(kWeb, Mode::Dynamic);
  EXPECT_EQ(changes_of(tracker, kSecret), "AMD");
  tracker.releasing(kWeb, std::vector{kOtherChild});
  tracker.end(kWeb, Tracker::End::Failed);

  EXPECT_EQ(changes_of(tracker, kSecret), "AMD");
  EXPECT_EQ(changes_of(tracker, kChild), "MD");
  EXPECT_EQ(changes_of(tracker, kOtherChild), "MD");

  run(tracker, kWeb, Mode::Dynamic, {}, {kChild});
  EXPECT_THAT(tracker.tracked(kWeb), ElementsAre(kChild));
}

TEST(Tracker, KeepsWhatARunSawThatNeverEnded) {
  Tracker tracker;
  tracker.begin(kWeb, Mode::Dynamic);
  tracker.looked_up(kWeb, kSecret, LookupOutcome::Absent);

  tracker.begin(kWeb, Mode::Dynamic);

  EXPECT_EQ(changes_of(tracker, kSecret), "AMD");
}

TEST(Tracker, DoesNotGrowWithEveryFailure) {
  const auto secret = [](std::size_t index) {
    return ResourceRef{{"", "Secret"}, "default", "s-" + std::to_string(index)};
  };
  constexpr std::size_t kEach = 100;
  Tracker tracker;
  for (std::size_t run = 0; run < 50; ++run) {
    tracker.begin(kWeb, Mode::Dynamic);
    for (std::size_t index = 0; index < kEach; ++index) {
      tracker.looked_up(kWeb, secret(kEach * run + index), LookupOutcome::Absent);
    }
    tracker.end(kWeb, Tracker::End::Failed);

    EXPECT_LE(tracker.tracked(kWeb).size(), limits::kTrackedLookupsMax + kEach);
    EXPECT_EQ(changes_of(tracker, secret(kEach * run)), "AMD") << "the last run always counts";
  }
  EXPECT_EQ(changes_of(tracker, secret(0)), "") << "forgotten in the index, too";
}

TEST(Tracker, KeepsASubscriptionWhoseChildIsMadeByALaterRun) {
  Tracker tracker;
  tracker.begin(kWeb, Mode::Subscription);
  tracker.looked_up(kWeb, kChild, LookupOutcome::Candidate);
  tracker.end(kWeb, Tracker::End::Failed);

  EXPECT_EQ(changes_of(tracker, kChild), "");
  run(tracker, kWeb, Mode::Subscription, {{kChild, LookupOutcome::Candidate}}, {kChild});
  EXPECT_EQ(changes_of(tracker, kChild), "MD");
}

TEST(Tracker, FollowsAChangeOfMode) {
  Tracker tracker;
  run(tracker, kWeb, Mode::Dynamic, {}, {kChild});

  run(tracker, kWeb, Mode::Standard, {}, {kChild});

  EXPECT_EQ(changes_of(tracker, kChild), "");
}

TEST(Tracker, TellsEveryInstanceInOrder) {
  Tracker tracker;
  run(tracker, kWeb, Mode::Dynamic, {{kSecret, LookupOutcome::External}});
  run(tracker, kApi, Mode::Subscription, {{kSecret, LookupOutcome::Absent}});

  EXPECT_THAT(tracker.concerned(kSecret, Change::Modified), ElementsAre(kApi, kWeb));
}

TEST(Tracker, ForgetsAnInstanceAndIgnoresWhatItsRunStillSays) {
  Tracker tracker;
  run(tracker, kWeb, Mode::Dynamic, {{kSecret, LookupOutcome::External}}, {kChild});
  run(tracker, kApi, Mode::Dynamic, {{kSecret, LookupOutcome::External}});
  tracker.begin(kWeb, Mode::Dynamic);

  tracker.forget(kWeb);
  tracker.looked_up(kWeb, kChild, LookupOutcome::Owned);
  tracker.releasing(kWeb, std::vector{kChild});
  tracker.end(kWeb, Tracker::End::Succeeded);
  tracker.forget(kWeb);

  EXPECT_EQ(changes_of(tracker, kChild), "");
  EXPECT_THAT(tracker.concerned(kSecret, Change::Added), ElementsAre(kApi));
  EXPECT_THAT(tracker.tracked(kWeb), IsEmpty());
  EXPECT_EQ(tracker.instance_count(), 1U);
}

TEST(Tracker, TracksNothingThatWasLookedForInVainAndNotReleased) {
  Tracker tracker;
  run(tracker, kWeb, Mode::Subscription,
      {{kSecret, LookupOutcome::Candidate}, {kChild, LookupOutcome::Candidate}}, {kChild});

  EXPECT_THAT(tracker.tracked(kWeb), UnorderedElementsAre(kChild));
}

// The index for dispatch agrees with what every instance tracks.
TEST(Tracker, IndexAgreesWithItsEntriesAfterAnyHistory) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto pick = [&](unsigned count) {
    return std::uniform_int_distribution<unsigned>(0, count - 1)(random);
  };
  const auto ref = [](unsigned i) {
    return ResourceRef{{"", "ConfigMap"}, "d", "c" + std::to_string(i)};
  };
  const auto instance = [](unsigned i) {
    return ResourceRef{{"examples.com", "App"}, "d", "i" + std::to_string(i)};
  };
  constexpr unsigned kRefs = 6;
  constexpr unsigned kInstances = 4;
  Tracker tracker;

  for (int step = 0; step < 3000; ++step) {
    const ResourceRef one = instance(pick(kInstances));
    switch (pick(6)) {
      case 0:
        tracker.begin(one, Mode::Dynamic);
        break;
      case 1:
      case 2:
        tracker.looked_up(one, ref(pick(kRefs)), static_cast<LookupOutcome>(pick(4)));
        break;
      case 3:
        tracker.releasing(one, std::vector{ref(pick(kRefs)), ref(pick(kRefs))});
        break;
      case 4:
        tracker.end(one, pick(2) == 0 ? Tracker::End::Succeeded : Tracker::End::Failed);
        break;
      default:
        if (pick(8) == 0) tracker.forget(one);
    }
    for (unsigned r = 0; r < kRefs; ++r) {
      for (const ResourceRef& concerned : tracker.concerned(ref(r), Change::Modified)) {
        EXPECT_THAT(tracker.tracked(concerned), testing::Contains(ref(r)));
      }
    }
  }
  for (unsigned i = 0; i < kInstances; ++i) {
    // A successful run that refers to one resource leaves exactly that, whatever came before.
    run(tracker, instance(i), Mode::Dynamic, {}, {ref(0)});
  }
  EXPECT_EQ(tracker.concerned(ref(0), Change::Modified).size(), kInstances);
  for (unsigned r = 1; r < kRefs; ++r)
    EXPECT_EQ(changes_of(tracker, ref(r)), "");
}

}  // namespace
}  // namespace hangar::airways
