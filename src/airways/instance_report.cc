#include "airways/instance_report.h"

#include "airways/conditions.h"
#include "base/assert.h"
#include "reconcile/acting_rights.h"

#include <fmt/format.h>

namespace hangar::airways {

bool is_for_people(const Error& error) {
  return error.kind() == ErrorKind::InvalidInput || error.kind() == ErrorKind::Corrupt ||
         error.kind() == ErrorKind::LimitExceeded ||
         error.reason() == reconcile::kNamespaceNotAllowed;
}

bool is_untold(const Error& error, const Result<>& written) {
  return !written && error.kind() == ErrorKind::InvalidInput;
}

std::optional<Verdict> verdict_on_failure(const Error& error) {
  HANGAR_ASSERT(error.kind() != ErrorKind::Cancelled, "nobody is told that the host stops");
  if (error.kind() == ErrorKind::Conflict) return std::nullopt;
  return failed(error.message());
}

Settled settled_as(const Readiness& readiness) {
  switch (readiness.state) {
    case Readiness::State::Ready:
      return {.verdict = deployed()};
    case Readiness::State::NotReady:
      return {.verdict = waiting_for_ready(), .look_again = kReadinessRecheck};
    case Readiness::State::Failed:
      break;
  }
  // A rule may be corrected.
  return {.verdict = failed("failed to check release readiness: " + readiness.why),
          .look_again = kReadinessRecheck};
}

bool is_stuck(const Error& error) {
  return error.kind() != ErrorKind::Cancelled && error.kind() != ErrorKind::Conflict;
}

Verdict stuck_in_removal(const Error& error) {
  Verdict verdict = being_removed();
  verdict.message =
      fmt::format("cannot remove the flight's resources: {}. hangar retries", error.message());
  return verdict;
}

std::optional<reconcile::EventText> event_of(const Verdict& verdict, std::string_view reason_before,
                                             std::string_view said_by) {
  if (verdict.reason == reason_before) return std::nullopt;
  if (verdict.reason == kReasonInProgress || verdict.reason == kReasonTerminating) {
    return std::nullopt;
  }
  if (verdict.reason == kReasonReady) {
    return reconcile::EventText{.reason = "Deployed", .message = verdict.message};
  }
  return reconcile::EventText{.type = reconcile::EventType::Warning,
                              .reason = "FlightFailed",
                              .message = std::string(said_by) + verdict.message};
}

bool is_overtaken(const json::Value& value, const kube::Object* newest) {
  return newest != nullptr && newest->uid() == json::string_at(value, {"metadata", "uid"}) &&
         newest->generation() > json::int_at(value, {"metadata", "generation"});
}

json::Value without_status(json::Value instance) {
  json::erase_at(instance, {"status"});
  json::erase_at(instance, {"metadata", "resourceVersion"});
  json::erase_at(instance, {"metadata", "generation"});
  json::erase_at(instance, {"metadata", "managedFields"});
  return instance;
}

}  // namespace hangar::airways
