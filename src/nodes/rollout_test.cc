#include "nodes/rollout.h"

#include "nodes/limits.h"
#include "nodes/manifests.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::nodes {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const WallTime kNow = WallTime(1'800'000'000s);

NodeView ready(std::string name, NodeState state = {}) {
  return {.name = name,
          .uid = "uid-" + name,
          .resource_version = "1",
          .wish = Wish::Yes,
          .is_ready = true,
          .state = std::move(state)};
}

Nodes nodes_of(std::initializer_list<NodeView> views) {
  Nodes nodes;
  for (const NodeView& view : views)
    nodes[view.name] = view;
  return nodes;
}

NodeState provisioned(std::string version) {
  return {.phase = Phase::Provisioned, .attempt = 1, .since = kNow, .version = std::move(version)};
}

NodeState in_phase(Phase phase, Action action = Action::Install) {
  return {.phase = phase, .action = action, .attempt = 1, .since = kNow, .target = "v1"};
}

JobView job_of(const NodeView& node, Action action, JobState state, std::string problem = {}) {
  return {.name = job_name(node.name, action),
          .uid = "job",
          .node = node.name,
          .node_uid = node.uid,
          .action = action,
          .attempt = node.state.attempt,
          .state = state,
          .finished_at = kNow,
          .problem = std::move(problem)};
}

template <class T>
T expect(Step step) {
  EXPECT_TRUE(std::holds_alternative<T>(step)) << "another step: " << step.index();
  return std::holds_alternative<T>(step) ? std::get<T>(std::move(step)) : T();
}

const Policy kPolicy = {.version = "v1"};

// Who gets a slot ----------------------------------------------------------------------------

TEST(TakeSlots, OneNodeAtATimeByName) {
  const Nodes nodes = nodes_of({ready("b"), ready("a"), ready("c")});

  EXPECT_THAT(take_slots(nodes, {}, kPolicy), ElementsAre("a"));
  EXPECT_THAT(take_slots(nodes, {"a"}, kPolicy), IsEmpty());
}

TEST(TakeSlots, OnlyNodesThatWantIt) {
  NodeView unsaid = ready("a");
  unsaid.wish = Wish::Unsaid;
  NodeView refused = ready("b");
  refused.wish = Wish::No;
  NodeView windows = ready("c");
  windows.is_linux = false;
  NodeView skipped = ready("d");
  skipped.is_skipped = true;
  NodeView leaving = ready("e");
  leaving.is_being_deleted = true;
  const Nodes nodes = nodes_of({unsaid, refused, windows, skipped, leaving});

  EXPECT_THAT(take_slots(nodes, {}, kPolicy), IsEmpty());
  EXPECT_THAT(
      take_slots(nodes, {},
                 {.version = "v1", .auto_provision = true, .max_unavailable = {.value = 9}}),
      ElementsAre("a"));
}

TEST(TakeSlots, ANodeThatIsNotReadyIsDownAndNotBegun) {
  NodeView down = ready("a");
  down.is_ready = false;
  const Nodes nodes = nodes_of({down, ready("b"), ready("c")});

  EXPECT_THAT(take_slots(nodes, {}, kPolicy), IsEmpty());
  EXPECT_THAT(take_slots(nodes, {}, {.version = "v1", .max_unavailable = {.value = 2}}),
              ElementsAre("b"));
  EXPECT_EQ(progress_of(nodes, {}, kPolicy).standing, Standing::Waiting);
}

TEST(TakeSlots, NobodyWhileOneIsFailed) {
  // Holds also while the node is retried.
  for (const Phase phase : {Phase::Failed, Phase::Installing, Phase::Verifying}) {
    NodeView broken = ready("b", in_phase(phase));
    broken.state.failures = 1;
    broken.state.last_error = "exit code 1: no";
    const Nodes nodes = nodes_of({ready("a"), broken, ready("c")});
    const Policy policy = {.version = "v1", .max_unavailable = {.value = 3}};

    EXPECT_THAT(take_slots(nodes, {"b"}, policy), IsEmpty());
    const Progress progress = progress_of(nodes, {"b"}, policy);
    EXPECT_EQ(progress.standing, Standing::Halted);
    EXPECT_THAT(progress.message, HasSubstr("node b failed: exit code 1: no"));
  }
}

