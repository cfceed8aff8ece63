// The annotations overrides.yoke.cd/flight and overrides.yoke.cd/mode: another flight or mode for
// one instance, set by somebody who may update its Airway.
//
// Whoever may write an instance may write its annotations, and nothing on it tells who did. So a
// review that lets somebody set them leaves an approval in the host's namespace, and a reconcile
// follows no override without one (docs/adr/0027-overrides-are-approved-in-the-hosts-namespace.md).
//
// An approval is a ControllerRevision. Its name says for what it is: the instance's uid, both
// values, and the webhook configuration under which the review was made. A configuration that was
// made anew makes all earlier approvals void: nobody looked at instances in between.
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
#include <vector>

namespace hangar::airways {

inline constexpr std::string_view kOverrideFlight = "overrides.yoke.cd/flight";
inline constexpr std::string_view kOverrideMode = "overrides.yoke.cd/mode";
// As yoke's host has it.
inline constexpr std::string_view kMayNotOverride =
    "user does not have permissions to create or update override annotations";

struct Overrides {
  std::string flight;  // A module's URL; empty: the Airway's.
  std::string mode;    // Empty: the Airway's.

  bool operator==(const Overrides&) const = default;
  [[nodiscard]] bool any() const { return !flight.empty() || !mode.empty(); }
};
[[nodiscard]] Overrides overrides_of(const json::Value& instance);
// InvalidInput for a mode that is none.
[[nodiscard]] Result<> check_mode(const Overrides& overrides);
// The terms as the instance has them. The override's checksum is in its URL: the Airway's is about
// another module.
[[nodiscard]] Terms overridden(Terms terms, const Overrides& overrides);

// Why overrides that nobody has approved have no effect, and what to do.
[[nodiscard]] std::string not_approved(const Airway& airway);
// What an override that is followed does not do. Empty: it does all.
[[nodiscard]] std::vector<std::string> limits_of(const Airway& airway, const Overrides& overrides);

[[nodiscard]] std::string approval_name(std::string_view configuration_uid,
                                        std::string_view instance_uid, const Overrides& overrides);

// The name of the approval of exactly these overrides; nothing: there is none.
[[nodiscard]] io::Task<Result<std::optional<std::string>>> find_approval(const Platform& platform,
                                                                         std::string airway_name,
                                                                         std::string instance_uid,
                                                                         Overrides overrides,
                                                                         std::stop_token stop);

// What somebody who may has asked for, as a review says it.
struct OverrideChange {
  const Airway& airway;
  const json::Value& instance;
  Overrides overrides;  // None: they are removed.
};
// Leaves an approval. Denied when the instance has these values already: reviews are not
// authenticated, and one that somebody made up for what is stored would approve it. For the same
// reason a review removes no approval: a reconcile does, once it sees other values.
[[nodiscard]] io::Task<Result<>> record(const Platform& platform, OverrideChange change,
                                        std::stop_token stop);
[[nodiscard]] io::Task<Result<>> remove_approval(const Platform& platform, std::string name,
                                                 std::stop_token stop);

}  // namespace hangar::airways
