#include "nodes/rollout.h"

#include "base/backoff.h"
#include "nodes/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace hangar::nodes {

namespace {

bool takes_slot(Need need) {
  return need == Need::Install || need == Need::Uninstall;
}

// The node failed, and has not been seen to work since.
bool is_halting(const NodeView& node, const Policy& policy) {
  return node.state.failures > 0 && takes_slot(need_of(node, policy));
}

bool has_our_condition(const NodeView& node) {
  return !node.condition_reason.empty();
}

// The condition for a node without work in progress.
SetCondition condition_of(const NodeView& node) {
  const NodeState& state = node.state;
  if (state.phase == Phase::Provisioned) {
    return {.is_true = true, .reason = "Provisioned", .message = "provisioned by " + state.version};
  }
  if (state.phase == Phase::Failed) {
    return {.reason = state.action == Action::Uninstall ? "UninstallFailed" : "InstallFailed",
            .message = state.last_error};
  }
  return {};
}

// Old Jobs may have the names that `action` is going to need.
std::optional<Step> clear(const NodeJobs& jobs, std::initializer_list<Action> actions) {
  for (const Action one : actions) {
    const std::optional<JobView>& job = jobs.of(one);
    if (!job) continue;
    if (job->is_being_deleted) return Rest{};
    return DeleteJob{.name = job->name, .uid = job->uid};
  }
  return std::nullopt;
}

Step begin(const NodeView& node, const NodeJobs& jobs, Action action, const Policy& policy,
           WallTime now) {
  const bool is_install = action == Action::Install;
  std::optional<Step> first =
      is_install ? clear(jobs, {Action::Install, Action::Probe}) : clear(jobs, {Action::Uninstall});
  // An install Job that was abandoned while it was stuck must not install later.
  if (!is_install && !first && jobs.install && jobs.install->state == JobState::Running)
    first = clear(jobs, {Action::Install});
  if (first) return *std::move(first);
  NodeState state = node.state;
  // A new action starts without failures; the last error stays visible until the action succeeds.
  if (state.action != action || state.phase != Phase::Failed) state.failures = 0;
  state.phase = is_install ? Phase::Installing : Phase::Uninstalling;
  state.action = action;
  ++state.attempt;
  state.since = now;
  if (is_install) state.target = policy.version;
  return WriteState{.state = std::move(state),
                    .labels = is_install ? LabelChange::Keep : LabelChange::Unschedulable,
                    .is_beginning = true,
                    .is_retry_over = node.is_retry_asked};
}

// The age of a time. Clocks of other machines may be slightly ahead; hangar did not write a time
// far in the future.
Duration age_of(WallTime from, WallTime now) {
  constexpr std::chrono::minutes kSkewMax{5};
  if (from > now + kSkewMax) return Duration::max();
  return std::max<Duration>(now - from, Duration::zero());
}

// A rest for the remainder of `delay`, of which `age` has passed; std::nullopt when all has passed.
std::optional<Rest> rest(Duration age, Duration delay, WallTime now) {
  if (age >= delay) return std::nullopt;
  return Rest{.until = now + std::chrono::ceil<WallTime::duration>(delay - age)};
}

// A rest until the node has been Ready for long enough after `from`.
std::optional<Step> gate(const NodeView& node, WallTime from, const Policy& policy, WallTime now) {
  const Duration age = age_of(from, now);
  if (const std::optional<Rest> wait = rest(age, policy.ready_min, now)) return *wait;
  if (node.is_ready) return std::nullopt;
  if (const std::optional<Rest> wait = rest(age, policy.ready_max, now)) return *wait;
  return failed(node, "the node is not Ready again after the installer has run", now);
}

WriteState settled(const NodeView& node, WallTime now) {
  NodeState state = node.state;
  state.phase = Phase::Provisioned;
  state.failures = 0;
  state.since = now;
  state.version = std::exchange(state.target, "");
  state.last_error.clear();
  return {.state = std::move(state), .labels = LabelChange::Set};
}

// The state of a Job that has to exist: created if it is missing, replaced if it is an old one.
struct Awaited {
  std::optional<Step> step = {};   // The step that has to come first.
  const JobView* ended = nullptr;  // Set if there is no such step.
};
Awaited await_job(const NodeView& node, const NodeJobs& jobs, Action action) {
  const std::optional<JobView>& job = jobs.of(action);
  if (!job) return {.step = CreateJob{.action = action}};
  if (!is_for(*job, action, node)) return {.step = clear(jobs, {action})};
  if (job->state != JobState::Running) return {.ended = &*job};
  if (job->problem.empty() || job->problem == node.state.last_error) return {.step = Rest{}};
  NodeState state = node.state;
  state.last_error = job->problem;
  return {.step = WriteState{.state = std::move(state)}};
}

// A Job that ran out of time has no more pods that could name the cause; an earlier error may
// name it.
std::string problem_of(const NodeView& node, const JobView& job) {
  const std::string& before = node.state.last_error;
  if (!job.is_out_of_time || before.empty()) return job.problem;
  if (before.contains(job.problem)) return before;
  return fmt::format("{}; before that: {}", job.problem, before);
}

// The Job waits for an image that is no longer requested.
bool is_in_vain(const NodeView& node, const std::optional<JobView>& job, const Policy& policy) {
  return job && job->is_stuck && job->state == JobState::Running &&
         is_for(*job, Action::Install, node) &&
         (!is_wanted(node, policy) || node.state.target != policy.version);
}

Step installing(const NodeView& node, const NodeJobs& jobs, const Policy& policy, WallTime now) {
  if (is_in_vain(node, jobs.install, policy)) return failed(node, jobs.install->problem, now);
  Awaited awaited = await_job(node, jobs, Action::Install);
  if (awaited.step) return *std::move(awaited.step);
  // The request was withdrawn meanwhile: uninstall, whatever the result of the Job, with the
  // same slot.
  if (!is_wanted(node, policy) && policy.may_uninstall) {
    return begin(node, jobs, Action::Uninstall, policy, now);
  }
  if (awaited.ended->state == JobState::Failed)
    return failed(node, problem_of(node, *awaited.ended), now);
  NodeState state = node.state;
  state.phase = Phase::Verifying;
  state.since = now;
  return WriteState{.state = std::move(state)};
}

Step verifying(const NodeView& node, const NodeJobs& jobs, const Policy& policy, WallTime now) {
  if (!is_wanted(node, policy) && policy.may_uninstall) {
    return begin(node, jobs, Action::Uninstall, policy, now);
  }
  if (std::optional<Step> first = gate(node, node.state.since, policy, now)) {
    return *std::move(first);
  }
  if (policy.has_probe) {
    Awaited awaited = await_job(node, jobs, Action::Probe);
    if (awaited.step) return *std::move(awaited.step);
    if (awaited.ended->state == JobState::Failed) {
      return failed(node, "the probe failed: " + awaited.ended->problem, now);
    }
  }
  return settled(node, now);
}

Step uninstalling(const NodeView& node, const NodeJobs& jobs, const Policy& policy, WallTime now) {
  Awaited awaited = await_job(node, jobs, Action::Uninstall);
  if (awaited.step) return *std::move(awaited.step);
  if (awaited.ended->state == JobState::Failed)
    return failed(node, problem_of(node, *awaited.ended), now);
  if (std::optional<Step> first = gate(node, awaited.ended->finished_at, policy, now)) {
    return *std::move(first);
  }
  return WriteState{.labels = LabelChange::Remove};
}

Step retrying(const NodeView& node, const NodeJobs& jobs, const Policy& policy, WallTime now) {
  const Action action =
      need_of(node, policy) == Need::Uninstall ? Action::Uninstall : Action::Install;
  const bool is_new = action != node.state.action ||
                      (action == Action::Install && node.state.target != policy.version);
  if (!node.is_ready) return Rest{};
  if (!is_new && !node.is_retry_asked) {
    const Duration age = age_of(node.state.since, now);
    if (const std::optional<Rest> wait = rest(age, retry_delay(node.state, policy), now)) {
      return *wait;
    }
  }
  return begin(node, jobs, action, policy, now);
}

// No work on the node is needed: only labels, annotations and old Jobs have to be updated.
Step tidy_up(const NodeView& node, const NodeJobs& jobs) {
  if (node.state.phase == Phase::Provisioned) {
    if (node.has_published_label && node.has_provisioned_label) return Rest{};
    return WriteState{.state = node.state, .labels = LabelChange::Set};
  }
  if (node.has_published_label || node.has_foreign_label || node.has_provisioned_label ||
      node.state != NodeState{}) {
    return WriteState{.labels = LabelChange::Remove};
  }
  return clear(jobs, {Action::Install, Action::Uninstall, Action::Probe}).value_or(Rest{});
}

Step step_of(const NodeView& node, const NodeJobs& jobs, bool has_slot, const Policy& policy,
             WallTime now) {
  if (is_in_flight(node.state.phase)) {
    if (!has_slot) return Rest{};
    if (node.state.phase == Phase::Installing) return installing(node, jobs, policy, now);
    if (node.state.phase == Phase::Verifying) return verifying(node, jobs, policy, now);
    return uninstalling(node, jobs, policy, now);
  }
  if (node.is_skipped) return Rest{};
  const Need need = need_of(node, policy);
  if (need == Need::Forget) return WriteState{.labels = LabelChange::Remove};
  if (need == Need::Nothing) return tidy_up(node, jobs);
  if (!has_slot) return Rest{};
  if (node.state.phase == Phase::Failed) return retrying(node, jobs, policy, now);
  if (!node.is_ready) return Rest{};
  return begin(node, jobs, need == Need::Install ? Action::Install : Action::Uninstall, policy,
               now);
}

}  // namespace

