#include "seeing/uses.h"

#include "base/time.h"
#include "kube/object.h"
#include "recorder/record.h"
#include "recorder/story.h"
#include "seeing/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {
namespace {

using namespace std::chrono_literals;
using recorder::Contract;
using recorder::Request;
using recorder::Story;
using recorder::Verb;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kUser = "system:serviceaccount:team:default";
const WallTime kWall = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());

Request request(Verb verb, std::string resource, std::string name, std::uint64_t status = 200) {
  return {.verb = verb,
          .resource = std::move(resource),
          .at = kWall,
          .took = 1ms,
          .status = status,
          .object = {.namespace_ = "team", .name = std::move(name)}};
}

Story turn(std::vector<Request> requests, std::string name = "mirror") {
  return {.host = 1,
          .namespace_ = "team",
          .name = std::move(name),
          .instance = 1,
          .user = kUser,
          .causes = {{.what = recorder::Waking::Cause::Modified}},
          .requests = std::move(requests)};
}

Result<FoundUses> fold(std::initializer_list<Story> stories, std::string name = "mirror") {
  UseFold uses({.namespace_ = "team", .name = std::move(name)});
  for (const Story& story : stories)
    uses.add(story);
  return std::move(uses).end();
}

TEST(Uses, AreNotThoseOfOtherServers) {
  const Result<FoundUses> found = fold({turn({{.verb = Verb::Other,
                                               .path = "https://acme.example.org",
                                               .at = kWall,
                                               .took = 1ms,
                                               .status = 200}})});

  ASSERT_TRUE(found);
  EXPECT_THAT(found->uses, IsEmpty());
}

TEST(Uses, AreFoldedByVerbResourceAndPlace) {
  Request elsewhere = request(Verb::Get, "configmaps", "a");
  elsewhere.object.namespace_ = "other";
  const FoundUses found =
      fold({turn({request(Verb::Get, "configmaps", "b"), elsewhere}),
            turn({request(Verb::Get, "configmaps", "a", 404), request(Verb::Get, "secrets", "s")})})
          .value();

  EXPECT_EQ(found.turns, 2U);
  EXPECT_EQ(found.user, kUser);
  ASSERT_THAT(found.uses, SizeIs(3));
  EXPECT_EQ(found.uses[0].right.namespace_, "other");
  EXPECT_EQ(found.uses[1].right.resource, "configmaps");
  EXPECT_EQ(found.uses[1].count, 2U) << "to be told that there is none takes the right, too";
  EXPECT_THAT(found.uses[1].names, ElementsAre("a", "b"));
  EXPECT_EQ(found.uses[2].right.resource, "secrets");
}

TEST(Uses, CountRefusalsApart) {
  Request unanswered = request(Verb::Create, "configmaps", "");
  unanswered.took.reset();
  unanswered.status = 0;
  const FoundUses found = fold({turn({request(Verb::Create, "configmaps", "", 403), unanswered,
                                      request(Verb::Delete, "configmaps", "a", 403)})})
                              .value();

  ASSERT_THAT(found.uses, SizeIs(2));
  EXPECT_EQ(found.uses[0].count, 1U) << "nobody has said no";
  EXPECT_EQ(found.uses[0].refused, 1U);
  EXPECT_EQ(found.uses[1].count, 0U);
  EXPECT_EQ(found.uses[1].refused, 1U);
}

TEST(Uses, SayWhichPatchesMadeTheirObject) {
  const FoundUses found = fold({turn({request(Verb::Patch, "configmaps", "a", 201),
                                      request(Verb::Patch, "configmaps", "a", 200)})})
                              .value();

  ASSERT_THAT(found.uses, SizeIs(1));
  EXPECT_EQ(found.uses[0].count, 2U);
  EXPECT_EQ(found.uses[0].created, 1U);
}

TEST(Uses, OfNamespacesAreTheClusters) {
  const FoundUses found = fold({turn({request(Verb::Get, "namespaces", "team")})}).value();

  ASSERT_THAT(found.uses, SizeIs(1));
  EXPECT_EQ(found.uses[0].right.namespace_, "");
}

TEST(Uses, LeaveOutWhatTheHostWritesForAWorkflow) {
  Story step = turn({request(Verb::Patch, "flows", "order"), request(Verb::Patch, "flows", "next"),
                     request(Verb::Patch, "configmaps", "order")},
                    "flows.example.com/order");
  step.contract = Contract::Workflow;
  for (std::size_t index : {0U, 1U})
    step.requests[index].object.group = "example.com";
  const FoundUses found = fold({step}, "flows.example.com/order").value();

  ASSERT_THAT(found.uses, SizeIs(2));
  EXPECT_THAT(found.uses[0].names, ElementsAre("order"));
  EXPECT_EQ(found.uses[0].right.resource, "configmaps");
  EXPECT_THAT(found.uses[1].names, ElementsAre("next"));
}

TEST(Uses, KnowWhetherTheStartOfTheLastInstanceIsThere) {
  Story start = turn({});
  start.causes.clear();
  EXPECT_FALSE(fold({turn({})})->has_start);
  EXPECT_TRUE(fold({turn({}), start})->has_start);
  Story of_another = start;
  of_another.instance = 0;
  EXPECT_FALSE(fold({turn({}), of_another})->has_start);
}

TEST(Uses, NameWhoElseAsksAsTheSameUser) {
  Story stranger = turn({}, "stranger");
  stranger.user = "system:serviceaccount:team:other";
  Story before = turn({});
  before.user = "system:serviceaccount:team:old";
  const FoundUses found = fold({turn({}, "reader"), turn({}), stranger, before}).value();

  EXPECT_THAT(found.sharers, ElementsAre(kube::ObjectKey{.namespace_ = "team", .name = "reader"}));
  EXPECT_THAT(found.earlier_users, ElementsAre("system:serviceaccount:team:old"));
}

TEST(Uses, AreBounded) {
  std::vector<Request> many;
  for (std::size_t index = 0; index < kUsesMax + 10; ++index)
    many.push_back(request(Verb::Get, "things" + std::to_string(index), "a"));
  for (std::size_t index = 0; index < kNamesPerUseMax + 1; ++index)
    many.push_back(request(Verb::Get, "things0", "name" + std::to_string(index)));
  const FoundUses found = fold({turn(many)}).value();

  EXPECT_THAT(found.uses, SizeIs(kUsesMax));
  EXPECT_EQ(found.uses_left_out, 10U);
  EXPECT_THAT(found.uses[0].names, SizeIs(kNamesPerUseMax));
  EXPECT_TRUE(found.uses[0].has_more_names);
}

TEST(Uses, OfNobodyAreNotFound) {
  const Result<FoundUses> found = fold({turn({}, "reader")});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), ErrorKind::NotFound);
}

TEST(OpenWatches, AreUsesHoweverOldTheyAre) {
  FoundUses found = fold({turn({request(Verb::Watch, "configmaps", "")})}).value();
  const Right known = found.uses[0].right;
  Right older = known;
  older.resource = "pods";
  add_open_watches(found, {known, older});

  ASSERT_THAT(found.uses, SizeIs(2));
  EXPECT_TRUE(found.uses[0].is_open);
  EXPECT_EQ(found.uses[1].right, older);
  EXPECT_TRUE(found.uses[1].is_open);
}

}  // namespace
}  // namespace hangar::seeing