TEST(TakeSlots, OthersAgainOnceTheFailedOneIsSkipped) {
  NodeView broken = ready("b", in_phase(Phase::Failed));
  broken.state.failures = 1;
  broken.is_skipped = true;
  const Nodes nodes = nodes_of({ready("a"), broken, ready("c")});

  EXPECT_THAT(give_slots_up(nodes, {"b"}, kPolicy), ElementsAre("b"));
  EXPECT_THAT(take_slots(nodes, {}, kPolicy), ElementsAre("a"));
}

TEST(TakeSlots, NobodyWhileOneInFlightHasLostItsSlot) {
  const Nodes nodes = nodes_of({ready("a"), ready("b", in_phase(Phase::Verifying))});

  EXPECT_THAT(take_slots(nodes, {}, kPolicy), IsEmpty());
  EXPECT_THAT(lost_slots(nodes, {}), ElementsAre("b"));
  EXPECT_THAT(lost_slots(nodes, {"b"}), IsEmpty());
}

TEST(TakeSlots, NodesOfAnotherVersion) {
  const Nodes nodes = nodes_of({ready("a", provisioned("v1")), ready("b", provisioned("v0"))});

  EXPECT_THAT(take_slots(nodes, {}, kPolicy), ElementsAre("b"));
  EXPECT_EQ(progress_of(nodes_of({ready("a", provisioned("v1"))}), {}, kPolicy), Progress{});
}

TEST(Share, IsAtLeastOneAndBounded) {
  EXPECT_EQ((Share{.value = 10, .is_percent = true}.of(500)), 50U);
  EXPECT_EQ((Share{.value = 10, .is_percent = true}.of(5)), 1U);
  EXPECT_EQ((Share{.value = 1'000'000}.of(5)), limits::kNodesInProgressMax);
}

// What one node needs next -------------------------------------------------------------------

TEST(NextStep, NothingIsBegunWithoutASlot) {
  expect<Rest>(next_step(ready("a"), {}, false, kPolicy, kNow));
  expect<Rest>(next_step(ready("a", in_phase(Phase::Installing)), {}, false, kPolicy, kNow));
}

TEST(NextStep, FromAnnotationToLabel) {
  NodeView node = ready("a");
  const auto begin = expect<WriteState>(next_step(node, {}, true, kPolicy, kNow));
  EXPECT_EQ(begin.state.phase, Phase::Installing);
  EXPECT_TRUE(begin.is_beginning);
  EXPECT_EQ(begin.labels, LabelChange::Keep);
  node.state = begin.state;

  EXPECT_EQ(expect<CreateJob>(next_step(node, {}, true, kPolicy, kNow)).action, Action::Install);
  NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Running)};
  expect<Rest>(next_step(node, jobs, true, kPolicy, kNow));

  jobs.install->state = JobState::Succeeded;
  const auto verify = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow));
  EXPECT_EQ(verify.state.phase, Phase::Verifying);
  EXPECT_EQ(verify.labels, LabelChange::Keep);
  node.state = verify.state;

  EXPECT_EQ(expect<Rest>(next_step(node, jobs, true, kPolicy, kNow)).until, kNow + 10s);
  const auto done = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow + 10s));
  EXPECT_EQ(done.state.phase, Phase::Provisioned);
  EXPECT_EQ(done.state.version, "v1");
  EXPECT_EQ(done.labels, LabelChange::Set);
  node.state = done.state;
  node.has_published_label = node.has_provisioned_label = true;

  const auto condition = expect<SetCondition>(next_step(node, jobs, false, kPolicy, kNow));
  EXPECT_TRUE(condition.is_true);
  node.condition_reason = condition.reason;
  node.condition_message = condition.message;
  expect<Rest>(next_step(node, jobs, false, kPolicy, kNow));
}

TEST(NextStep, NoLabelBeforeTheProbeHasPassed) {
  const Policy policy = {.version = "v1", .has_probe = true, .ready_min = 0s};
  const NodeView node = ready("a", in_phase(Phase::Verifying));

  EXPECT_EQ(expect<CreateJob>(next_step(node, {}, true, policy, kNow)).action, Action::Probe);
  NodeJobs jobs = {.probe = job_of(node, Action::Probe, JobState::Running)};
  expect<Rest>(next_step(node, jobs, true, policy, kNow));
  jobs.probe->state = JobState::Failed;
  jobs.probe->problem = "exit code 1";
  const auto failure = expect<WriteState>(next_step(node, jobs, true, policy, kNow));
  EXPECT_EQ(failure.state.phase, Phase::Failed);
  EXPECT_EQ(failure.state.last_error, "the probe failed: exit code 1");
  EXPECT_EQ(failure.labels, LabelChange::Remove);
  jobs.probe->state = JobState::Succeeded;
  EXPECT_EQ(expect<WriteState>(next_step(node, jobs, true, policy, kNow)).labels, LabelChange::Set);
}

