// What a host that starts anew, or that has lost an answer, knows of a release.
#include "airways/release_history.h"

#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/test_cluster.h"
#include "base/result.h"
#include "base/time.h"
#include "io/workers.h"
#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const WallTime kNow = parse_rfc3339("2026-04-08T12:00:00Z").value();

Stages config_maps(const std::vector<std::string_view>& names) {
  Stage stage;
  for (const std::string_view name : names)
    stage.push_back(yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + std::string(name) +
                         ", namespace: default}}"));
  return {std::move(stage)};
}
// The inventory may name one twice.
std::set<std::string> names_in(const Stages& stages) {
  std::set<std::string> names;
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage)
      names.insert(ref_of(resource).name);
  }
  return names;
}

class ReleaseHistoryTest : public ClusterTest {
 protected:
  static Release release(std::string name = "examples.com.App.default.web") {
    Release made{.name = name, .namespace_ = "default", .history_name = std::move(name)};
    made.instance = {
        .kind = {.group = "examples.com", .kind = "App"}, .namespace_ = "default", .name = "web"};
    return made;
  }
  // As a host that has just started.
  ReleaseHistory history(const Release& of = release(),
                         ReleaseHistory::Keep keep = ReleaseHistory::Keep::Content) {
    ReleaseHistory history(workers_, client(), of, keep);
    const Result<> loaded = await(history.load({}));
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message();
    return history;
  }
  void record(ReleaseHistory& history, const Stages& stages) {
    const Result<> done = await(history.record(
        stages, {.url = "oci://registry/app:v1", .checksum = "abc"}, next_time(), {}));
    EXPECT_TRUE(done.has_value()) << done.error().message();
  }
  Result<> activate(ReleaseHistory& history) {
    return await(history.activate(next_time(), /*count_max=*/{}, {}));
  }
  void release_all(ReleaseHistory& history, const Stages& stages) {
    record(history, stages);
    EXPECT_TRUE(activate(history).has_value());
  }
  WallTime next_time() { return now_ += seconds(1); }
  [[nodiscard]] std::size_t secret_count() const { return cluster_.all("secrets").size(); }

  io::Workers workers_{loop_, 1};
  WallTime now_ = kNow;
};

TEST_F(ReleaseHistoryTest, KnowsAfterARestartWhatAnInterruptedReleaseMayHaveApplied) {
  ReleaseHistory before = history();
  release_all(before, config_maps({"a", "b"}));
  record(before, config_maps({"b", "c"}));

  const ReleaseHistory after = history();

  EXPECT_TRUE(after.is_interrupted());
  EXPECT_THAT(names_in(after.inventory()), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_in(after.active()), ElementsAre("a", "b"));
  EXPECT_THAT(names_in(after.newest()), ElementsAre("b", "c"));
  EXPECT_EQ(after.recorded(), before.recorded());
}

TEST_F(ReleaseHistoryTest, KnowsWithoutContentWhetherStagesAreTheNewest) {
  Stages stages = config_maps({"a", "b"});
  json::set_at(stages[0][0], {"data", "key"}, json::Value("value"));
  ReleaseHistory one = history(release(), ReleaseHistory::Keep::Names);
  release_all(one, stages);

  EXPECT_EQ(json::find(one.active()[0][0], {"data"}), nullptr);
  EXPECT_EQ(json::find(one.inventory()[0][0], {"data"}), nullptr);
  EXPECT_THAT(names_in(one.inventory()), ElementsAre("a", "b"));
  record(one, stages);
  EXPECT_EQ(secret_count(), 1U) << "the active one has them";
  json::set_at(stages[0][0], {"data", "key"}, json::Value("another value"));
  record(one, stages);
  record(one, stages);
  EXPECT_EQ(secret_count(), 2U);

  ReleaseHistory after = history(release(), ReleaseHistory::Keep::Names);
  record(after, stages);
  EXPECT_EQ(secret_count(), 2U) << "the interrupted one has them";
  EXPECT_TRUE(activate(after).has_value());
  record(after, stages);
  EXPECT_FALSE(after.is_interrupted());
  EXPECT_EQ(json::find(after.active()[0][0], {"data"}), nullptr);
  EXPECT_NE(json::find(history().active()[0][0], {"data"}), nullptr) << "the Secret has it";
}

