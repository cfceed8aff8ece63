// The decisions of node provisioning: which nodes may be worked on, and the next step for one node.
// No I/O.
//
// A slot is the right to make one node unavailable. One object of the API server records which
// nodes have one, and changes by compare-and-swap only; the phase of each node is on the node. From
// these two alone any host can continue where another one stopped:
//
//   take_slots    -> the record is written -> next_step of each of those nodes, write by write
//   give_slots_up -> the record lists them as leaving: no host starts work on them any more
//                 -> each node is read directly -> the record is written without them
//
// The promises:
//   - no more nodes have a slot than the policy allows, and no work starts on a node without one,
//     whatever the interleaving, and however old the caches are;
//   - from the time when a host sees a failed node until that node works, is skipped or
//     uninstalled, no other node gets a slot;
//   - the label is set only after the installer has succeeded, the node is Ready and its
//     probe passed.
#pragma once

#include "base/time.h"
#include "nodes/limits.h"
#include "nodes/names.h"
#include "nodes/node_view.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace hangar::nodes {

// A number or a percentage of the fleet.
struct Share {
  std::size_t value = 1;
  bool is_percent = false;

  // At least one, or no node would ever be provisioned, and at most limits::kNodesInProgressMax.
  [[nodiscard]] std::size_t of(std::size_t fleet_size) const;
};

struct Policy {
  std::string version;          // The version to provision: see version_of().
  bool auto_provision = false;  // Every node is wanted unless its annotation is "false".
  Share max_unavailable = {};
  bool may_uninstall = true;  // The installer can uninstall.
  bool has_probe = false;
  Duration ready_min = limits::kNodeReadyMin;  // How long to wait for NotReady.
  Duration ready_max = limits::kNodeReadyMax;  // When to give up on a node that is not Ready.
  Duration retry_min = limits::kNodeRetryMin;  // After the first failure; doubles each time.
};

// By name.
using Nodes = std::map<std::string, NodeView, std::less<>>;
using Slots = std::set<std::string, std::less<>>;

[[nodiscard]] bool is_wanted(const NodeView& node, const Policy& policy);

enum class Need : std::uint8_t {
  Nothing,
  Install,
  Uninstall,
  Forget,  // In place of Uninstall if the installer cannot uninstall: hangar only forgets the node.
};
[[nodiscard]] Need need_of(const NodeView& node, const Policy& policy);

// The node is requested or provisioned, and not skipped: it counts as down while it is not Ready.
[[nodiscard]] bool is_of_fleet(const NodeView& node, const Policy& policy);

// The nodes that have a slot and no longer need it, according to `nodes`.
[[nodiscard]] std::vector<std::string> give_slots_up(const Nodes& nodes, const Slots& slots,
                                                     const Policy& policy);
[[nodiscard]] bool may_give_up(const NodeView& node, const Policy& policy);

// Nodes in flight without a slot: the record was deleted, or `nodes` is older than the record. They
// get their slot back regardless of the policy, once a direct read has confirmed their state.
[[nodiscard]] std::vector<std::string> lost_slots(const Nodes& nodes, const Slots& slots);

// The nodes that get a slot now, in the order of names.
[[nodiscard]] std::vector<std::string> take_slots(const Nodes& nodes, const Slots& slots,
                                                  const Policy& policy);

// Whether work on further nodes starts, or why not.
enum class Standing : std::uint8_t { Done, Rolling, Waiting, Halted };
struct Progress {
  Standing standing = Standing::Done;
  std::string message = {};
  bool operator==(const Progress&) const = default;
};
[[nodiscard]] std::string_view name_of(Standing standing);
[[nodiscard]] Progress progress_of(const Nodes& nodes, const Slots& slots, const Policy& policy);

// The next step: one write, or none. After a write the next step is computed again.
struct Rest {  // No step until something changes, or until `until`.
  std::optional<WallTime> until = {};
};
enum class LabelChange : std::uint8_t {
  Keep,
  Set,           // Both labels.
  Remove,        // Both labels.
  Unschedulable  // Removes only ours: no new pod of a RuntimeClass is scheduled.
};
struct WriteState {  // Only if the Node still has the version that was read.
  NodeState state = {};
  LabelChange labels = LabelChange::Keep;
  bool is_beginning = false;   // Needs a slot, checked in the stored record.
  bool is_retry_over = false;  // The user's request to retry has been followed.
};
struct CreateJob {  // Only if a direct read shows the Node in the state that was seen.
  Action action = Action::Install;
};
struct DeleteJob {  // The same, in the background, and only the object with this uid.
  std::string name;
  std::string uid;
};
struct SetCondition {  // In the Node's status. Empty reason: remove it.
  bool is_true = false;
  std::string reason = {};
  std::string message = {};
};
using Step = std::variant<Rest, WriteState, CreateJob, DeleteJob, SetCondition>;

[[nodiscard]] Step next_step(const NodeView& node, const NodeJobs& jobs, bool has_slot,
                             const Policy& policy, WallTime now);

// The write for an action that failed, or could not be started, as a Job or the API server reports.
[[nodiscard]] WriteState failed(const NodeView& node, std::string error, WallTime now);

[[nodiscard]] Duration retry_delay(const NodeState& state, const Policy& policy);

// Whether the Job was created for the node's current attempt.
[[nodiscard]] bool is_for(const JobView& job, Action action, const NodeView& node);

}  // namespace hangar::nodes