TEST(NextStep, NoLabelBeforeTheNodeIsReadyAgain) {
  NodeView node = ready("a", in_phase(Phase::Verifying));
  node.is_ready = false;

  EXPECT_EQ(expect<Rest>(next_step(node, {}, true, kPolicy, kNow + 60s)).until, kNow + 300s);
  const auto failure = expect<WriteState>(next_step(node, {}, true, kPolicy, kNow + 300s));
  EXPECT_EQ(failure.state.phase, Phase::Failed);
  EXPECT_THAT(failure.state.last_error, HasSubstr("not Ready again"));
}

TEST(NextStep, AFailedNodeIsTriedAgainLaterAndLater) {
  NodeView node = ready("a", in_phase(Phase::Installing));
  for (const auto delay : {60s, 120s, 240s, 480s, 960s, 1800s, 1800s}) {
    const NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Failed, "no")};
    node.state = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow)).state;
    node.condition_reason = "InstallFailed";
    node.condition_message = "no";

    EXPECT_EQ(expect<Rest>(next_step(node, jobs, true, kPolicy, kNow)).until, kNow + delay);
    // The Job of the last attempt has the name of the next one's.
    EXPECT_EQ(expect<DeleteJob>(next_step(node, jobs, true, kPolicy, kNow + delay)).name,
              "a-provision-kwasm");
    node.state = expect<WriteState>(next_step(node, {}, true, kPolicy, kNow + delay)).state;
    node.state.since = kNow;
    EXPECT_EQ(node.state.phase, Phase::Installing);
  }
}

TEST(NextStep, AFailedNodeIsTriedAtOnceWhenAskedOrWithAnotherInstaller) {
  NodeView node = ready("a", in_phase(Phase::Failed));
  node.state.failures = 5;
  node.is_retry_asked = true;
  const auto asked = expect<WriteState>(next_step(node, {}, true, kPolicy, kNow));
  EXPECT_TRUE(asked.is_retry_over);
  node.is_retry_asked = false;

  const auto changed = expect<WriteState>(next_step(node, {}, true, {.version = "v2"}, kNow));
  EXPECT_EQ(changed.state.target, "v2");
}

TEST(NextStep, ATimeFarInTheFutureDelaysNothing) {
  NodeView node = ready("a", in_phase(Phase::Failed));
  node.state.since = kNow + 24h * 365;

  expect<WriteState>(next_step(node, {}, true, kPolicy, kNow));
}

TEST(NextStep, WithoutItsAnnotationANodeIsUndone) {
  NodeView node = ready("a", provisioned("v1"));
  node.wish = Wish::Unsaid;
  node.has_published_label = node.has_provisioned_label = true;
  const auto begin = expect<WriteState>(next_step(node, {}, true, kPolicy, kNow));
  EXPECT_EQ(begin.state.phase, Phase::Uninstalling);
  EXPECT_EQ(begin.labels, LabelChange::Unschedulable);
  node.state = begin.state;

  EXPECT_EQ(expect<CreateJob>(next_step(node, {}, true, kPolicy, kNow)).action, Action::Uninstall);
  NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Succeeded),
                   .uninstall = job_of(node, Action::Uninstall, JobState::Succeeded)};
  EXPECT_EQ(expect<Rest>(next_step(node, jobs, true, kPolicy, kNow)).until, kNow + 10s);
  const auto done = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow + 10s));
  EXPECT_EQ(done.state, NodeState{});
  EXPECT_EQ(done.labels, LabelChange::Remove);
  node.state = done.state;
  node.has_published_label = node.has_provisioned_label = false;
  node.condition_reason = "Provisioned";

  EXPECT_EQ(expect<DeleteJob>(next_step(node, jobs, false, kPolicy, kNow)).name,
            "a-provision-kwasm");
  EXPECT_EQ(expect<SetCondition>(next_step(node, {}, false, kPolicy, kNow)).reason, "");
}

