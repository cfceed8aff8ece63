// The status and the Events of an instance after a reconcile, and which errors only a user can
// repair. No I/O.
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

// True if the error persists until a user acts: the status says so before the flight runs.
[[nodiscard]] bool is_for_people(const Error& error);

// True if nobody would learn of the error: it is not retried, and the status that reports it was
// not written.
[[nodiscard]] bool is_untold(const Error& error, const Result<>& written);

// For the Ready condition. None for an error that is retried at once: not worth a status write.
[[nodiscard]] std::optional<Verdict> verdict_on_failure(const Error& error);

// The report on a release that is applied.
struct Settled {
  Verdict verdict;
  std::optional<Duration> look_again = {};  // Unless an event comes first.
};
[[nodiscard]] Settled settled_as(const Readiness& readiness);

// True if the reason why a release cannot be removed is worth reporting: the removal is not retried
// at once.
[[nodiscard]] bool is_stuck(const Error& error);
[[nodiscard]] Verdict stuck_in_removal(const Error& error);

// The Event for a verdict; none for one that was reported already, and for work in progress.
// `reason_before`: of the last verdict. `said_by` begins messages about failures.
[[nodiscard]] std::optional<reconcile::EventText> event_of(const Verdict& verdict,
                                                           std::string_view reason_before,
                                                           std::string_view said_by);

// True if the spec has changed since `value` was read. A status about the old spec would be useless
// and refused; the change has queued this instance again. `newest`: null if the instance is not
// known.
[[nodiscard]] bool is_overtaken(const json::Value& value, const kube::Object* newest);

// The instance without its status and the metadata that the API server sets, for comparisons: our
// own status write must not count as a change.
[[nodiscard]] json::Value without_status(json::Value instance);

}  // namespace hangar::airways