std::size_t Share::of(std::size_t fleet_size) const {
  const std::size_t count = is_percent ? fleet_size * value / 100 : value;
  return std::clamp<std::size_t>(count, 1, limits::kNodesInProgressMax);
}

bool is_wanted(const NodeView& node, const Policy& policy) {
  if (!node.is_linux || node.is_being_deleted) return false;
  return node.wish == Wish::Yes || (policy.auto_provision && node.wish != Wish::No);
}

Need need_of(const NodeView& node, const Policy& policy) {
  if (node.is_skipped || node.is_being_deleted) return Need::Nothing;
  const NodeState& state = node.state;
  if (is_wanted(node, policy)) {
    const bool is_done = state.phase == Phase::Provisioned && state.version == policy.version;
    return is_done ? Need::Nothing : Need::Install;
  }
  if (state.phase == Phase::None && state.version.empty()) return Need::Nothing;
  return policy.may_uninstall ? Need::Uninstall : Need::Forget;
}

bool is_of_fleet(const NodeView& node, const Policy& policy) {
  if (is_in_flight(node.state.phase)) return true;
  return !node.is_skipped && (is_wanted(node, policy) || node.state.phase != Phase::None);
}

bool may_give_up(const NodeView& node, const Policy& policy) {
  return !is_in_flight(node.state.phase) && !takes_slot(need_of(node, policy));
}

