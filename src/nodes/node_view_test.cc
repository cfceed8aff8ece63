#include "nodes/node_view.h"

#include "json/yaml.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>

namespace hangar::nodes {
namespace {

using namespace std::chrono_literals;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

TEST(NodeView, ReadsWhatUsersAndTheKubeletSay) {
  const NodeView node = node_view(yaml(R"({
    metadata: {name: n1, uid: u1, resourceVersion: "7", deletionTimestamp: "2026-01-01T00:00:00Z",
      annotations: {kwasm.sh/kwasm-node: "false", nodes.hangar.dev/skip: "true",
                    nodes.hangar.dev/retry: "true"},
      labels: {kubernetes.io/os: linux}},
    status: {conditions: [{type: Ready, status: "True"},
      {type: WasmProvisioned, status: "False", reason: Installing, message: "attempt 1"}]}})"));

  EXPECT_EQ(node.name, "n1");
  EXPECT_EQ(node.uid, "u1");
  EXPECT_EQ(node.resource_version, "7");
  EXPECT_EQ(node.wish, Wish::No);
  EXPECT_TRUE(node.is_skipped);
  EXPECT_TRUE(node.is_retry_asked);
  EXPECT_TRUE(node.is_being_deleted);
  EXPECT_TRUE(node.is_ready);
  EXPECT_TRUE(node.is_linux);
  EXPECT_EQ(node.condition_reason, "Installing");
  EXPECT_EQ(node.condition_message, "attempt 1");
}

TEST(NodeView, IsReadyOnlyWhenTheKubeletSaysTrue) {
  for (const std::string_view status : {"False", "Unknown", ""}) {
    json::Value node = yaml(R"({metadata: {name: n1}, status: {conditions: [{type: Ready}]}})");
    json::Value& condition = node.at("status").at("conditions").as_array().front();
    condition.as_object()["status"] = status;

    EXPECT_FALSE(node_view(node).is_ready) << status;
  }
  EXPECT_FALSE(node_view(yaml("{metadata: {name: n1}}")).is_ready);
}

// A node may write its own annotations; the host increments the numbers and subtracts the time.
TEST(NodeView, BoundsWhatItCountsWith) {
  const NodeView node = node_view(yaml(R"({metadata: {name: n1, annotations: {
    nodes.hangar.dev/attempt: "9223372036854775807", nodes.hangar.dev/failures: "-1",
    nodes.hangar.dev/since: "1700-01-01T00:00:00Z"}}})"));

  EXPECT_EQ(node.state.attempt, 1'000'000'000);
  EXPECT_EQ(node.state.failures, 0);
  EXPECT_EQ(node.state.since, WallTime());
}

TEST(NodeView, IsOfLinuxUnlessItsLabelNamesAnotherSystem) {
  EXPECT_TRUE(node_view(yaml("{metadata: {name: n1}}")).is_linux);
  EXPECT_FALSE(
      node_view(yaml(R"({metadata: {name: n1, labels: {kubernetes.io/os: windows}}})")).is_linux);
}

TEST(NodeView, TellsItsOwnPublishedLabelFromAnyOther) {
  const NodeView own =
      node_view(yaml("{metadata: {name: n1, labels: {kwasm.sh/kwasm-provisioned: n1}}}"));
  const NodeView other =
      node_view(yaml("{metadata: {name: n1, labels: {kwasm.sh/kwasm-provisioned: n2}}}"));
  const NodeView none = node_view(yaml("{metadata: {name: n1}}"));

  EXPECT_TRUE(own.has_published_label);
  EXPECT_FALSE(own.has_foreign_label);
  EXPECT_FALSE(other.has_published_label);
  EXPECT_TRUE(other.has_foreign_label);
  EXPECT_FALSE(none.has_published_label);
  EXPECT_FALSE(none.has_foreign_label);
}

TEST(IsSameToUs, OnlyAnotherVersionChangesNothing) {
  const NodeView node = {.name = "n1", .uid = "u1", .resource_version = "7", .is_ready = true};
  NodeView heartbeat = node;
  heartbeat.resource_version = "8";
  NodeView not_ready = heartbeat;
  not_ready.is_ready = false;
  NodeView wanted = heartbeat;
  wanted.wish = Wish::Yes;

  EXPECT_TRUE(is_same_to_us(node, heartbeat));
  EXPECT_FALSE(is_same_to_us(node, not_ready));
  EXPECT_FALSE(is_same_to_us(node, wanted));
}

TEST(IsInSameState, AJobIsForTheAttemptOfThatVeryNode) {
  const NodeView node = {
      .name = "n1", .uid = "u1", .state = {.phase = Phase::Installing, .attempt = 3}};
  NodeView made_anew = node;
  made_anew.uid = "u2";
  NodeView next_attempt = node;
  next_attempt.state.attempt = 4;
  // Properties that do not affect a Job.
  NodeView not_ready = node;
  not_ready.is_ready = false;
  not_ready.resource_version = "8";

  EXPECT_TRUE(is_in_same_state(node, not_ready));
  EXPECT_FALSE(is_in_same_state(node, made_anew));
  EXPECT_FALSE(is_in_same_state(node, next_attempt));
}

TEST(JobView, OfAFailureSaysWhyAndWhen) {
  const JobView job = job_view(yaml(R"({
    metadata: {name: n1-provision-kwasm, uid: j1, labels: {nodes.hangar.dev/action: install}},
    status: {conditions: [{type: Complete, status: "False"},
      {type: Failed, status: "True", reason: DeadlineExceeded,
       lastTransitionTime: "2026-01-01T00:00:00Z"}]}})"));

  EXPECT_EQ(job.state, JobState::Failed);
  EXPECT_TRUE(job.is_out_of_time);
  EXPECT_EQ(job.problem, "DeadlineExceeded");
  EXPECT_EQ(job.finished_at, WallTime(1'767'225'600s));
}

TEST(NodeJobs, AreFoundByTheirAction) {
  const NodeJobs jobs = {.install = JobView{.name = "i"},
                         .uninstall = JobView{.name = "u"},
                         .probe = JobView{.name = "p"}};

  EXPECT_EQ(jobs.of(Action::Install)->name, "i");
  EXPECT_EQ(jobs.of(Action::Uninstall)->name, "u");
  EXPECT_EQ(jobs.of(Action::Probe)->name, "p");
}

}  // namespace
}  // namespace hangar::nodes
