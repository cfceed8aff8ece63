// The output of `hangar nodes`.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "nodes/manifests.h"
#include "nodes/node_view.h"

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

// A table as kubectl prints it, with the progress of the rollout and the reason why it halts.
[[nodiscard]] std::string fleet_table(const std::vector<FleetRow>& rows, const Record& record,
                                      WallTime now);
// {"rollout": {...}, "nodes": [{"node": ..., "version": ..., ...}]}
[[nodiscard]] json::Value fleet_document(const std::vector<FleetRow>& rows, const Record& record);

}  // namespace hangar::nodes
