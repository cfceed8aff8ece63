// The input of decisions about a node, as plain values: its Node object, our annotations on it, and
// the Jobs that work on it.
//
// All state that must survive a host is on the Node itself. Others may have written its
// annotations: unreadable ones count as absent.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "nodes/names.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::nodes {

[[nodiscard]] kube::Resource node_resource();
[[nodiscard]] kube::Resource job_resource();

enum class Phase : std::uint8_t {
  None,        // Not provisioned, and no work in progress.
  Installing,  // The install Job runs.
  Verifying,   // That Job has succeeded: the node has to become Ready, and the probe to pass.
  Provisioned,
  Uninstalling,  // The uninstall Job runs, or the node is not Ready again yet.
  Failed,        // `action` failed; it will be retried.
};
inline constexpr std::array kPhases = {Phase::None,        Phase::Installing,   Phase::Verifying,
                                       Phase::Provisioned, Phase::Uninstalling, Phase::Failed};
[[nodiscard]] std::string_view name_of(Phase phase);

// True while work is in progress that may make the node unavailable.
[[nodiscard]] constexpr bool is_in_flight(Phase phase) {
  return phase == Phase::Installing || phase == Phase::Verifying || phase == Phase::Uninstalling;
}

// The annotations nodes.hangar.dev/...
struct NodeState {
  Phase phase = Phase::None;
  Action action = Action::Install;  // The action of the phase: Install or Uninstall.
  std::int64_t attempt = 0;         // Grows with each start of an action.
  std::int64_t failures = 0;        // Consecutive failures.
  WallTime since;                   // Start of the phase.
  std::string version = {};         // The version with which the node is provisioned.
  std::string target = {};          // The version of the current or last attempt.
  std::string last_error = {};

  bool operator==(const NodeState&) const = default;
};

enum class Wish : std::uint8_t { Unsaid, Yes, No };

struct NodeView {
  std::string name;
  std::string uid;
  std::string resource_version;
  Wish wish = Wish::Unsaid;
  bool is_skipped = false;
  bool is_retry_asked = false;
  bool is_ready = false;
  bool is_linux = true;
  bool is_being_deleted = false;
  bool has_published_label = false;  // With the correct value for this node.
  bool has_provisioned_label = false;
  bool has_foreign_label = false;     // The published label with another value.
  std::string condition_reason = {};  // Reason of our condition; empty: there is none.
  std::string condition_message = {};
  NodeState state = {};

  bool operator==(const NodeView&) const = default;
};
[[nodiscard]] NodeView node_view(const json::Value& node);

// Equal except for the version of the object: the Node was written without a change that
// matters here.
[[nodiscard]] bool is_same_to_us(const NodeView& left, const NodeView& right);

// The same node with the same NodeState: a decision about `left` also holds for `right`.
[[nodiscard]] bool is_in_same_state(const NodeView& left, const NodeView& right);

enum class JobState : std::uint8_t { Running, Succeeded, Failed };

struct JobView {
  std::string name;
  std::string uid;
  std::string node;  // Name of its owner.
  std::string node_uid;
  std::optional<Action> action = {};  // Unset: not created by hangar.
  std::int64_t attempt = 0;
  JobState state = JobState::Running;
  WallTime finished_at;
  bool is_being_deleted = false;
  std::string problem = {};     // Why it failed, or is stuck.
  bool is_out_of_time = false;  // Why it failed.
  bool is_stuck = false;        // No container has run, and may never: an image cannot be pulled.

  bool operator==(const JobView&) const = default;
};
[[nodiscard]] JobView job_view(const json::Value& job);

// Why a pod has failed ("exit code 1: no containerd configuration found") or is stuck (its image
// cannot be pulled); empty for a healthy pod.
[[nodiscard]] std::string pod_problem(const json::Value& pod);

// The pod has a problem before any of its containers has run.
[[nodiscard]] bool is_pod_stuck(const json::Value& pod);

// The Jobs of one node, by action.
struct NodeJobs {
  std::optional<JobView> install = {};
  std::optional<JobView> uninstall = {};
  std::optional<JobView> probe = {};

  [[nodiscard]] const std::optional<JobView>& of(Action action) const;
};

}  // namespace hangar::nodes
