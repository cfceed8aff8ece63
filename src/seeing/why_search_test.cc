#include "seeing/why_search.h"

#include "base/time.h"
#include "recorder/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {
namespace {

using namespace std::chrono_literals;
using recorder::Cause;
using recorder::ObjectVersion;
using recorder::Request;
using recorder::Story;
using recorder::Verb;
using recorder::Waking;
using testing::IsEmpty;
using testing::SizeIs;

const WhyTarget kTarget{.group = "apps",
                        .kind = "Deployment",
                        .plural = "deployments",
                        .namespace_ = "shop",
                        .name = "front"};

ObjectVersion front(std::uint64_t version) {
  return {.group = "apps",
          .kind = "Deployment",
          .namespace_ = "shop",
          .name = "front",
          .version = version};
}

ObjectVersion source(std::uint64_t version) {
  return {.kind = "ConfigMap", .namespace_ = "shop", .name = "source", .version = version};
}

Request write(std::uint64_t id, const ObjectVersion& object, Verb verb = Verb::Update) {
  return {.id = id,
          .verb = verb,
          .resource = object.kind == "ConfigMap" ? "configmaps" : "deployments",
          .took = 1ms,
          .status = 200,
          .object = object};
}

Story story(const std::string& name, std::uint64_t number, std::vector<Cause> causes,
            std::vector<Request> requests) {
  return {.namespace_ = "shop",
          .name = name,
          .instance = 1,
          .number = number,
          .causes = std::move(causes),
          .requests = std::move(requests)};
}

Cause changed(const ObjectVersion& object) {
  return {.what = Waking::Cause::Modified, .object = object};
}

TEST(WhySearch, LeadsOverAnAnswerToTheEventAndToWhoWroteThat) {
  WhySearch search(kTarget, {});
  search.add(story("web", 3, {{.what = Waking::Cause::Answer, .id = 8}}, {write(9, front(50))}));
  search.add(story("other", 7, {}, {}));
  search.add(story("web", 2, {changed(source(40))},
                   {{.id = 8, .verb = Verb::Get, .resource = "deployments"}}));
  search.add(story("settings", 5, {}, {write(3, source(40))}));

  const WhyFindings& found = search.findings();
  ASSERT_THAT(found.writes, SizeIs(1));
  ASSERT_THAT(found.steps, SizeIs(3));
  const WhyStep& wrote = found.steps[found.writes[0].step];
  EXPECT_EQ(wrote.story.number, 3U);
  ASSERT_TRUE(wrote.links[0].step);
  const WhyStep& asked = found.steps[*wrote.links[0].step];
  EXPECT_EQ(asked.story.number, 2U);
  EXPECT_EQ(wrote.links[0].request, 0U);
  ASSERT_TRUE(asked.links[0].step);
  EXPECT_EQ(found.steps[*asked.links[0].step].story.name, "settings");
  EXPECT_EQ(found.steps[*asked.links[0].step].depth, 2U);
}

TEST(WhySearch, TakesTheWriteThatMadeAVersionAndNotOneThatChangedNothing) {
  WhySearch search(kTarget, {});
  search.add(story("web", 3, {changed(source(40))}, {write(9, front(50))}));
  search.add(story("settings", 6, {}, {write(4, source(40))}));
  search.add(story("settings", 5, {}, {write(3, source(40))}));

  const WhyFindings& found = search.findings();
  EXPECT_EQ(found.steps[*found.steps[0].links[0].step].story.number, 5U);
}

TEST(WhySearch, IsNotTakenInByOthersOfTheSameName) {
  WhySearch search(kTarget, {});
  Request other = write(1, front(1));
  other.object.namespace_ = "elsewhere";
  Request refused = write(2, front(0));
  refused.status = 409;
  Request read = write(3, front(1), Verb::Get);
  Request dry = write(4, front(1));
  dry.is_dry_run = true;
  search.add(story("web", 1, {}, {other, refused, read, dry}));
  EXPECT_THAT(search.findings().writes, IsEmpty());
}

TEST(WhySearch, CountsADeletionOfTheWholeCollection) {
  WhySearch search(kTarget, {});
  Request all{.id = 1,
              .verb = Verb::DeleteCollection,
              .resource = "deployments",
              .took = 1ms,
              .status = 200,
              .object = {.group = "apps", .namespace_ = "shop"}};
  search.add(story("web", 1, {}, {all}));
  EXPECT_THAT(search.findings().writes, SizeIs(1));
}

// How a deletion of `source` at version 60, an event of web's turn 9, was found to be caused: the
// number of the other turn; zero: not found.
class WhyDeleted : public testing::Test {
 protected:
  // Some time on a day; hour 48 has the deletion.
  static WallTime hour(double number) {
    return WallTime(std::chrono::hours(500000)) +
           std::chrono::duration_cast<WallTime::duration>(
               std::chrono::duration<double, std::ratio<3600>>(number));
  }
  WhyDeleted() {
    Story woken = story("web", 9, {{.what = Waking::Cause::Deleted, .object = source(60)}},
                        {write(9, front(70))});
    woken.arrived = hour(48);
    search_.add(woken);
  }
  void add(std::uint64_t number, WallTime at, std::vector<Cause> causes,
           std::vector<Request> requests = {}) {
    Story one = story("other", number, std::move(causes), std::move(requests));
    one.arrived = at;
    for (Request& request : one.requests)
      request.at = at;
    search_.add(one);
  }
  // The answer to most deletions is a Status: it has neither kind nor version.
  static Request deletion(const std::string& plural = "configmaps") {
    Request request = write(3, source(0), Verb::Delete);
    request.resource = plural;
    request.object.kind.clear();
    return request;
  }
  // Finalizers and grace periods delay a deletion; the answer is the object.
  static Request delayed_deletion(std::uint64_t version) {
    return write(3, source(version), Verb::Delete);
  }
  static Cause event(Waking::Cause what, std::uint64_t version) {
    return {.what = what, .object = source(version)};
  }
  [[nodiscard]] std::uint64_t cause() const {
    const WhyFindings& found = search_.findings();
    const std::optional<std::size_t> step = found.steps[0].links[0].step;
    return step ? found.steps[*step].story.number : 0;
  }

