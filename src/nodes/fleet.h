// The fleet as `hangar nodes` shows it.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "nodes/manifests.h"
#include "nodes/node_view.h"

#include <string>
#include <vector>

namespace hangar::nodes {

// One line: its phase, or what it waits for ("Pending", "Skipped").
struct FleetRow {
  std::string node;
  std::string version = {};
  std::string phase;
  WallTime since;  // The epoch: not known.
  std::string last_error = {};
  bool is_undone = false;  // What the phase belongs to: an uninstall, not an install.
};

// `nodes` are Node objects, the result is in their order.
[[nodiscard]] std::vector<FleetRow> fleet_rows(const std::vector<json::Value>& nodes,
                                               const Record& record);

// A table as kubectl prints them, and how far the rollout is and why it does not get on.
[[nodiscard]] std::string fleet_table(const std::vector<FleetRow>& rows, const Record& record,
                                      WallTime now);
// {"rollout": {...}, "nodes": [{"node": ..., "version": ..., ...}]}
[[nodiscard]] json::Value fleet_document(const std::vector<FleetRow>& rows, const Record& record);

}  // namespace hangar::nodes
