// What `hangar nodes` prints, and waits for.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "nodes/manifests.h"
#include "nodes/node_view.h"
#include "nodes/rollout.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hangar::nodes {

// One line: the node's phase or, if it has none, its status ("Pending", "Skipped").
struct FleetRow {
  std::string node;
  std::string version = {};
  std::string phase;
  WallTime since;  // The epoch: not known.
  std::string last_error = {};
  bool is_undone = false;  // The phase belongs to an uninstall, not to an install.
};

// `nodes` are Node objects; the result is in their order.
[[nodiscard]] std::vector<FleetRow> fleet_rows(const std::vector<json::Value>& nodes,
                                               const Record& record);

// How far the rollout is.
struct FleetProgress {
  std::size_t done = 0;   // Provisioned with the version of the rollout.
  std::size_t asked = 0;  // To be provisioned, or still to be cleaned up.
  std::size_t failed = 0;
  Standing standing = Standing::Done;
  // The rollout goes on by itself. False if it is done or halted, also before the host retries a
  // failed node, and without a record.
  bool is_moving = false;

  bool operator==(const FleetProgress&) const = default;
};
// Decides from the nodes what the host is going to record: the record may be a moment older, and
// the rollout moves until it is not.
[[nodiscard]] FleetProgress fleet_progress(const std::vector<json::Value>& nodes,
                                           const Record& record);
// "3 of 10 nodes, 1 failed"
[[nodiscard]] std::string progress_text(const FleetProgress& progress);

// A table as kubectl prints it, with the progress of the rollout and the reason why it halts.
[[nodiscard]] std::string fleet_table(const std::vector<FleetRow>& rows, const Record& record,
                                      WallTime now);
// {"rollout": {...}, "nodes": [{"node": ..., "version": ..., ...}]}
[[nodiscard]] json::Value fleet_document(const std::vector<FleetRow>& rows, const Record& record);

}  // namespace hangar::nodes