std::vector<std::string> give_slots_up(const Nodes& nodes, const Slots& slots,
                                       const Policy& policy) {
  std::vector<std::string> result;
  for (const std::string& name : slots) {
    const auto node = nodes.find(name);
    if (node == nodes.end() || may_give_up(node->second, policy)) result.push_back(name);
  }
  return result;
}

std::vector<std::string> lost_slots(const Nodes& nodes, const Slots& slots) {
  std::vector<std::string> result;
  for (const auto& [name, node] : nodes) {
    if (is_in_flight(node.state.phase) && !slots.contains(name)) result.push_back(name);
  }
  return result;
}

std::vector<std::string> take_slots(const Nodes& nodes, const Slots& slots, const Policy& policy) {
  std::vector<std::string> result;
  std::size_t fleet_size = 0;
  std::size_t down_count = slots.size();
  bool is_halted = false;
  for (const auto& [name, node] : nodes) {
    if (!is_of_fleet(node, policy)) continue;
    ++fleet_size;
    is_halted = is_halted || is_halting(node, policy);
    if (slots.contains(name)) continue;
    if (is_in_flight(node.state.phase) || !node.is_ready) ++down_count;
  }
  const std::size_t max = policy.max_unavailable.of(fleet_size);
  for (const auto& [name, node] : nodes) {
    if (down_count >= max) break;
    if (slots.contains(name) || is_in_flight(node.state.phase) || !node.is_ready) continue;
    if (!takes_slot(need_of(node, policy))) continue;
    if (is_halted && node.state.phase != Phase::Failed) continue;
    result.push_back(name);
    ++down_count;
  }
  return result;
}

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::Done:
      return "Done";
    case Standing::Rolling:
      return "Rolling";
    case Standing::Waiting:
      return "Waiting";
    case Standing::Halted:
      break;
  }
  return "Halted";
}

