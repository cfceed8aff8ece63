#include "nodes/fleet.h"

#include "nodes/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hangar::nodes {

namespace {

// "3d", "5h", "12m", "7s": the largest unit, as kubectl's AGE.
std::string age(WallTime since, WallTime now) {
  if (since == WallTime()) return "-";
  const auto seconds =
      std::max<std::int64_t>(0, std::chrono::floor<std::chrono::seconds>(now - since).count());
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string_view or_dash(std::string_view text) {
  return text.empty() ? "-" : text;
}

std::string phase_of(const NodeView& node, const Policy& policy) {
  const Phase phase = node.state.phase;
  if (is_in_flight(phase)) return std::string(name_of(phase));
  if (node.is_skipped) return "Skipped";
  // A provisioned node that waits for another version, or to be undone, is still provisioned.
  if (phase == Phase::None && need_of(node, policy) == Need::Install) return "Pending";
  return phase == Phase::None ? "-" : std::string(name_of(phase));
}

}  // namespace

std::vector<FleetRow> fleet_rows(const std::vector<json::Value>& nodes, const Record& record) {
  const Policy policy = {.version = record.version, .auto_provision = record.auto_provision};
  std::vector<FleetRow> rows;
  rows.reserve(nodes.size());
  for (const json::Value& object : nodes) {
    const NodeView node = node_view(object);
    rows.push_back({.node = node.name,
                    .version = node.state.version,
                    .phase = phase_of(node, policy),
                    .since = node.state.since,
                    .last_error = node.state.last_error});
  }
  return rows;
}

std::string fleet_table(const std::vector<FleetRow>& rows, const Record& record, WallTime now) {
  std::vector<std::array<std::string, 5>> lines = {
      {"NODE", "VERSION", "PHASE", "SINCE", "LAST ERROR"}};
  for (const FleetRow& row : rows) {
    lines.push_back({row.node, std::string(or_dash(row.version)), row.phase, age(row.since, now),
                     std::string(or_dash(row.last_error))});
  }
  std::array<std::size_t, 5> widths{};
  for (const auto& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column)
      widths.at(column) = std::max(widths.at(column), line.at(column).size());
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t column = 0; column + 1 < line.size(); ++column)
      text += fmt::format("{:<{}}   ", line.at(column), widths.at(column));
    text += line.back() + '\n';
  }
  if (!record.progress.message.empty()) {
    text += fmt::format("\nThe rollout is {}: {}\n", name_of(record.progress.standing),
                        record.progress.message);
  }
  return text;
}

json::Value fleet_document(const std::vector<FleetRow>& rows, const Record& record) {
  json::Array nodes;
  for (const FleetRow& row : rows) {
    json::Object node{{"node", row.node}, {"version", row.version}, {"phase", row.phase}};
    node["since"] =
        row.since == WallTime() ? json::Value(nullptr) : json::Value(to_rfc3339(row.since));
    node["lastError"] = row.last_error;
    nodes.push_back(std::move(node));
  }
  json::Array active(record.slots.begin(), record.slots.end());
  return json::Object{{"rollout", json::Object{{"standing", name_of(record.progress.standing)},
                                               {"message", record.progress.message},
                                               {"version", record.version},
                                               {"autoProvision", record.auto_provision},
                                               {"active", std::move(active)}}},
                      {"nodes", std::move(nodes)}};
}

}  // namespace hangar::nodes
