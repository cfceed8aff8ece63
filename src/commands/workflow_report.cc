#include "commands/workflow_report.h"

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "workflows/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

// Tenants and their machines choose most texts, and administrators read them at a terminal.
std::string text_at(const json::Value& value, json::Path path) {
  return printable(json::string_at(value, path));
}

// The API server keeps Events for an hour; kubectl shows all of them.
constexpr std::size_t kWarningsShownMax = 10;

// From the manifest alone, so that it is available even if the status cannot be read.
std::string header_of(const json::Value& manifest) {
  const std::string value = text_at(manifest, {"status", "value"});
  const Result<WallTime> entered =
      parse_rfc3339(json::string_at(manifest, {"status", "enteredAt"}));
  std::string text = fmt::format("{}: {}{}\n", kube::key_of(manifest).to_string(),
                                 value.empty() ? std::string("not begun") : value,
                                 entered ? " since " + to_rfc3339(*entered) : std::string());
  if (const json::Array* const actors = json::array_at(manifest, {"status", "actors"})) {
    for (const json::Value& actor : *actors) {
      const std::string status = text_at(actor, {"status"});
      const Result<WallTime> since = parse_rfc3339(json::string_at(actor, {"enteredAt"}));
      fmt::format_to(std::back_inserter(text), "  {}: {}{}{}\n", text_at(actor, {"id"}),
                     text_at(actor, {"value"}),
                     status.empty() ? std::string() : fmt::format(" ({})", status),
                     since ? " since " + to_rfc3339(*since) : std::string());
    }
  }
  if (const json::Array* const conditions = json::array_at(manifest, {"status", "conditions"})) {
    for (const json::Value& condition : *conditions) {
      fmt::format_to(std::back_inserter(text), "{:<12} {:<6} {}: {}\n",
                     text_at(condition, {"type"}), text_at(condition, {"status"}),
                     text_at(condition, {"reason"}), text_at(condition, {"message"}));
    }
  }
  return text;
}

std::string history_of(const workflows::Ledger& ledger) {
  std::string text;
  for (const workflows::HistoryEntry& entry : ledger.history) {
    fmt::format_to(std::back_inserter(text), "{:>4}  {}  {} -> {}{}{}{}\n", entry.sequence,
                   to_rfc3339(entry.time), entry.from.empty() ? "(start)" : printable(entry.from),
                   printable(entry.to), entry.event.empty() ? "" : " on " + printable(entry.event),
                   entry.actions.empty()
                       ? std::string()
                       : printable(fmt::format(", asks for {}", fmt::join(entry.actions, ", "))),
                   entry.actors.empty()
                       ? std::string()
                       : printable(fmt::format("; {}", fmt::join(entry.actors, ", "))));
  }
  return text;
}

// Empty for the machine itself.
std::string of_actor(std::string_view actor) {
  return actor.empty() ? std::string() : printable(fmt::format(" of {}", actor));
}

std::string line_of(const workflows::PendingAction& action) {
  std::string text = fmt::format("      {}#{}{}  since {}", printable(action.type), action.id,
                                 of_actor(action.actor), to_rfc3339(action.requested_at));
  if (action.attempts > 0) {
    fmt::format_to(std::back_inserter(text), ", failed {} {}", action.attempts,
                   action.attempts == 1 ? "time" : "times");
    if (action.not_before) text += ", again at " + to_rfc3339(*action.not_before);
  }
  if (action.deadline) text += ", until " + to_rfc3339(*action.deadline);
  if (!action.last_error.empty()) text += ": " + printable(action.last_error);
  return text + "\n";
}

std::string under_way_of(const workflows::Ledger& ledger) {
  std::string text;
  for (const workflows::PendingAction& action : ledger.outbox)
    text += line_of(action);
  for (const workflows::RunningTimer& timer : ledger.timers) {
    fmt::format_to(std::back_inserter(text), "      at {}  {}{}\n", to_rfc3339(timer.due),
                   printable(workflows::type_of(timer.event)),
                   of_actor(workflows::actor_of(timer.event)));
  }
  return text.empty() ? text : "\nUnder way:\n" + text;
}

// The time of the Event's last occurrence.
WallTime time_of(const json::Value& event) {
  for (const std::string_view member : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    if (const Result<WallTime> time = parse_rfc3339(json::string_at(event, {member}))) return *time;
  }
  return parse_rfc3339(json::string_at(event, {"metadata", "creationTimestamp"}))
      .value_or(WallTime());
}

std::string warnings_of(const Result<std::vector<json::Value>>& warnings) {
  if (!warnings) return fmt::format("\n(no Events: {})\n", printable(warnings.error().message()));
  if (warnings->empty()) return {};
  std::vector<std::pair<WallTime, const json::Value*>> sorted;
  for (const json::Value& event : *warnings)
    sorted.emplace_back(time_of(event), &event);
  std::ranges::sort(sorted, {}, &std::pair<WallTime, const json::Value*>::first);
  const std::size_t left_out = sorted.size() - std::min(sorted.size(), kWarningsShownMax);
  std::string text = "\nLatest warnings:\n";
  for (std::size_t at = left_out; at < sorted.size(); ++at) {
    const auto& [time, event] = sorted[at];
    const std::int64_t count = json::int_at(*event, {"count"}, 1);
    fmt::format_to(std::back_inserter(text), "      {}  {}{}: {}\n", to_rfc3339(time),
                   text_at(*event, {"reason"}),
                   count > 1 ? fmt::format(" ({} times)", count) : std::string(),
                   text_at(*event, {"message"}));
  }
  return text;
}

}  // namespace

std::string report_on(const WorkflowFindings& findings) {
  std::string text = header_of(findings.manifest);
  if (findings.ledger) {
    text += findings.drawing ? "\n" + *findings.drawing
                             : fmt::format("\n(no drawing: {})\n",
                                           printable(findings.drawing.error().message()));
    text += "\n" + history_of(*findings.ledger) + under_way_of(*findings.ledger);
  }
  return text + warnings_of(findings.warnings);
}

}  // namespace hangar::commands
