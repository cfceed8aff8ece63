// What node provisioning does to a cluster: beside others that write, after refusals, and after a
// host that stopped in the middle.
#include "nodes/node_controller.h"

#include "json/value.h"
#include "kube/object.h"
#include "nodes/manifests.h"
#include "nodes/names.h"
#include "nodes/node_view.h"
#include "nodes/rollout.h"
#include "simulation/api_server.h"
#include "simulation/statuses.h"
#include "simulation/test_host.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::nodes {
namespace {

using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::minutes;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kNodes = "/api/v1/nodes";
const std::string kMaps = "/api/v1/namespaces/kube-system/configmaps";
const std::string kRecord = kMaps + "/" + std::string(kRecordName);
const std::string kJobs = "/apis/batch/v1/namespaces/kube-system/jobs";
const std::string kClasses = "/apis/node.k8s.io/v1/runtimeclasses";

class NodeControllerTest : public simulation::HostTest {
 protected:
  ~NodeControllerTest() override { stop(); }

  void start() {
    controller_ = std::make_unique<NodeController>(host_->platform, options_);
    controller_->start();
  }
  void stop() {
    if (!controller_) return;
    await(controller_->stop());
    controller_.reset();
  }
  // Another host takes over, which knows no more than the cluster does.
  void restart() {
    stop();
    host_.reset();
    host_ = std::make_unique<simulation::TestHost>("next");
    start();
  }

  void make(const std::string& collection, std::string_view manifest) {
    EXPECT_EQ(send("POST", collection, manifest).status, 201);
  }
  void change(const std::string& object, std::string_view patch) {
    EXPECT_EQ(send("PATCH", object, patch).status, 200);
  }
  // A node that is to be provisioned.
  void make_node(const std::string& name) {
    make(kNodes, fmt::format("{{metadata: {{name: {}, labels: {{kubernetes.io/os: linux}}, "
                             "annotations: {{kwasm.sh/kwasm-node: 'true'}}}}}}",
                             name));
    change(kNodes + "/" + name + "/status",
           "{status: {conditions: [{type: Ready, status: 'True'}]}}");
  }
  void withdraw_wish(const std::string& name) {
    change(kNodes + "/" + name, "{metadata: {annotations: {kwasm.sh/kwasm-node: null}}}");
  }
  void complete_job(const std::string& node, Action action) {
    change(kJobs + "/" + job_name(node, action) + "/status",
           "{status: {conditions: [{type: Complete, status: 'True'}]}}");
  }

  [[nodiscard]] NodeView view(const std::string& name) const {
    const json::Value* const node = server_.find("nodes", "", name);
    return node == nullptr ? NodeView() : node_view(*node);
  }
  [[nodiscard]] Phase phase(const std::string& name) const { return view(name).state.phase; }
  // Null: there is none.
  [[nodiscard]] const json::Value* job(const std::string& node,
                                       Action action = Action::Install) const {
    return server_.find("jobs.batch", "kube-system", job_name(node, action));
  }
  [[nodiscard]] Record record() const {
    const json::Value* const map = server_.find("configmaps", "kube-system", kRecordName);
    return map == nullptr ? Record() : parse_record(*map);
  }
  [[nodiscard]] auto count_written(const std::string& line) const {
    return std::ranges::count(writes_, line);
  }

  void run_until_job_of(const std::string& node, Action action = Action::Install) {
    run_until([&] { return job(node, action) != nullptr; });
  }
  void run_until_phase(const std::string& node, Phase wanted) {
    run_until([&] { return phase(node) == wanted; });
  }
  // From nothing to the end.
  void provision(const std::string& node) {
    run_until_job_of(node);
    complete_job(node, Action::Install);
    run_until_phase(node, Phase::Provisioned);
  }

