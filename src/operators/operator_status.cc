#include "operators/operator_status.h"

#include "base/limits.h"
#include "base/time.h"
#include "operators/limits.h"
#include "reconcile/acting_rights.h"
#include "reconcile/conditions.h"
#include "reconcile/custom_resource.h"
#include "reconcile/guest_waits.h"
#include "tenants/rules.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::operators {

namespace {

using reconcile::Condition;
using reconcile::ConditionStatus;

constexpr std::string_view kCanSleep = "CanSleep";
constexpr std::string_view kRestless = "Restless";
constexpr std::string_view kWebhooksReady = "WebhooksReady";
constexpr std::string_view kRecordsBodies = "RecordsBodies";

// For people; see differ_in_figures_only().
constexpr std::array<std::string_view, 8> kFigures = {"residentBytes", "resident", "onDiskBytes",
                                                      "onDisk",        "wakes",    "requests",
                                                      "lastWake",      "nextWake"};

std::string reason_of(const Error& error) {
  const std::string& reason = error.reason();
  if (reason == reconcile::kNamespaceNotAllowed || reason == tenants::kRefusedByPolicy) {
    return reason;
  }
  return std::string(name_of(error.kind()));
}

// A size as people read it: "1.5Mi".
std::string readable(std::uint64_t bytes) {
  if (bytes < limits::kKiB) return fmt::format("{}", bytes);
  if (bytes < limits::kMiB) {
    return fmt::format("{:.1f}Ki", static_cast<double>(bytes) / static_cast<double>(limits::kKiB));
  }
  return fmt::format("{:.1f}Mi", static_cast<double>(bytes) / static_cast<double>(limits::kMiB));
}

std::string microseconds_of(Duration duration) {
  return fmt::format("{}us",
                     std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

// The Ready condition of a running operator.
Condition ready_of(const ShownOperator& running) {
  Condition condition{.reason = std::string(name_of(running.phase))};
  switch (running.phase) {
    case Phase::Starting:
      condition.status = ConditionStatus::Unknown;
      condition.message = "the guest is in its first turn";
      break;
    case Phase::Running:
    case Phase::Asleep:
      condition.status = ConditionStatus::True;
      condition.reason = "Running";
      condition.message = "the guest answers its events";
      break;
    case Phase::Completed:
      condition.status = ConditionStatus::False;
      condition.message = "the guest ended by itself and waits for nothing";
      break;
    case Phase::BackOff:
      condition.status = ConditionStatus::False;
      condition.message = running.last_error;
      break;
  }
  return condition;
}

// The CanSleep condition of a running operator, for people who wonder where memory goes.
Condition sleep_of(const ShownOperator& running) {
  Condition condition{.type = std::string(kCanSleep), .status = ConditionStatus::False};
  if (running.obstacle) {
    condition.reason = "Module";
    condition.message = "the module " + *running.obstacle;
  } else if (running.sleep == SleepPolicy::Kind::Never) {
    condition.reason = "Policy";
    condition.message = "spec.sleep.policy is Never";
  } else if (!running.sleep_problem.empty()) {
    condition.reason = "SnapshotFailed";
    condition.message = fmt::format(
        "{}; the guest stays in memory and continues to work; hangar tries again to suspend it "
        "every "
        "{}",
        running.sleep_problem, to_go_duration(limits::kOperatorSleepRetry));
  } else {
    condition.status = ConditionStatus::True;
    condition.reason = "SleepsWhenIdle";
    condition.message = "the guest is suspended to disk when it is idle";
  }
  return condition;
}

// The Restless condition. An operator that never was has none.
void put_restlessness(json::Value& status, const std::optional<Duration>& period,
                      std::int64_t generation, WallTime now) {
  if (!period && reconcile::find_condition(status, kRestless) == nullptr) return;
  Condition condition{.type = std::string(kRestless),
                      .status = ConditionStatus::False,
                      .reason = "NoIdleTimer",
                      .message = "no timer of the guest wakes it for nothing",
                      .observed_generation = generation};
  if (period) {
    condition.status = ConditionStatus::True;
    condition.reason = "IdleTimer";
    condition.message = fmt::format(
        "a timer of the guest wakes it every {}, and it does nothing then: in {} wakes in a row it "
        "asked for no change; let the program use a longer period, or a watch, which wakes it only "
        "when something has changed",
        to_go_duration(*period), limits::kRestlessWakes);
  }
  reconcile::set_condition(status, condition, now);
}

// The WebhooksReady condition of an Operator that names configurations.
void put_webhooks(json::Value& status, const json::Value& manifest,
                  const std::optional<Error>& problem, WallTime now) {
  const json::Array* const named = json::array_at(manifest, {"spec", "webhooks"});
  const bool are_named = named != nullptr && !named->empty();
  if (!are_named && reconcile::find_condition(status, kWebhooksReady) == nullptr) return;
  Condition condition{.type = std::string(kWebhooksReady),
                      .status = ConditionStatus::True,
                      .reason = "Configured",
                      .message = "the API server sends the operator its reviews",
                      .observed_generation = json::int_at(manifest, {"metadata", "generation"})};
  if (!are_named) {
    condition.reason = "NoneNamed";
    condition.message = "spec.webhooks is empty";
  } else if (problem) {
    condition.status = ConditionStatus::False;
    condition.reason = std::string(name_of(problem->kind()));
    condition.message = problem->message();
  }
  reconcile::set_condition(status, condition, now);
}

// The RecordsBodies condition of an Operator that asks for it.
void put_recording(json::Value& status, const json::Value& manifest,
                   const std::optional<Error>& problem, WallTime now) {
  const bool is_asked = recording_of(manifest) == Recording::Bodies;
  if (!is_asked && reconcile::find_condition(status, kRecordsBodies) == nullptr) return;
  Condition condition{.type = std::string(kRecordsBodies),
                      .status = ConditionStatus::True,
                      .reason = "Recorded",
                      .message = "the bodies of its writes are recorded",
                      .observed_generation = json::int_at(manifest, {"metadata", "generation"})};
  if (!is_asked) {
    condition.status = ConditionStatus::False;
    condition.reason = "NotAsked";
    condition.message = "spec.record is not Bodies";
  } else if (problem) {
    condition.status = ConditionStatus::False;
    condition.reason = reason_of(*problem);
    condition.message = problem->message();
  }
  reconcile::set_condition(status, condition, now);
}

void put_figures(json::Value& status, const ShownOperator& running, foresight::Moment now) {
  const OperatorLedger::Figures& figures = running.figures;
  status.as_object()["phase"] = name_of(running.phase);
  json::Object source{{"sha256", running.sha256}, {"resolved", running.resolved}};
  if (running.obstacle) source["staysResidentBecause"] = *running.obstacle;
  status.as_object()["module"] = std::move(source);
  status.as_object()["residentBytes"] = running.resident_bytes;
  status.as_object()["resident"] = readable(running.resident_bytes);
  status.as_object()["onDiskBytes"] = running.disk_bytes;
  status.as_object()["onDisk"] = readable(running.disk_bytes);
  status.as_object()["wakes"] = figures.wakes;
  status.as_object()["requests"] = figures.requests;
  status.as_object()["restarts"] = running.start_count == 0 ? 0 : running.start_count - 1;
  if (figures.last_wake) {
    status.as_object()["lastWake"] =
        json::Object{{"time", to_rfc3339(*figures.last_wake)},
                     {"cpuTime", microseconds_of(figures.last_cpu_time)},
                     {"resumeTime", microseconds_of(figures.last_resume_time)}};
  }
  if (const auto& expected = running.expected_wake) {
    const auto wait = expected->at - now.at;
    status.as_object()["nextWake"] = json::Object{
        {"time", to_rfc3339(now.wall + std::chrono::duration_cast<WallTime::duration>(wait))},
        {"within", to_go_duration(expected->spread)},
        {"confidencePercent", static_cast<std::int64_t>(std::lround(100 * expected->confidence))},
        {"predictor", std::string(name_of(expected->predictor))}};
  }
  if (!running.last_error.empty()) status.as_object()["lastError"] = running.last_error;
}

}  // namespace

Recording recording_of(const json::Value& manifest) {
  return json::string_at(manifest, {"spec", "record"}) == "Bodies" ? Recording::Bodies
                                                                   : Recording::Metadata;
}

bool differ_in_figures_only(json::Value left, json::Value right) {
  for (json::Value* const status : {&left, &right}) {
    if (!status->is_object()) return false;
    for (const std::string_view figure : kFigures)
      status->get_object().erase(figure);
  }
  return json::equal(left, right);
}

json::Value operator_status(const json::Value& manifest, const OperatorState& state,
                            foresight::Moment now) {
  json::Value status = reconcile::status_of(manifest);
  const std::int64_t generation = json::int_at(manifest, {"metadata", "generation"});
  const std::optional<ShownOperator>& running = state.running;
  const std::string problem = state.problem ? state.problem->message() : "";
  if (running) {
    put_figures(status, *running, now);
  } else {
    status.as_object()["phase"] = state.problem ? "Failed" : "Pending";
  }
  status.as_object()["observedGeneration"] = generation;
  status.as_object()["pod"] = state.pod;
  const std::string loading = "the module: " + state.awaited;
  Condition ready = running ? ready_of(*running)
                            : Condition{.status = ConditionStatus::False,
                                        .reason = state.problem ? "NotStarted" : "Loading",
                                        .message = state.problem ? problem : loading};
  ready.observed_generation = generation;
  reconcile::set_condition(status, ready, now.wall);
  if (running) {
    Condition sleep = sleep_of(*running);
    sleep.observed_generation = generation;
    reconcile::set_condition(status, sleep, now.wall);
  }
  reconcile::put_memory_wait(status, state.memory_wait,
                             ". Set limits.memory to what it needs, or give the host more",
                             generation, now.wall);
  reconcile::put_processor_wait(status, state.processor_wait, generation, now.wall);
  put_restlessness(status, running ? running->restless_period : std::nullopt, generation, now.wall);
  put_webhooks(status, manifest, state.webhook_problem, now.wall);
  put_recording(status, manifest, state.record_problem, now.wall);
  const bool is_loading = !state.awaited.empty();
  Condition stalled{.type = std::string(reconcile::kStalled),
                    .status = ConditionStatus::False,
                    .reason = is_loading ? "Loading" : "Established",
                    .message = is_loading ? loading : "the guest runs as the spec says",
                    .observed_generation = generation};
  if (state.problem) {
    stalled.status = ConditionStatus::True;
    stalled.reason = reason_of(*state.problem);
    stalled.message = problem;
  }
  reconcile::set_condition(status, stalled, now.wall);
  return status;
}

}  // namespace hangar::operators