TEST(NextStep, AnInstallerThatCannotUndoLeavesOnlyTheApiClean) {
  const Policy policy = {.version = "v1", .may_uninstall = false};
  NodeView node = ready("a", provisioned("v1"));
  node.wish = Wish::Unsaid;

  const auto write = expect<WriteState>(next_step(node, {}, false, policy, kNow));
  EXPECT_EQ(write.state, NodeState{});
  EXPECT_EQ(write.labels, LabelChange::Remove);
}

TEST(NextStep, AWishThatGoesDuringTheInstallIsFollowedWhenTheJobHasEnded) {
  NodeView node = ready("a", in_phase(Phase::Installing));
  node.wish = Wish::Unsaid;
  NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Running)};

  expect<Rest>(next_step(node, jobs, true, kPolicy, kNow));
  for (const JobState ended : {JobState::Succeeded, JobState::Failed}) {
    jobs.install->state = ended;
    EXPECT_EQ(expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow)).state.phase,
              Phase::Uninstalling);
  }
}

TEST(NextStep, AJobOfAnotherAttemptOrNodeIsReplaced) {
  const NodeView node = ready("a", in_phase(Phase::Installing));
  NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Succeeded)};
  jobs.install->attempt = 0;
  expect<DeleteJob>(next_step(node, jobs, true, kPolicy, kNow));
  jobs.install = job_of(node, Action::Install, JobState::Succeeded);
  jobs.install->node_uid = "of the node that had this name before";
  expect<DeleteJob>(next_step(node, jobs, true, kPolicy, kNow));
  jobs.install->is_being_deleted = true;
  expect<Rest>(next_step(node, jobs, true, kPolicy, kNow));
}

TEST(NextStep, WhatKeepsAJobFromStartingIsToldOnce) {
  NodeView node = ready("a", in_phase(Phase::Installing));
  const NodeJobs jobs = {
      .install = job_of(node, Action::Install, JobState::Running, "the image x cannot be pulled")};

  const auto told = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow));
  EXPECT_EQ(told.state.last_error, "the image x cannot be pulled");
  EXPECT_EQ(told.state.phase, Phase::Installing);
  node.state = told.state;
  expect<Rest>(next_step(node, jobs, true, kPolicy, kNow));
}

TEST(NextStep, AJobThatWaitsForAnImageIsGivenUpOnceAnotherOneIsNamed) {
  NodeView node = ready("a", in_phase(Phase::Installing));
  NodeJobs jobs = {
      .install = job_of(node, Action::Install, JobState::Running, "the image x cannot be pulled")};
  jobs.install->is_stuck = true;
  node.state.last_error = jobs.install->problem;
  expect<Rest>(next_step(node, jobs, true, kPolicy, kNow));

  const Policy mended = {.version = "v2"};
  node.state = expect<WriteState>(next_step(node, jobs, true, mended, kNow)).state;
  EXPECT_EQ(node.state.phase, Phase::Failed);
  EXPECT_EQ(expect<DeleteJob>(next_step(node, jobs, true, mended, kNow)).name, jobs.install->name);
  const auto begun = expect<WriteState>(next_step(node, {}, true, mended, kNow));
  EXPECT_EQ(begun.state.phase, Phase::Installing);
  EXPECT_EQ(begun.state.target, "v2");
}

TEST(NextStep, AJobThatWaitsForAnImageIsGivenUpWithTheWish) {
  NodeView node = ready("a", in_phase(Phase::Installing));
  node.wish = Wish::Unsaid;
  NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Running, "no image")};
  jobs.install->is_stuck = true;

  node.state = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow)).state;
  EXPECT_EQ(node.state.phase, Phase::Failed);
  EXPECT_EQ(expect<DeleteJob>(next_step(node, jobs, true, kPolicy, kNow)).name, jobs.install->name);
  EXPECT_EQ(expect<WriteState>(next_step(node, {}, true, kPolicy, kNow)).state.phase,
            Phase::Uninstalling);
}

