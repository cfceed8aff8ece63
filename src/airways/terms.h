// How instances are evaluated: what an Airway says for all of its kind, and a Flight for itself.
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

// When an instance is evaluated again besides a change of its own.
enum class Mode : std::uint8_t {
  Standard,      // Never (but fixDriftInterval).
  Static,        // Never; changes of children are refused at admission.
  Dynamic,       // Any change of a child, or of something looked up.
  Subscription,  // Changes of what the last run looked up.
};
[[nodiscard]] std::string_view name_of(Mode mode);
[[nodiscard]] std::optional<Mode> mode_of(std::string_view name);

struct PruneOptions {
  bool crds = false;        // Delete CustomResourceDefinitions; orphaned otherwise.
  bool namespaces = false;  // Delete Namespaces; orphaned otherwise.
  bool operator==(const PruneOptions&) const = default;
};

struct Terms {
  modules::Source flight;
  std::vector<std::string> args = {};         // After the release's name.
  std::optional<std::string> input = {};      // For stdin. Nothing: the instance itself,
  std::vector<std::string> object_path = {};  // or what it has there.
  Mode mode = Mode::Standard;
  bool cluster_access = false;
  std::vector<Matcher> resource_access_matchers;
  // What matchers cover is watched from the first lookup on. Otherwise it is read at each lookup
  // and nothing is remembered: for authors who could have thousands of objects watched.
  bool watches_lookups = true;
  Duration fix_drift_interval{0};  // 0: none.
  // Nothing ("-1s"): they want none.
  std::optional<Duration> timeout = limits::kGuestCallMax;
  bool skip_admission_webhook = false;
  std::optional<std::uint32_t> history_max = 2;  // Nothing (negative): unlimited.
  PruneOptions prune;
  std::uint32_t memory_mib_max = 0;  // 0: the host's own limit.
};

// Everything but `flight` and what is given to it. InvalidInput names the field ("spec.mode: ...").
[[nodiscard]] Result<Terms> parse_terms(const json::Fields& spec);

// What goes to the flight's stdin: `input`, else the instance, or what is at `object_path` (null if
// missing), as JSON. InvalidInput when the path leads through what is no object.
[[nodiscard]] Result<std::string> input_of(const Terms& terms, const json::Value& instance);

}  // namespace hangar::airways
