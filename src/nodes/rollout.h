// Node provisioning's decisions: which nodes may be worked on, and what to do next with one. No
// I/O.
//
// A slot is the right to make one node unavailable. Which nodes have one is recorded in one object
// of the API server, changed by compare-and-swap only; the phase of each node is on the node. From
// these two alone any host can go on where another one ended:
//
//   take_slots    -> the record is written -> next_step of each of those nodes, write by write
//   give_slots_up -> the record says that they are leaving: nobody begins with them any more
//                 -> each node is asked for directly -> the record is written without them
//
// The promises:
//   - no more nodes have a slot than the policy allows, and a node without one is not begun,
//     whatever is interleaved with whatever, and however old the caches are;
//   - from when a node is seen to have failed until it works, is skipped or undone, no other node
//     gets a slot;
//   - the label comes only after the installer has succeeded, the node is Ready and its probe
//   passed.
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

// How many of the fleet.
struct Share {
  std::size_t value = 1;
  bool is_percent = false;

  // At least one, or nothing would ever happen, and at most limits::kNodesInProgressMax.
  [[nodiscard]] std::size_t of(std::size_t fleet_size) const;
};

struct Policy {
  std::string version;          // The installer's image.
  bool auto_provision = false;  // Every node that does not say "false" is wanted.
  Share max_unavailable = {};
  bool may_uninstall = true;  // The installer can undo what it did.
  bool has_probe = false;
  Duration ready_min = limits::kNodeReadyMin;  // How long a node is given to become NotReady.
  Duration ready_max = limits::kNodeReadyMax;  // When a node is given up that is not Ready.
  Duration retry_min = limits::kNodeRetryMin;  // After the first failure; then twice as long.
};

// By name.
using Nodes = std::map<std::string, NodeView, std::less<>>;
using Slots = std::set<std::string, std::less<>>;

[[nodiscard]] bool is_wanted(const NodeView& node, const Policy& policy);

enum class Need : std::uint8_t {
  Nothing,
  Install,
  Uninstall,
  Forget,  // As Uninstall, with an installer that cannot undo: it is no longer ours.
};
[[nodiscard]] Need need_of(const NodeView& node, const Policy& policy);

// Wanted or ours, and not skipped: what counts as down while it is not Ready.
[[nodiscard]] bool is_of_fleet(const NodeView& node, const Policy& policy);

// Those who have a slot and do not need it any more, as far as `nodes` knows.
[[nodiscard]] std::vector<std::string> give_slots_up(const Nodes& nodes, const Slots& slots,
                                                     const Policy& policy);
[[nodiscard]] bool may_give_up(const NodeView& node, const Policy& policy);

// Those in flight without one: the record was deleted, or `nodes` is older than it. They get theirs
// back whatever the policy says, once they have been asked directly.
[[nodiscard]] std::vector<std::string> lost_slots(const Nodes& nodes, const Slots& slots);

// Who gets one now, in the order of names.
[[nodiscard]] std::vector<std::string> take_slots(const Nodes& nodes, const Slots& slots,
                                                  const Policy& policy);

// Why no further node is begun, or that it is not so.
enum class Standing : std::uint8_t { Done, Rolling, Waiting, Halted };
struct Progress {
  Standing standing = Standing::Done;
  std::string message = {};
  bool operator==(const Progress&) const = default;
};
[[nodiscard]] std::string_view name_of(Standing standing);
[[nodiscard]] Progress progress_of(const Nodes& nodes, const Slots& slots, const Policy& policy);

// One write, or none. After it the node is looked at again.
struct Rest {  // Nothing to do until something changes, or it is `until`.
  std::optional<WallTime> until = {};
};
enum class LabelChange : std::uint8_t {
  Keep,
  Set,           // Both.
  Remove,        // Both.
  Unschedulable  // Ours only: no new pod of a RuntimeClass.
};
struct WriteState {  // Only if the Node is still the version that was looked at.
  NodeState state = {};
  LabelChange labels = LabelChange::Keep;
  bool is_beginning = false;   // Needs a slot, looked up in the record itself.
  bool is_retry_over = false;  // The user's wish to try again has been followed.
};
struct CreateJob {  // Only if the Node, asked for directly, is in the state that was looked at.
  Action action = Action::Install;
};
struct DeleteJob {  // The same, in the background, and only this very object.
  std::string name;
  std::string uid;
};
struct SetCondition {  // Of the Node's status. Empty reason: remove it.
  bool is_true = false;
  std::string reason = {};
  std::string message = {};
};
using Step = std::variant<Rest, WriteState, CreateJob, DeleteJob, SetCondition>;

[[nodiscard]] Step next_step(const NodeView& node, const NodeJobs& jobs, bool has_slot,
                             const Policy& policy, WallTime now);

// The action could not be begun, or ended badly, as a Job tells or the API server.
[[nodiscard]] WriteState failed(const NodeView& node, std::string error, WallTime now);

[[nodiscard]] Duration retry_delay(const NodeState& state, const Policy& policy);

// The Job was made for what the node is in the middle of.
[[nodiscard]] bool is_for(const JobView& job, Action action, const NodeView& node);

}  // namespace hangar::nodes
