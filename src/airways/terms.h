// How instances are evaluated. An Airway sets this for all instances of its kind, a Flight for
// itself.
#pragma once

#include "airways/matcher.h"
#include "base/result.h"
#include "base/time.h"
#include "json/fields.h"
#include "json/value.h"
#include "modules/supply.h"
#include "wasm/limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// Changes that evaluate an instance again, besides those of the instance itself.
enum class Mode : std::uint8_t {
  Standard,      // None (only fixDriftInterval).
  Static,        // None; changes of children are refused at admission.
  Dynamic,       // Changes of children and of looked-up objects.
  Subscription,  // Changes of objects that the last run looked up.
};
[[nodiscard]] std::string_view name_of(Mode mode);
[[nodiscard]] std::optional<Mode> mode_of(std::string_view name);

// How objects that a flight looks up, and that matchers cover, are watched from their first lookup
// on.
enum class LookupWatch : std::uint8_t {
  None,     // Not at all: each lookup reads the object, and nothing is remembered.
  Changes,  // Each lookup reads the object; only its metadata is watched, to learn of a change.
            // For Flights: tenants decide how many objects they look up.
  Content,  // The watch answers lookups.
};

struct PruneOptions {
  bool crds = false;        // Delete CustomResourceDefinitions; otherwise orphan them.
  bool namespaces = false;  // Delete Namespaces; otherwise orphan them.
  bool operator==(const PruneOptions&) const = default;
};

struct Terms {
  modules::Source flight;
  std::vector<std::string> args = {};         // They follow the release's name in argv.
  std::optional<std::string> input = {};      // Stdin. std::nullopt: the instance,
  std::vector<std::string> object_path = {};  // or its member at this path.
  Mode mode = Mode::Standard;
  bool cluster_access = false;
  std::vector<Matcher> resource_access_matchers;
  LookupWatch lookup_watch = LookupWatch::Content;
  Duration fix_drift_interval{0};  // 0: none.
  // The shortest time between evaluations that changes of other objects cause.
  Duration tracked_interval_min{0};
  // std::nullopt (a negative value such as "-1s"): no timeout of their own; the host's applies.
  std::optional<Duration> timeout = limits::kGuestCallMax;
  bool skip_admission_webhook = false;
  std::optional<std::uint32_t> history_max = 2;  // std::nullopt (negative): unlimited.
  std::uint32_t memory_mib_max = 0;              // 0: the host's own limit.
};

// What the mode needs and the host lacks; std::nullopt if nothing. `has_webhooks`: they are on.
[[nodiscard]] std::optional<std::string> unsupported_mode(Mode mode, bool has_webhooks);

// Reads everything except the module's URL and checksum, and the flight's arguments and input.
// InvalidInput names the field ("spec.mode: ..."). What to prune is checked, and read by
// prune_of().
[[nodiscard]] Result<Terms> parse_terms(const json::Fields& spec);

// The flight's stdin: `input`, or else, as JSON, the instance or its member at `object_path` (null
// if missing). InvalidInput if the path leads through a value that is not an object.
[[nodiscard]] Result<std::string> input_of(const Terms& terms, const json::Value& instance);

}  // namespace hangar::airways