TEST(NextStep, AJobThatRanOutOfTimeFailedForWhatKeptItFromStarting) {
  NodeView node = ready("a", in_phase(Phase::Installing));
  node.state.last_error = "the image x cannot be pulled";
  NodeJobs jobs = {.install = job_of(node, Action::Install, JobState::Failed, "too late")};
  jobs.install->is_out_of_time = true;

  node.state = expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow)).state;
  EXPECT_EQ(node.state.last_error, "too late; before that: the image x cannot be pulled");
  node.state.phase = Phase::Installing;
  EXPECT_EQ(expect<WriteState>(next_step(node, jobs, true, kPolicy, kNow)).state.last_error,
            "too late; before that: the image x cannot be pulled");
}

TEST(NextStep, TheLabelOfWhoProvisionedBeforeUsStaysUntilWeHave) {
  NodeView node = ready("a");
  node.has_published_label = true;

  EXPECT_EQ(expect<WriteState>(next_step(node, {}, true, kPolicy, kNow)).labels, LabelChange::Keep);
}

TEST(NextStep, ALabelThatSomebodyRemovedComesBack) {
  NodeView node = ready("a", provisioned("v1"));
  node.has_published_label = true;

  const auto write = expect<WriteState>(next_step(node, {}, false, kPolicy, kNow));
  EXPECT_EQ(write.labels, LabelChange::Set);
  EXPECT_EQ(write.state, node.state);
}

// Everything at once -------------------------------------------------------------------------

// The part of the API server that provisioning uses.
struct Server {
  Nodes nodes;
  std::map<std::string, JobView> jobs;  // By name.
  Record record;
  std::uint64_t version = 1;
  WallTime now = kNow;
  std::map<std::string, int> install_count;  // How many Jobs were created, by node.

  std::string next_version() { return fmt::format("{}", ++version); }

  NodeJobs jobs_of(const std::string& node) const {
    const auto look = [&](Action action) -> std::optional<JobView> {
      const auto found = jobs.find(job_name(node, action));
      return found == jobs.end() ? std::nullopt : std::optional(found->second);
    };
    return {.install = look(Action::Install),
            .uninstall = look(Action::Uninstall),
            .probe = look(Action::Probe)};
  }
};

// A host with its caches and a pending write of the record. It does the same as NodeController, in
// the same order.
class SimulatedHost {
 public:
  SimulatedHost(Server& server, Policy policy) : server_(server), policy_(std::move(policy)) {}

  void see_nodes() { nodes_ = server_.nodes; }
  void see_jobs() { jobs_ = server_; }

  // Reads the nodes whose slots may be given up, and decides; the write comes later.
  void roll_out() {
    if (!record_) record_ = server_.record;
    Record next = *record_;
    for (const std::string& name : std::exchange(next.leaving, {})) {
      const auto live = server_.nodes.find(name);
      if (live == server_.nodes.end() || may_give_up(live->second, policy_)) next.slots.erase(name);
    }
    for (const std::string& name : lost_slots(nodes_, next.slots)) {
      const auto live = server_.nodes.find(name);
      if (live != server_.nodes.end() && is_in_flight(live->second.state.phase)) {
        next.slots.insert(name);
      }
    }
    for (const std::string& name : give_slots_up(nodes_, next.slots, policy_))
      next.leaving.insert(name);
    for (const std::string& name : take_slots(nodes_, next.slots, policy_))
      next.slots.insert(name);
    pending_ = std::move(next);
  }
  void write_record() {
    if (!pending_) return;
    Record next = *std::exchange(pending_, std::nullopt);
    if (next.resource_version != server_.record.resource_version) {
      record_.reset();
      return;
    }
    if (next == server_.record) return;
    next.resource_version = server_.next_version();
    record_ = server_.record = next;
  }