TEST_F(ReleaseHistoryTest, KeepsInterruptedRevisionsUntilTheirResourcesAreGone) {
  ReleaseHistory first = history();
  release_all(first, config_maps({"a"}));
  record(first, config_maps({"lost"}));

  ReleaseHistory second = history();
  record(second, config_maps({"a", "b"}));

  EXPECT_THAT(names_in(history().inventory()), ElementsAre("a", "b", "lost"))
      << "the new revision names another resource";
  EXPECT_TRUE(activate(second).has_value()) << "now it is pruned";
  const ReleaseHistory third = history();
  EXPECT_FALSE(third.is_interrupted());
  EXPECT_THAT(names_in(third.inventory()), ElementsAre("a", "b"));
  EXPECT_EQ(secret_count(), 2U);
}

TEST_F(ReleaseHistoryTest, DropsInterruptedRevisionsWhoseResourcesTheNewestOneHas) {
  ReleaseHistory first = history();
  record(first, config_maps({"a"}));
  ReleaseHistory second = history();
  record(second, config_maps({"a", "b"}));

  EXPECT_EQ(secret_count(), 1U);
  EXPECT_THAT(names_in(history().inventory()), ElementsAre("a", "b"));
}

TEST_F(ReleaseHistoryTest, ReadsAgainWhatALostAnswerHasDone) {
  for (const Failing failing : {Failing::Undone, Failing::Done}) {
    const bool is_done = failing == Failing::Done;
    ReleaseHistory history = this->history(release(is_done ? "done" : "undone"));
    record(history, config_maps({"a"}));
    fail_next("PATCH", "/secrets/", failing);

    const Result<> activated = activate(history);
    ASSERT_FALSE(activated.has_value());
    EXPECT_THAT(activated.error().message(), HasSubstr("activate the revision"));
    ASSERT_TRUE(await(history.load({})).has_value());

    EXPECT_EQ(history.is_interrupted(), !is_done);
    EXPECT_THAT(names_in(history.active()), SizeIs(is_done ? 1 : 0));
    EXPECT_THAT(names_in(history.inventory()), ElementsAre("a"));
  }
}

TEST_F(ReleaseHistoryTest, DoesNotForgetARevisionWhoseCreationWasAnsweredWithAnError) {
  ReleaseHistory history = this->history();
  fail_next("POST", "/secrets", Failing::Done);

  const Result<> recorded = await(history.record(config_maps({"a"}), {}, next_time(), {}));
  ASSERT_FALSE(recorded.has_value());
  ASSERT_TRUE(await(history.load({})).has_value());

  EXPECT_THAT(names_in(history.inventory()), ElementsAre("a"));
  EXPECT_TRUE(history.is_interrupted());
}

// While a revision is left, the resources that may be in the cluster are known.
TEST_F(ReleaseHistoryTest, ErasesAllAndGoesOnAfterAFailure) {
  ReleaseHistory history = this->history();
  release_all(history, config_maps({"old"}));
  release_all(history, config_maps({"a"}));
  fail_next("DELETE", "/secrets/", Failing::Undone, /*skipped=*/1);

  ASSERT_FALSE(await(history.erase({})).has_value());
  EXPECT_EQ(secret_count(), 1U);
  ASSERT_TRUE(await(history.load({})).has_value());
  EXPECT_THAT(names_in(history.inventory()), ElementsAre("a"));
  EXPECT_TRUE(await(history.erase({})).has_value());

  EXPECT_EQ(secret_count(), 0U);
  EXPECT_THAT(names_in(this->history().inventory()), IsEmpty());
}

TEST_F(ReleaseHistoryTest, LeavesRevisionsOfOtherReleasesAndOtherSecrets) {
  ReleaseHistory other = history(release("other"));
  release_all(other, config_maps({"theirs"}));
  EXPECT_EQ(send("POST", "/api/v1/namespaces/default/secrets",
                 "{apiVersion: v1, kind: Secret, metadata: {name: password}}"),
            201);
  ReleaseHistory ours = history();
  release_all(ours, config_maps({"a"}));

  EXPECT_THAT(names_in(ours.inventory()), ElementsAre("a"));
  EXPECT_TRUE(await(ours.erase({})).has_value());

  EXPECT_EQ(secret_count(), 2U);
  EXPECT_THAT(names_in(history(release("other")).active()), ElementsAre("theirs"));
}

}  // namespace
}  // namespace hangar::airways
