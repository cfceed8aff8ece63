// What decisions about a node look at: its Node object, what we wrote on it, and the Jobs that work
// on it, as plain values.
//
// Everything that must survive a host is on the Node itself. Its annotations may have been written
// by anybody: what cannot be read counts as not written.
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
  None,        // We have nothing on it.
  Installing,  // The install Job is at work.
  Verifying,   // It has succeeded: the node has to be Ready, and a probe to run.
  Provisioned,
  Uninstalling,  // The uninstall Job is at work, or the node not Ready again yet.
  Failed,        // `action` failed; it is tried again.
};
inline constexpr std::array kPhases = {Phase::None,        Phase::Installing,   Phase::Verifying,
                                       Phase::Provisioned, Phase::Uninstalling, Phase::Failed};
[[nodiscard]] std::string_view name_of(Phase phase);

// Something is being done to the node that may make it unavailable.
[[nodiscard]] constexpr bool is_in_flight(Phase phase) {
  return phase == Phase::Installing || phase == Phase::Verifying || phase == Phase::Uninstalling;
}

// The annotations nodes.hangar.dev/...
struct NodeState {
  Phase phase = Phase::None;
  Action action = Action::Install;  // What the phase belongs to: Install or Uninstall.
  std::int64_t attempt = 0;         // Grows with each beginning of an action.
  std::int64_t failures = 0;        // In a row.
  WallTime since;                   // Of the phase.
  std::string version = {};  // The installer's image that the node has been provisioned with.
  std::string target = {};   // The one that is, or was last, tried.
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

// Equal but for the version of the object: whether a write of the Node changed anything for us.
[[nodiscard]] bool is_same_to_us(const NodeView& left, const NodeView& right);

enum class JobState : std::uint8_t { Running, Succeeded, Failed };

struct JobView {
  std::string name;
  std::string uid;
  std::string node;  // Of its owner.
  std::string node_uid;
  std::optional<Action> action = {};  // None: nobody of us made it.
  std::int64_t attempt = 0;
  JobState state = JobState::Running;
  WallTime finished_at;
  bool is_being_deleted = false;
  std::string problem = {};     // Why it failed, or does not get on.
  bool is_out_of_time = false;  // Why it failed.
  bool is_stuck = false;  // It has done nothing yet, and may never: its image is not to be had.

  bool operator==(const JobView&) const = default;
};
[[nodiscard]] JobView job_view(const json::Value& job);

// Why a pod has failed ("exit code 1: no containerd configuration found") or does not get on (its
// image cannot be pulled); empty for a pod that does well.
[[nodiscard]] std::string pod_problem(const json::Value& pod);

// It has a problem before any of its containers has run.
[[nodiscard]] bool is_pod_stuck(const json::Value& pod);

// The Jobs of one node, by the names that they have for that node.
struct NodeJobs {
  std::optional<JobView> install = {};
  std::optional<JobView> uninstall = {};
  std::optional<JobView> probe = {};

  [[nodiscard]] const std::optional<JobView>& of(Action action) const;
};

}  // namespace hangar::nodes
