// What decisions about a node read: its Node object, our annotations on it, and the Jobs that work
// on it, as plain values.
//
// Everything that must survive a host is on the Node itself. Anyone may have written its
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
  None,        // Nothing of ours is on it.
  Installing,  // The install Job runs.
  Verifying,   // It has succeeded: the node has to be Ready, and a probe to run.
  Provisioned,
  Uninstalling,  // The uninstall Job runs, or the node is not Ready again yet.
  Failed,        // `action` failed; it will be retried.
};
inline constexpr std::array kPhases = {Phase::None,        Phase::Installing,   Phase::Verifying,
                                       Phase::Provisioned, Phase::Uninstalling, Phase::Failed};
[[nodiscard]] std::string_view name_of(Phase phase);

// Work is under way that may make the node unavailable.
[[nodiscard]] constexpr bool is_in_flight(Phase phase) {
  return phase == Phase::Installing || phase == Phase::Verifying || phase == Phase::Uninstalling;
}

// The annotations nodes.hangar.dev/...
struct NodeState {
  Phase phase = Phase::None;
  Action action = Action::Install;  // What the phase belongs to: Install or Uninstall.
  std::int64_t attempt = 0;         // Grows with each start of an action.
  std::int64_t failures = 0;        // In a row.
  WallTime since;                   // Of the phase.
  std::string version = {};  // The installer's image that the node has been provisioned with.
  std::string target = {};   // The one being, or last, tried.
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
  bool has_published_label = false;  // With the value that is right for this node.
  bool has_provisioned_label = false;
  bool has_foreign_label = false;     // The published label with another value.
  std::string condition_reason = {};  // Of our condition; empty: there is none.
  std::string condition_message = {};
  NodeState state = {};

  bool operator==(const NodeView&) const = default;
};
[[nodiscard]] NodeView node_view(const json::Value& node);

// Equal except for the version of the object: a write of the Node changed nothing that
// matters here.
[[nodiscard]] bool is_same_to_us(const NodeView& left, const NodeView& right);

// The same node, in the same state of ours: what was decided about `left` holds for `right`.
[[nodiscard]] bool is_in_same_state(const NodeView& left, const NodeView& right);

enum class JobState : std::uint8_t { Running, Succeeded, Failed };

struct JobView {
  std::string name;
  std::string uid;
  std::string node;  // Of its owner.
  std::string node_uid;
  std::optional<Action> action = {};  // None: not created by hangar.
  std::int64_t attempt = 0;
  JobState state = JobState::Running;
  WallTime finished_at;
  bool is_being_deleted = false;
  std::string problem = {};     // Why it failed, or is stuck.
  bool is_out_of_time = false;  // Why it failed.
  bool is_stuck = false;        // Nothing has run yet, and may never: its image cannot be pulled.

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