  Options options_{
      .policy = {.version = "installer:1"},
      .jobs = {
          .namespace_ = "kube-system", .image = "installer:1", .uninstall_command = {"uninstall"}}};
  std::unique_ptr<NodeController> controller_;
};

TEST_F(NodeControllerTest, ProvisionsANodeThatIsToBeProvisioned) {
  make_node("n1");
  start();

  run_until_job_of("n1");
  EXPECT_TRUE(record().has_slot("n1"));
  EXPECT_EQ(phase("n1"), Phase::Installing);
  EXPECT_FALSE(view("n1").has_published_label);
  complete_job("n1", Action::Install);
  run_until_phase("n1", Phase::Provisioned);

  EXPECT_TRUE(view("n1").has_published_label);
  EXPECT_TRUE(view("n1").has_provisioned_label);
  EXPECT_EQ(view("n1").state.version, "installer:1");
  run_until([&] { return record().slots.empty(); });
  run_until([&] { return view("n1").condition_reason == "Provisioned"; });
  run_until([&] {
    return std::ranges::any_of(server_.all("events"), [](const json::Value* event) {
      return json::string_at(*event, {"reason"}) == "Provisioned";
    });
  });
  EXPECT_EQ(count_written("POST " + kJobs), 1);
}

TEST_F(NodeControllerTest, UninstallsWhenTheWishIsWithdrawn) {
  make_node("n1");
  start();
  provision("n1");

  withdraw_wish("n1");
  run_until_job_of("n1", Action::Uninstall);
  EXPECT_FALSE(view("n1").has_provisioned_label) << "no new pod is scheduled there";
  complete_job("n1", Action::Uninstall);
  run_until_phase("n1", Phase::None);

  EXPECT_FALSE(view("n1").has_published_label);
  EXPECT_EQ(view("n1").state, NodeState());
  run_until([&] { return server_.all("jobs.batch").empty(); });
  run_until([&] { return record().slots.empty(); });
}

TEST_F(NodeControllerTest, WorksOnNoMoreNodesThanThePolicyAllows) {
  make_node("n1");
  make_node("n2");
  start();
  run_until_job_of("n1");

  run_for(minutes(2));
  EXPECT_TRUE(job("n2") == nullptr);
  EXPECT_EQ(phase("n2"), Phase::None);

  provision("n1");
  run_until_job_of("n2");
}

TEST_F(NodeControllerTest, DecidesNothingBeforeItKnowsAllThatItWatches) {
  make_node("n1");
  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (!request.target.contains("/runtimeclasses")) return std::nullopt;
    return simulation::status(403, "Forbidden", "the host may not do that");
  };
  start();

  run_for(minutes(2));
  EXPECT_FALSE(controller_->is_synced());
  EXPECT_THAT(writes_, IsEmpty());

  on_arrival_ = nullptr;
  run_until_job_of("n1");
}

TEST_F(NodeControllerTest, GivesTheSlotOfADeletedNodeToTheNextOne) {
  make_node("n1");
  make_node("n2");
  start();
  run_until_job_of("n1");

  EXPECT_EQ(send("DELETE", kNodes + "/n1").status, 200);

  run_until_job_of("n2");
  EXPECT_FALSE(record().has_slot("n1"));
}

// Beside others that write ------------------------------------------------------------------------

TEST_F(NodeControllerTest, WritesAgainWhenAnotherWriteOfTheNodeMeansNothing) {
  make_node("n1");
  int patches = 0;
  on_arrival_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method == "PATCH" && path_of(request) == kNodes + "/n1" && ++patches == 1) {
      change(kNodes + "/n1/status", "{status: {heartbeat: '1'}}");
    }
    return std::nullopt;
  };
  start();

  run_until_phase("n1", Phase::Installing);

  EXPECT_EQ(patches, 2) << "the first was made for the version before";
  EXPECT_EQ(view("n1").state.attempt, 1);
}

TEST_F(NodeControllerTest, DropsADecisionThatAUserHasOvertaken) {
  make_node("n1");
  on_next("PATCH", kNodes + "/n1", [&](const ApiRequest&) -> std::optional<ApiAnswer> {
    withdraw_wish("n1");
    return std::nullopt;
  });
  start();
  run_until([&] { return record().has_slot("n1"); });

  run_until([&] { return record().slots.empty(); });

  EXPECT_EQ(view("n1").state, NodeState());
  EXPECT_THAT(server_.all("jobs.batch"), IsEmpty());
}

