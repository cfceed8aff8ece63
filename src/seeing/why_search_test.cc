#include "seeing/why_search.h"

#include "recorder/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
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
