// The annotations overrides.yoke.cd/flight and overrides.yoke.cd/mode: another flight or mode for
// one instance, set by a user who may update its Airway.
//
// A user who may write an instance may write its annotations, and the instance does not show who
// has set them. So a review that lets a user set them leaves an approval in the host's namespace,
// and a reconcile follows no override without one
// (docs/adr/0027-overrides-are-approved-in-the-hosts-namespace.md).
//
// An approval is a ControllerRevision. Its name is a digest of the instance's namespace, name and
// uid, both values, and the uid of the webhook configuration under which the review was made. If
// that configuration is created again, all earlier approvals are void: instances were not reviewed
// in between.
// Loop thread only.
#pragma once

#include "airways/airway.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::airways {

inline constexpr std::string_view kOverrideFlight = "overrides.yoke.cd/flight";
inline constexpr std::string_view kOverrideMode = "overrides.yoke.cd/mode";
// The message of yoke's host.
inline constexpr std::string_view kMayNotOverride =
    "user does not have permissions to create or update override annotations";

struct Overrides {
  std::string flight;  // A module's URL; empty: the Airway's.
  std::string mode;    // Empty: the Airway's.

  bool operator==(const Overrides&) const = default;
  [[nodiscard]] bool any() const { return !flight.empty() || !mode.empty(); }
};
[[nodiscard]] Overrides overrides_of(const json::Value& instance);
// InvalidInput for an unknown mode.
[[nodiscard]] Result<> check_mode(const Overrides& overrides);
// The terms of the instance. The checksum of an override is in its URL; the Airway's is for another
// module.
[[nodiscard]] Terms overridden(Terms terms, const Overrides& overrides);

// Why overrides that nobody has approved have no effect, and what to do about it.
[[nodiscard]] std::string not_approved(const Airway& airway);

[[nodiscard]] std::string approval_name(std::string_view configuration_uid,
                                        const json::Value& instance, const Overrides& overrides);

// The name of the approval of exactly these overrides; std::nullopt if there is none. `instance`
// outlives the task.
[[nodiscard]] io::Task<Result<std::optional<std::string>>> find_approval(
    const Platform& platform, std::string airway_name, const json::Value& instance,
    Overrides overrides, std::stop_token stop);

// A change of overrides in a review, by a user who may make it.
struct OverrideChange {
  const Airway& airway;
  const json::Value& instance;
  Overrides overrides;  // Empty: they are removed.
};
// Writes an approval. Conflict if the stored instance already has these values: a review may be
// forged, and one for the stored values would approve them. For the same reason a review removes no
// approval: a reconcile does, when it sees other values.
[[nodiscard]] io::Task<Result<>> record(const Platform& platform, OverrideChange change,
                                        std::stop_token stop);
[[nodiscard]] io::Task<Result<>> remove_approval(const Platform& platform, std::string name,
                                                 std::stop_token stop);

}  // namespace hangar::airways