TEST_F(NodeControllerTest, FollowsTheRecordOfAHostThatWroteFirst) {
  make_node("n1");
  make_node("n2");
  on_next("POST", "/configmaps", [&](const ApiRequest&) -> std::optional<ApiAnswer> {
    make(kMaps,
         "{metadata: {name: hangar-nodes}, data: {active: n2, leaving: '', standing: Rolling, "
         "version: 'installer:1', autoProvision: 'false'}}");
    return std::nullopt;
  });
  start();

  run_until_job_of("n2");

  EXPECT_EQ(phase("n1"), Phase::None);
  EXPECT_FALSE(record().has_slot("n1"));
}

TEST_F(NodeControllerTest, BeginsOnlyWithASlotOfTheStoredRecord) {
  make_node("n1");
  int reads = 0;
  on_arrival_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    // The first read is that of the rollout, before it gives the slot.
    if (request.method == "GET" && path_of(request) == kRecord && ++reads == 2) {
      change(kRecord, "{data: {leaving: n1}}");
    }
    return std::nullopt;
  };
  start();

  run_until_phase("n1", Phase::Installing);

  const auto settled = std::ranges::find(writes_, "PUT " + kRecord);
  const auto begun = std::ranges::find(writes_, "PATCH " + kNodes + "/n1");
  ASSERT_TRUE(settled != writes_.end());
  EXPECT_LT(settled - writes_.begin(), begun - writes_.begin());
}

// Refusals ----------------------------------------------------------------------------------------

TEST_F(NodeControllerTest, BeginsNothingWithoutTheRightToReadTheRecord) {
  make_node("n1");
  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (path_of(request) != kRecord) return std::nullopt;
    return simulation::status(403, "Forbidden", "the host may not do that");
  };
  start();

  run_for(minutes(2));
  EXPECT_THAT(writes_, IsEmpty());

  on_arrival_ = nullptr;
  run_until_job_of("n1");
}

TEST_F(NodeControllerTest, AJobThatIsRefusedFailsTheAttemptAndHaltsTheRollout) {
  make_node("n1");
  make_node("n2");
  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "POST" || path_of(request) != kJobs) return std::nullopt;
    return simulation::status(403, "Forbidden", "exceeded quota: jobs");
  };
  start();

  run_until_phase("n1", Phase::Failed);
  EXPECT_THAT(view("n1").state.last_error, HasSubstr("exceeded quota: jobs"));
  EXPECT_EQ(view("n1").state.failures, 1);
  run_until([&] { return record().progress.standing == Standing::Halted; });
  EXPECT_EQ(phase("n2"), Phase::None);

  on_arrival_ = nullptr;
  run_until_job_of("n1");
  EXPECT_EQ(view("n1").state.attempt, 2);
  EXPECT_EQ(phase("n2"), Phase::None);
}

TEST_F(NodeControllerTest, AServerThatFailsDoesNotFailTheAttempt) {
  make_node("n1");
  on_next("POST", "/jobs", [](const ApiRequest&) { return std::optional(failure()); });
  start();

  run_until_job_of("n1");

  EXPECT_EQ(view("n1").state.failures, 0);
  EXPECT_EQ(view("n1").state.attempt, 1);
}

TEST_F(NodeControllerTest, AJobOfOthersUnderItsNameFailsTheAttempt) {
  make_node("n1");
  make(kJobs, "{metadata: {name: " + job_name("n1", Action::Install) + "}, spec: {}}");
  start();

  run_until_phase("n1", Phase::Failed);

  EXPECT_THAT(view("n1").state.last_error,
              HasSubstr("a Job n1-provision-kwasm that is not ours exists already: delete it"));
  EXPECT_EQ(kube::label_of(*job("n1"), kJobLabel), "") << "it stays as it is";
}

