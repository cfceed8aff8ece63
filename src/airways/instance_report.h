// What the status and the Events of an instance say about the end of a reconcile, and which errors
// nothing but a user can repair. No I/O.
#pragma once

#include "airways/identity.h"
#include "airways/readiness.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/event_log.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::airways {

// Readiness that depends on objects that are not watched (EndpointSlices, custom rules) is computed
// again after this; yoke's own interval.
inline constexpr std::chrono::seconds kReadinessRecheck{5};

// The error persists until a user acts: the status says so before the flight runs.
[[nodiscard]] bool is_for_people(const Error& error);

// Nobody would learn of the error: it is not retried, and the status that tells it was not written.
[[nodiscard]] bool is_untold(const Error& error, const Result<>& written);

// For the Ready condition. None for an error that is retried at once: not worth a status write.
[[nodiscard]] std::optional<Verdict> verdict_on_failure(const Error& error);

// A release that is applied, by how ready it is.
struct Settled {
  Verdict verdict;
  std::optional<Duration> look_again = {};  // Unless an event comes first.
};
[[nodiscard]] Settled settled_as(const Readiness& readiness);

// Why a release cannot be removed is worth telling, unless the removal is repeated at once.
[[nodiscard]] bool is_stuck(const Error& error);
[[nodiscard]] Verdict stuck_in_removal(const Error& error);

// The Event for a verdict; none for one that was told already, and for those in progress.
// `reason_before`: of the last verdict. `said_by` begins messages about failures.
[[nodiscard]] std::optional<reconcile::EventText> event_of(const Verdict& verdict,
                                                           std::string_view reason_before,
                                                           std::string_view said_by);

// The spec has changed since `value` was read: a status about the old one is of no use and would be
// refused; the change has queued this instance again. `newest`: null if the instance is not known.
[[nodiscard]] bool is_overtaken(const json::Value& value, const kube::Object* newest);

// The instance without its status and the metadata that the API server sets, for comparisons: our
// own status write must not count as a change.
[[nodiscard]] json::Value without_status(json::Value instance);

}  // namespace hangar::airways
