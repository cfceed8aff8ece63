// A flight may print the instance itself among its resources, to set the instance's status. This
// computes the status from that and from the host's verdict.
#pragma once

#include "airways/conditions.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hangar::airways {

// Takes the instance out of the stages (same kind, name and namespace; the last one if there are
// several) and drops stages that become empty. The flight may leave out the namespace of the
// instance.
[[nodiscard]] std::optional<json::Value> take_identity(Stages& stages, const ResourceRef& instance);

// The host's verdict for the Ready condition.
struct Verdict {
  ConditionStatus status = ConditionStatus::False;
  std::string reason;
  std::string message;
  bool operator==(const Verdict&) const = default;
};
[[nodiscard]] Verdict waiting_for_ready();  // False InProgress "waiting for flight to become ready"
[[nodiscard]] Verdict deployed();           // True  Ready "Successfully deployed"
[[nodiscard]] Verdict failed(std::string message);  // False Error <message>
// Like failed(), but keeps the error's reason if it tells users what to do.
[[nodiscard]] Verdict verdict_of(const Error& error);
[[nodiscard]] Verdict being_removed();  // False Terminating "Mayday: Flight is being removed"

struct StatusInput {
  const json::Value& live;                // The newest known state of the instance.
  const json::Value& evaluated;           // The instance as the flight got it.
  const json::Value* identity = nullptr;  // The instance as the flight printed it, if it did.
  std::optional<Verdict> verdict;         // The host's; std::nullopt: Ready stays.
  // flight_owns_ready of the previous StatusUpdate; false after a start.
  bool flight_owned_ready = false;
};
struct StatusUpdate {
  json::Value status;
  bool changed = false;  // False: writing it would change nothing.
  // The flight has set its own Ready condition: the verdict is not used, and the host does not wait
  // for readiness.
  bool flight_owns_ready = false;
  // The instance has another generation by now; the next evaluation writes the status.
  bool outdated = false;
};

// The flight's status replaces the instance's; its conditions are merged by type over the present
// ones. A Ready condition that the flight sets itself wins over `verdict`; one that it only read
// from stdin and printed again does not.
[[nodiscard]] StatusUpdate next_status(const StatusInput& input, WallTime now);

}  // namespace hangar::airways