Progress progress_of(const Nodes& nodes, const Slots& slots, const Policy& policy) {
  const NodeView* unready = nullptr;
  bool is_waited_for = false;
  for (const auto& [name, node] : nodes) {
    if (is_halting(node, policy)) {
      return {.standing = Standing::Halted,
              .message = fmt::format(
                  "node {} failed: {}; hangar starts no other node until this one succeeds "
                  "or is skipped with the annotation {}=true",
                  name, node.state.last_error, kSkipAnnotation)};
    }
    if (!is_of_fleet(node, policy)) continue;
    if (!node.is_ready && unready == nullptr) unready = &node;
    is_waited_for =
        is_waited_for || is_in_flight(node.state.phase) || takes_slot(need_of(node, policy));
  }
  if (!is_waited_for && slots.empty()) return {};
  if (slots.empty() && unready != nullptr) {
    return {.standing = Standing::Waiting,
            .message = fmt::format("node {} is not Ready", unready->name)};
  }
  return {.standing = Standing::Rolling};
}

Step next_step(const NodeView& node, const NodeJobs& jobs, bool has_slot, const Policy& policy,
               WallTime now) {
  if (node.is_being_deleted) return Rest{};
  Step step = step_of(node, jobs, has_slot, policy, now);
  if (!std::holds_alternative<Rest>(step) || is_in_flight(node.state.phase)) return step;
  SetCondition condition = condition_of(node);
  if (condition.reason.empty() && !has_our_condition(node)) return step;
  if (condition.reason == node.condition_reason && condition.message == node.condition_message) {
    return step;
  }
  return condition;
}

WriteState failed(const NodeView& node, std::string error, WallTime now) {
  NodeState state = node.state;
  state.phase = Phase::Failed;
  ++state.failures;
  state.since = now;
  state.last_error = std::move(error);
  // Whether Wasm works on the node now is unknown.
  const auto labels =
      state.action == Action::Uninstall ? LabelChange::Unschedulable : LabelChange::Remove;
  return {.state = std::move(state), .labels = labels};
}

Duration retry_delay(const NodeState& state, const Policy& policy) {
  const ExponentialBackoff backoff{
      .min = policy.retry_min, .max = std::max<Duration>(policy.retry_min, limits::kNodeRetryMax)};
  return backoff.delay(static_cast<std::uint64_t>(std::max<std::int64_t>(state.failures - 1, 0)));
}

bool is_for(const JobView& job, Action action, const NodeView& node) {
  return job.action == action && job.node_uid == node.uid && job.attempt == node.state.attempt &&
         !job.is_being_deleted;
}

}  // namespace hangar::nodes
