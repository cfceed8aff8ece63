// A flight may print the instance itself among its resources: then it means its status. What the
// instance's status becomes of that and of what we know ourselves.
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

// Takes the instance out of the stages (same kind, name, namespace; the last if there are several)
// and drops stages that are empty then. A namespaced instance printed without a namespace is still
// the instance.
[[nodiscard]] std::optional<json::Value> take_identity(Stages& stages, const ResourceRef& instance);

// What we would say about Ready.
struct Verdict {
  ConditionStatus status = ConditionStatus::False;
  std::string reason;
  std::string message;
  bool operator==(const Verdict&) const = default;
};
[[nodiscard]] Verdict waiting_for_ready();  // False InProgress "waiting for flight to become ready"
[[nodiscard]] Verdict deployed();           // True  Ready "Successfully deployed"
[[nodiscard]] Verdict failed(std::string message);  // False Error <message>
// The same, but where the error's reason says what is to be done, that is the reason.
[[nodiscard]] Verdict verdict_of(const Error& error);
[[nodiscard]] Verdict being_removed();  // False Terminating "Mayday: Flight is being removed"

struct StatusInput {
  const json::Value& live;                // The instance as the cache has it now.
  const json::Value& evaluated;           // The instance that the flight was given.
  const json::Value* identity = nullptr;  // What the flight printed for it, if anything.
  std::optional<Verdict> verdict;         // Ours; nothing: Ready stays as it is.
  // What the previous StatusUpdate said; false after a start.
  bool flight_owned_ready = false;
};
struct StatusUpdate {
  json::Value status;
  bool changed = false;  // False: writing it would change nothing.
  // The flight set a Ready condition of its own: ours is not used, and no requeue waits for it.
  bool flight_owns_ready = false;
  // The instance moved on to another generation: the next evaluation writes its own.
  bool outdated = false;
};

// The flight's status replaces the instance's; conditions are merged by type over those that are
// there. A Ready condition of the flight's own wins over `verdict`; one that it merely read from
// stdin and printed again is not its own.
[[nodiscard]] StatusUpdate next_status(const StatusInput& input, WallTime now);

}  // namespace hangar::airways
