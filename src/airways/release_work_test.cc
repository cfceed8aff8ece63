// What the removal of resources does to a cluster, also after a restart.
#include "airways/release_work.h"

#include "airways/instance.h"
#include "airways/ownership.h"
#include "airways/readiness.h"
#include "airways/release_history.h"
#include "airways/request_view.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/terms.h"
#include "airways/test_cluster.h"
#include "base/result.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

json::Value config_map(std::string_view name) {
  return yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + std::string(name) + "}}");
}

class ReleaseWorkTest : public ClusterTest {
 protected:
  ReleaseWorkTest() { restart(); }

  // The owner of the release's resources, so that the garbage collector leaves them.
  hangar::json::Value made_instance() {
    EXPECT_EQ(send("POST", kMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}"), 201);
    return *find("configmaps", "web");
  }

  // The host knows no more than the cluster does.
  void restart() {
    memory_ = Instance();
    memory_.history.emplace(workers_, client_, release_);
    EXPECT_TRUE(await(memory_.history->load({})).has_value());
  }
  ReleaseWork work(PruneOptions prune = {}) {
    return {{.loop = loop_, .view = view_, .client = client_, .custom_readiness = readiness_},
            client_,
            release_,
            memory_,
            {.prune = prune, .rehearse = Rehearse::Nothing},
            {}};
  }
  // Applies all, and is then interrupted before the prune.
  void apply(Stages stages) {
    ReleaseWork carrying = work();
    const Result<> prepared = await(carrying.prepare(stages));
    ASSERT_TRUE(prepared.has_value()) << prepared.error().message();
    const Result<Progress> applied =
        await(carrying.apply(stages, Source{.url = "oci://registry/app:v1", .checksum = "abc"}));
    ASSERT_TRUE(applied.has_value()) << applied.error().message();
    EXPECT_TRUE(applied->done) << applied->waiting_for;
    writes_.clear();
  }
  void release(Stages stages) {
    apply(std::move(stages));
    EXPECT_TRUE(await(memory_.history->activate(io::Loop::wall_now(), {}, {})).has_value());
    writes_.clear();
  }
  Result<Progress> prune(Stages wanted, PruneOptions options = {}) {
    ReleaseWork carrying = work(options);
    EXPECT_TRUE(await(carrying.prepare(wanted)).has_value());
    return await(carrying.prune(wanted));
  }
  void expect_waits_for(Stages wanted, std::string_view name) {
    const Result<Progress> progress = prune(std::move(wanted));
    ASSERT_TRUE(progress.has_value()) << progress.error().message();
    EXPECT_FALSE(progress->done);
    EXPECT_THAT(progress->waiting_for, HasSubstr(std::string(name) + " is being deleted"));
  }
  // Of a release of the stages {a} and {b}.
  void expect_b_then_a_to_go() {
    expect_waits_for({}, "b");
    EXPECT_THAT(writes_, ElementsAre("DELETE " + kMaps + "/b"));
    collect_garbage();
    expect_waits_for({}, "a");
    collect_garbage();
    expect_done({});
  }
  void expect_done(Stages wanted, PruneOptions options = {}) {
    const Result<Progress> progress = prune(std::move(wanted), options);
    ASSERT_TRUE(progress.has_value()) << progress.error().message();
    EXPECT_TRUE(progress->done) << progress->waiting_for;
  }

  io::Workers workers_{loop_, 1};
  const kube::Client client_ = client();
  RequestView view_{client_};
  const CustomReadiness readiness_;
  const Release release_ = release_of(made_instance());
  Instance memory_;
};

TEST_F(ReleaseWorkTest, LooksAtAStageAsOftenHoweverManyFollow) {
  const auto reads_of = [this](std::string_view name) {
    return std::ranges::count(reads_, kMaps + "/" + std::string(name));
  };

  apply({{config_map("a")}, {config_map("b")}, {config_map("c")}, {config_map("d")}});

  EXPECT_GT(reads_of("c"), 0);
  EXPECT_EQ(reads_of("a"), reads_of("c"));
  EXPECT_EQ(work().released_count(), 4U);
  apply({});
  EXPECT_EQ(work().released_count(), 0U);
}

TEST_F(ReleaseWorkTest, DeletesWhatIsNotWantedAnyMoreAndWaitsUntilItIsGone) {
  release({{config_map("a"), config_map("b")}});

  expect_waits_for({{config_map("a")}}, "b");
  EXPECT_THAT(writes_, ElementsAre("DELETE " + kMaps + "/b"));
  expect_waits_for({{config_map("a")}}, "b");
  EXPECT_THAT(writes_, ElementsAre("DELETE " + kMaps + "/b")) << "it is being deleted already";
  collect_garbage();
  expect_done({{config_map("a")}});

  EXPECT_NE(find("configmaps", "a"), nullptr);
  EXPECT_EQ(find("configmaps", "b"), nullptr);
}

TEST_F(ReleaseWorkTest, DeletesInTheReverseOrderOfTheStages) {
  release({{config_map("a")}, {config_map("b")}});

  expect_b_then_a_to_go();

  EXPECT_THAT(writes_, ElementsAre("DELETE " + kMaps + "/b", "DELETE " + kMaps + "/a"));
}

TEST_F(ReleaseWorkTest, LeavesWhatSomebodyElseHasMadeUnderTheName) {
  release({{config_map("a")}});
  EXPECT_EQ(send("DELETE", kMaps + "/a"), 200);
  EXPECT_EQ(send("POST", kMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), 201);

  expect_done({});

  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_NE(find("configmaps", "a"), nullptr);
}

// Between the look at the object and its deletion.
TEST_F(ReleaseWorkTest, DoesNotDeleteTheObjectThatHasReplacedItsOwn) {
  release({{config_map("a")}});
  on_write_ = [this](const http::ServerRequest& request) {
    if (request.method != "DELETE") return;
    on_write_ = nullptr;
    EXPECT_EQ(send("DELETE", kMaps + "/a"), 200);
    EXPECT_EQ(send("POST", kMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), 201);
  };

  const Result<Progress> progress = prune({});

  ASSERT_FALSE(progress.has_value());
  EXPECT_EQ(progress.error().kind(), ErrorKind::Conflict);
  EXPECT_NE(find("configmaps", "a"), nullptr);
  expect_done({});
  EXPECT_NE(find("configmaps", "a"), nullptr);
}

TEST_F(ReleaseWorkTest, KeepsNamespacesWithoutItsMarksUnlessTheyAreToGo) {
  const Stages space = {{yaml("{apiVersion: v1, kind: Namespace, metadata: {name: extra}}")}};
  release(space);
  ASSERT_NE(find("namespaces", "extra"), nullptr);
  EXPECT_FALSE(owner_of(*find("namespaces", "extra")).empty());

  expect_done({});

  EXPECT_THAT(writes_, ElementsAre("PATCH /api/v1/namespaces/extra"));
  ASSERT_NE(find("namespaces", "extra"), nullptr);
  EXPECT_TRUE(owner_of(*find("namespaces", "extra")).empty());

  release(space);
  const Result<Progress> progress = prune({}, {.namespaces = true});
  ASSERT_TRUE(progress.has_value()) << progress.error().message();
  EXPECT_THAT(writes_, ElementsAre("DELETE /api/v1/namespaces/extra"));
}

TEST_F(ReleaseWorkTest, DeletesAfterARestartWhatAnInterruptedReleaseHasApplied) {
  release({{config_map("a")}});
  apply({{config_map("a"), config_map("half")}});

  restart();
  expect_waits_for({{config_map("a")}}, "half");
  collect_garbage();
  expect_done({{config_map("a")}});

  EXPECT_EQ(find("configmaps", "half"), nullptr);
  EXPECT_NE(find("configmaps", "a"), nullptr);
}

TEST_F(ReleaseWorkTest, GoesOnWithADeletionWhoseAnswerWasLost) {
  release({{config_map("a")}, {config_map("b")}});
  fail_next("DELETE", "/configmaps/b", Failing::Done);

  ASSERT_FALSE(prune({}).has_value());
  restart();

  expect_b_then_a_to_go();
  EXPECT_EQ(find("configmaps", "a"), nullptr);
}

TEST_F(ReleaseWorkTest, TriesADeletionAgainThatWasNotCarriedOut) {
  release({{config_map("a")}});
  fail_next("DELETE", "/configmaps/a", Failing::Undone);

  ASSERT_FALSE(prune({}).has_value());
  expect_waits_for({}, "a");

  EXPECT_THAT(writes_, ElementsAre("DELETE " + kMaps + "/a", "DELETE " + kMaps + "/a"));
}

}  // namespace
}  // namespace hangar::airways