  // True when it did something.
  bool work_on(const std::string& name) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return false;
    const NodeView& node = found->second;
    const bool has_slot = record_ && record_->has_slot(name);
    const Step step = next_step(node, jobs_.jobs_of(name), has_slot, policy_, server_.now);
    if (std::holds_alternative<Rest>(step)) return false;
    const auto live = server_.nodes.find(name);
    if (const auto* change = std::get_if<WriteState>(&step)) {
      if (change->is_beginning) {
        record_ = server_.record;
        if (!record_->has_slot(name)) return true;
      }
      if (live != server_.nodes.end() && live->second.resource_version == node.resource_version) {
        apply(live->second, *change);
      }
    } else if (const auto* job = std::get_if<CreateJob>(&step)) {
      if (live != server_.nodes.end() && live->second.uid == node.uid &&
          live->second.state == node.state) {
        create(live->second, job->action);
      }
    } else if (const auto* gone = std::get_if<DeleteJob>(&step)) {
      const auto there = server_.jobs.find(gone->name);
      if (live != server_.nodes.end() && live->second.state == node.state &&
          there != server_.jobs.end() && there->second.uid == gone->uid) {
        server_.jobs.erase(there);
      }
    } else if (live != server_.nodes.end()) {
      live->second.condition_reason = std::get<SetCondition>(step).reason;
      live->second.condition_message = std::get<SetCondition>(step).message;
      live->second.resource_version = server_.next_version();
    }
    return true;
  }

 private:
  void apply(NodeView& node, const WriteState& change) {
    node.state = change.state;
    if (change.labels == LabelChange::Set) {
      node.has_published_label = node.has_provisioned_label = true;
    } else if (change.labels == LabelChange::Remove) {
      node.has_published_label = node.has_foreign_label = node.has_provisioned_label = false;
    } else if (change.labels == LabelChange::Unschedulable) {
      node.has_provisioned_label = false;
    }
    if (change.is_retry_over) node.is_retry_asked = false;
    node.resource_version = server_.next_version();
  }
  void create(const NodeView& node, Action action) {
    const std::string name = job_name(node.name, action);
    if (server_.jobs.contains(name)) return;
    server_.jobs[name] = {.name = name,
                          .uid = server_.next_version(),
                          .node = node.name,
                          .node_uid = node.uid,
                          .action = action,
                          .attempt = node.state.attempt};
    if (action == Action::Install) ++server_.install_count[node.name];
  }

  Server& server_;
  const Policy policy_;
  Nodes nodes_;
  Server jobs_;  // An earlier state, used only for its Jobs.
  std::optional<Record> record_;
  std::optional<Record> pending_;
};

struct Chaos {
  std::size_t node_count = 9;
  std::size_t max_unavailable = 1;
  std::size_t host_count = 2;
  bool jobs_fail = false;
  bool users_change_their_minds = false;
  bool nodes_come_and_go = false;
};

class Simulation {
 public:
  Simulation(const Chaos& chaos, std::uint64_t seed) : chaos_(chaos), random_(seed) {
    for (std::size_t index = 0; index < chaos.node_count; ++index) {
      const std::string name = fmt::format("n{:02}", index);
      server_.nodes[name] = ready(name);
    }
    policy_ = {.version = "v1",
               .max_unavailable = {.value = chaos.max_unavailable},
               .has_probe = true,
               .ready_min = 5s,
               .retry_min = 60s};
    for (std::size_t index = 0; index < chaos.host_count; ++index)
      hosts_.emplace_back(server_, policy_);
  }

  void run(int moves) {
    for (int move = 0; move < moves && !testing::Test::HasFailure(); ++move) {
      one_move();
      check();
    }
  }

  // From here every host sees all changes and no step fails: the rollout has to converge.
  void settle() {
    for (auto& [name, node] : server_.nodes) {
      node.is_ready = true;
      node.resource_version = server_.next_version();
    }
    std::uint64_t version = 0;
    // Deleted and ended Jobs do not change the version.
    for (int quiet = 0, round = 0; quiet < 5 && round < 400; ++round) {
      quiet = version == server_.version ? quiet + 1 : 0;
      version = server_.version;
      // Longer than any back-off.
      server_.now += 1h;
      for (auto& [name, job] : server_.jobs)
        end(job, JobState::Succeeded);
      for (SimulatedHost& host : hosts_) {
        host.see_nodes();
        host.see_jobs();
        host.roll_out();
        host.write_record();
        for (const auto& [name, node] : Nodes(server_.nodes))
          host.work_on(name);
        check();
      }
    }
    for (const auto& [name, node] : server_.nodes) {
      const bool is_wanted = node.wish == Wish::Yes;
      EXPECT_EQ(node.state.phase, is_wanted ? Phase::Provisioned : Phase::None) << name;
      EXPECT_EQ(node.has_published_label, is_wanted) << name;
      EXPECT_EQ(node.has_provisioned_label, is_wanted) << name;
    }
    EXPECT_THAT(server_.record.slots, IsEmpty());
  }

  const Server& server() const { return server_; }