// A host that stops in the middle -----------------------------------------------------------------

TEST_F(NodeControllerTest, CreatesOneJobIfTheAnswerWasLost) {
  make_node("n1");
  lose_next_answer("POST", "/jobs");
  start();

  provision("n1");

  EXPECT_THAT(server_.all("jobs.batch"), SizeIs(1));
  EXPECT_EQ(count_written("POST " + kJobs), 0) << "beside the one whose answer was lost";
  EXPECT_EQ(view("n1").state.failures, 0);
}

TEST_F(NodeControllerTest, CreatesAgainAJobThatSomebodyDeleted) {
  make_node("n1");
  start();
  run_until_job_of("n1");
  const std::string uid(json::string_at(*job("n1"), {"metadata", "uid"}));

  EXPECT_EQ(send("DELETE", kJobs + "/" + job_name("n1", Action::Install)).status, 200);

  run_until_job_of("n1");
  EXPECT_NE(json::string_at(*job("n1"), {"metadata", "uid"}), uid);
  EXPECT_EQ(view("n1").state.attempt, 1) << "the same one";
}

TEST_F(NodeControllerTest, WritesNothingAfterItHasLostTheLease) {
  make_node("n1");
  start();
  run_until_job_of("n1");
  host_->stop_leading();
  writes_.clear();

  complete_job("n1", Action::Install);
  run_for(minutes(2));

  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_EQ(phase("n1"), Phase::Installing);
}

TEST_F(NodeControllerTest, TheNextHostFinishesWhatAnotherOneBegan) {
  make_node("n1");
  make_node("n2");
  // The host has begun, and does not get to the Job.
  on_next("PATCH", kNodes + "/n1", [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    (void)server_.handle(request, time_.wall_now());
    host_->stop_leading();
    return failure();
  });
  start();
  run_until_phase("n1", Phase::Installing);
  run_for(minutes(1));
  EXPECT_THAT(server_.all("jobs.batch"), IsEmpty());

  restart();
  provision("n1");

  EXPECT_EQ(view("n1").state.attempt, 1);
  EXPECT_EQ(count_written("POST " + kJobs), 1);
  run_until_job_of("n2");
}

TEST_F(NodeControllerTest, TheNextHostGivesALostSlotBackToANodeInProgress) {
  make_node("n1");
  make_node("n2");
  start();
  run_until_job_of("n1");
  stop();
  EXPECT_EQ(send("DELETE", kRecord).status, 200);

  restart();
  run_until([&] { return record().has_slot("n1"); });

  run_for(minutes(1));
  EXPECT_EQ(phase("n2"), Phase::None);
  EXPECT_EQ(count_written("POST " + kJobs), 1);
  provision("n1");
}

// Runtime classes ---------------------------------------------------------------------------------

TEST_F(NodeControllerTest, KeepsItsRuntimeClassesAndLeavesThoseOfOthers) {
  options_.runtime_classes = {{.name = "wasmtime", .handler = "wasmtime"},
                              {.name = "wasmedge", .handler = "wasmedge"}};
  make(kClasses, "{metadata: {name: wasmtime}, handler: another}");
  make(kClasses,
       "{metadata: {name: old, labels: {app.kubernetes.io/managed-by: hangar-nodes}}, "
       "handler: old}");
  const auto has_class = [this](std::string_view name) {
    return server_.find("runtimeclasses.node.k8s.io", "", name) != nullptr;
  };
  start();

  run_until([&] { return has_class("wasmedge") && !has_class("old"); });
  const json::Value* const foreign = server_.find("runtimeclasses.node.k8s.io", "", "wasmtime");
  ASSERT_TRUE(foreign != nullptr);
  EXPECT_EQ(json::string_at(*foreign, {"handler"}), "another");

  EXPECT_EQ(send("DELETE", kClasses + "/wasmedge").status, 200);
  run_until([&] { return has_class("wasmedge"); });
}

}  // namespace
}  // namespace hangar::nodes