  WhySearch search_{kTarget, {}};
};

TEST_F(WhyDeleted, LeadsToTheRequestThatDeletedIt) {
  add(5, hour(48) - 5ms, {}, {deletion()});
  EXPECT_EQ(cause(), 5U);
  EXPECT_EQ(search_.findings().steps[0].links[0].request, 0U);
}

TEST_F(WhyDeleted, WasNotTheObjectOfAnotherKind) {
  add(5, hour(48) - 5ms, {}, {deletion("services")});
  EXPECT_EQ(cause(), 0U);
  add(4, hour(48) - 9ms, {}, {deletion("configmaps")});
  EXPECT_EQ(cause(), 4U);
}

TEST_F(WhyDeleted, WasNotTheObjectThatAnEarlierRequestDeleted) {
  add(5, hour(24), {}, {deletion()});
  EXPECT_EQ(cause(), 0U);
}

TEST_F(WhyDeleted, WasMadeAgainSinceAnEarlierRequest) {
  add(8, hour(48) - 6s, {event(Waking::Cause::Added, 55)});
  add(7, hour(48) - 9s, {event(Waking::Cause::Deleted, 50)});
  add(5, hour(48) - 10s, {}, {deletion()});
  add(4, hour(30), {}, {delayed_deletion(49)});
  EXPECT_EQ(cause(), 0U);
}

TEST_F(WhyDeleted, WasMadeAgainByARecordedRequestSinceAnEarlierOne) {
  add(8, hour(48) - 6s, {}, {write(4, source(55), Verb::Create)});
  add(5, hour(48) - 10s, {}, {deletion()});
  EXPECT_EQ(cause(), 0U);
}

TEST_F(WhyDeleted, IsThatOfAnObjectThatWasMadeShortlyBefore) {
  // The event of its creation arrived while it was being deleted.
  add(6, hour(48) - 4ms, {event(Waking::Cause::Added, 59)});
  add(5, hour(48) - 5ms, {}, {deletion()});
  EXPECT_EQ(cause(), 5U);
}

TEST_F(WhyDeleted, MayHaveWaitedForFinalizers) {
  add(7, hour(47), {event(Waking::Cause::Modified, 58)}, {write(2, source(58))});
  add(6, hour(40), {event(Waking::Cause::Modified, 52)});
  add(5, hour(40), {}, {delayed_deletion(52)});
  EXPECT_EQ(cause(), 5U);
}

TEST_F(WhyDeleted, IsNotThatOfALaterRequest) {
  add(5, hour(49), {}, {deletion()});
  EXPECT_EQ(cause(), 0U);
}

TEST_F(WhyDeleted, MayHaveBeenThatOfACollection) {
  Request all = deletion();
  all.verb = Verb::DeleteCollection;
  all.object.name.clear();
  Request others = all;
  others.object.namespace_ = "elsewhere";
  add(6, hour(48) - 4ms, {}, {others});
  EXPECT_EQ(cause(), 0U);
  add(5, hour(48) - 5ms, {}, {all});
  EXPECT_EQ(cause(), 5U);
}

TEST(WhySearch, FollowsTimersToTheTurnThatSetThem) {
  WhySearch search(kTarget, {});
  search.add(story("web", 2, {{.what = Waking::Cause::Timer, .id = 5}}, {write(9, front(50))}));
  Story set = story("web", 1, {}, {});
  set.timers = {5};
  search.add(set);

  const WhyFindings& found = search.findings();
  ASSERT_TRUE(found.steps[0].links[0].step);
  EXPECT_EQ(found.steps[*found.steps[0].links[0].step].story.number, 1U);
  EXPECT_FALSE(found.steps[0].links[0].request);
}

TEST(WhySearch, EndsALoopAtItsDepth) {
  WhySearch search(kTarget, {.writes_max = 1, .depth_max = 3});
  // Each turn is woken by the write before it.
  for (std::uint64_t version = 100; version > 50; --version) {
    search.add(
        story("web", version, {changed(front(version - 1))}, {write(version, front(version))}));
  }
  EXPECT_THAT(search.findings().writes, SizeIs(1));
  EXPECT_THAT(search.findings().steps, SizeIs(4));
}

TEST(WhySearch, WantsNothingMoreOnceAllIsKnown) {
  WhySearch search(kTarget, {.writes_max = 1});
  EXPECT_FALSE(search.add(story("web", 1, {}, {write(9, front(50))})));
  EXPECT_FALSE(search.add(story("web", 0, {}, {write(8, front(49))})));
  EXPECT_THAT(search.findings().writes, SizeIs(1));
}

TEST(WhySearch, HasTheLastWriteOfATurnFirst) {
  WhySearch search(kTarget, {});
  search.add(story("web", 1, {}, {write(1, front(50)), write(2, front(51))}));
  ASSERT_THAT(search.findings().writes, SizeIs(2));
  EXPECT_EQ(search.findings().writes[0].request, 1U);
}

}  // namespace
}  // namespace hangar::seeing