 private:
  std::size_t pick(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  NodeView& any_node() {
    return std::next(server_.nodes.begin(), static_cast<std::ptrdiff_t>(pick(server_.nodes.size())))
        ->second;
  }
  SimulatedHost& any_host() { return hosts_[pick(hosts_.size())]; }

  void end(JobView& job, JobState state) {
    if (job.state != JobState::Running) return;
    job.state = state;
    job.finished_at = server_.now;
    if (state == JobState::Failed) job.problem = "exit code 1";
  }

  void one_move() {
    switch (pick(chaos_.users_change_their_minds || chaos_.nodes_come_and_go ? 24 : 22)) {
      case 0:
      case 1:
        return any_host().see_nodes();
      case 2:
      case 3:
        return any_host().see_jobs();
      case 4:
      case 5:
        return any_host().roll_out();
      case 6:
      case 7:
        return any_host().write_record();
      case 8:
      case 9:
        for (auto& [name, job] : server_.jobs) {
          if (pick(3) == 0) {
            end(job, chaos_.jobs_fail && pick(4) == 0 ? JobState::Failed : JobState::Succeeded);
          }
        }
        return;
      case 10:
        server_.now += 2s;
        return;
      case 11:
        if (chaos_.jobs_fail) server_.now += 40s;
        return;
      case 22:
      case 23:
        return surprise();
      default:
        any_host().work_on(any_node().name);
    }
  }

  void surprise() {
    NodeView& node = any_node();
    if (chaos_.users_change_their_minds && pick(2) == 0) {
      switch (pick(4)) {
        case 0:
          node.is_skipped = !node.is_skipped;
          break;
        case 1:
          node.is_retry_asked = true;
          break;
        default:
          node.wish = node.wish == Wish::Yes ? Wish::Unsaid : Wish::Yes;
      }
      node.resource_version = server_.next_version();
    }
    if (chaos_.nodes_come_and_go && pick(4) == 0) {
      // Deleted with its Jobs, and registered again.
      const std::string name = node.name;
      std::erase_if(server_.jobs, [&](const auto& job) { return job.second.node == name; });
      node = ready(name);
      node.uid = node.resource_version = server_.next_version();
    }
  }

  void check() const {
    std::size_t in_flight = 0;
    for (const auto& [name, node] : server_.nodes) {
      if (is_in_flight(node.state.phase)) {
        ++in_flight;
        EXPECT_TRUE(server_.record.slots.contains(name)) << name << " has no slot";
      }
      if (node.state.phase == Phase::Provisioned && node.has_provisioned_label) {
        EXPECT_EQ(node.state.last_error, "") << name;
      }
    }
    EXPECT_LE(in_flight, chaos_.max_unavailable) << "too many in flight";
    EXPECT_LE(server_.record.slots.size(), chaos_.max_unavailable) << "too many slots";
    std::set<std::string> at_work;
    for (const auto& [name, job] : server_.jobs) {
      if (job.state == JobState::Running && job.action != Action::Probe) at_work.insert(job.node);
    }
    EXPECT_LE(at_work.size(), chaos_.max_unavailable) << "too many nodes at work";
  }

  const Chaos chaos_;
  std::mt19937_64 random_;
  Policy policy_;
  Server server_;
  std::vector<SimulatedHost> hosts_;
};

constexpr std::uint64_t kSeeds = 16;

TEST(Rollout, EveryNodeOnceHoweverTwoHostsInterleave) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Simulation simulation({.max_unavailable = 1 + seed % 4}, seed);

    simulation.run(3000);
    simulation.settle();

    for (const auto& [name, node] : simulation.server().nodes)
      EXPECT_EQ(simulation.server().install_count.at(name), 1) << name;
  }
}

TEST(Rollout, KeepsItsPromisesWhileJobsFail) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Simulation simulation({.max_unavailable = 1 + seed % 4, .jobs_fail = true}, seed);

    simulation.run(3000);
    simulation.settle();
  }
}

TEST(Rollout, KeepsItsPromisesWhileUsersChangeTheirMindsAndNodesComeAndGo) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Simulation simulation({.max_unavailable = 1 + seed % 4,
                           .jobs_fail = true,
                           .users_change_their_minds = true,
                           .nodes_come_and_go = true},
                          seed);

    simulation.run(4000);
  }
}

}  // namespace
}  // namespace hangar::nodes
