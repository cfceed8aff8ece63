#include "nodes/fleet.h"

#include "base/text.h"
#include "nodes/rollout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace hangar::nodes {

namespace {

constexpr std::string_view kSkipped = "Skipped";
constexpr std::string_view kNoPhase = "-";  // The node is not to be provisioned.

// "3d", "5h", "12m", "7s": the largest unit, as in kubectl's AGE.
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

// "a, b, c and 17 more".
std::string some_of(const Slots& names) {
  constexpr std::size_t kShown = 5;
  const auto shown = std::ranges::next(names.begin(), kShown, names.end());
  std::string text = fmt::format("{}", fmt::join(names.begin(), shown, ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

// Without the standing.
FleetProgress counted(const std::vector<FleetRow>& rows, const Record& record) {
  FleetProgress progress;
  for (const FleetRow& row : rows) {
    if (row.phase == kNoPhase || row.phase == kSkipped) continue;
    ++progress.asked;
    if (row.phase == name_of(Phase::Failed)) ++progress.failed;
    if (row.phase == name_of(Phase::Provisioned) && row.version == record.version) ++progress.done;
  }
  return progress;
}

// "The rollout is Halted: 3 of 5 nodes are done with registry.example.com/installer:v1. Node ..."
std::string rollout_lines(const std::vector<FleetRow>& rows, const Record& record) {
  if (record.resource_version.empty()) {
    return "No rollout record in this namespace. Set --namespace to the host's namespace; the host "
           "creates the record once it has an installer image.\n";
  }
  const FleetProgress progress = counted(rows, record);
  std::string text = fmt::format("The rollout is {}: {} of {} nodes are done with {}.",
                                 name_of(record.progress.standing), progress.done, progress.asked,
                                 printable(record.version));
  if (record.progress.standing == Standing::Rolling && !record.slots.empty())
    text += fmt::format(" At work: {}.", some_of(record.slots));
  text += '\n';
  if (!record.progress.message.empty()) text += printable(record.progress.message) + '\n';
  return text;
}

Policy policy_of(const Record& record) {
  return {.version = record.version, .auto_provision = record.auto_provision};
}

std::string phase_of(const NodeView& node, const Policy& policy) {
  const Phase phase = node.state.phase;
  if (is_in_flight(phase)) return std::string(name_of(phase));
  if (node.is_skipped) return std::string(kSkipped);
  // A provisioned node that waits for another version, or for its uninstall, is still provisioned.
  if (phase == Phase::None && need_of(node, policy) == Need::Install) return "Pending";
  return std::string(phase == Phase::None ? kNoPhase : name_of(phase));
}

}  // namespace

std::vector<FleetRow> fleet_rows(const std::vector<json::Value>& nodes, const Record& record) {
  const Policy policy = policy_of(record);
  std::vector<FleetRow> rows;
  rows.reserve(nodes.size());
  for (const json::Value& object : nodes) {
    const NodeView node = node_view(object);
    rows.push_back({.node = node.name,
                    .version = node.state.version,
                    .phase = phase_of(node, policy),
                    .since = node.state.since,
                    .last_error = node.state.last_error,
                    .is_undone = node.state.action == Action::Uninstall});
  }
  return rows;
}

FleetProgress fleet_progress(const std::vector<json::Value>& nodes, const Record& record) {
  FleetProgress progress = counted(fleet_rows(nodes, record), record);
  if (record.resource_version.empty()) return progress;
  Nodes views;
  for (const json::Value& object : nodes) {
    NodeView node = node_view(object);
    progress.is_moving = progress.is_moving || is_in_flight(node.state.phase);
    views.emplace(node.name, std::move(node));
  }
  progress.standing = progress_of(views, record.slots, policy_of(record)).standing;
  progress.is_moving = progress.is_moving || progress.standing == Standing::Rolling ||
                       progress.standing == Standing::Waiting ||
                       progress.standing != record.progress.standing;
  return progress;
}

std::string progress_text(const FleetProgress& progress) {
  std::string text = fmt::format("{} of {} nodes", progress.done, progress.asked);
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  return text;
}

std::string fleet_table(const std::vector<FleetRow>& rows, const Record& record, WallTime now) {
  std::vector<std::array<std::string, 5>> lines = {
      {"NODE", "VERSION", "PHASE", "SINCE", "LAST ERROR"}};
  for (const FleetRow& row : rows) {
    const bool has_failed_to_go = row.is_undone && row.phase == name_of(Phase::Failed);
    // A node may write its own annotations, and a container chooses its last message.
    lines.push_back({row.node, printable(or_dash(row.version)), row.phase, age(row.since, now),
                     (has_failed_to_go ? "uninstall: " : "") + printable(or_dash(row.last_error))});
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
  return text + '\n' + rollout_lines(rows, record);
}

json::Value fleet_document(const std::vector<FleetRow>& rows, const Record& record) {
  json::Array nodes;
  for (const FleetRow& row : rows) {
    json::Object node{{"node", row.node}, {"version", row.version}, {"phase", row.phase}};
    node["since"] =
        row.since == WallTime() ? json::Value(nullptr) : json::Value(to_rfc3339(row.since));
    node["lastError"] = row.last_error;
    node["action"] = name_of(row.is_undone ? Action::Uninstall : Action::Install);
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
