#include "airways/flight.h"

#include "airways/acting.h"
#include "airways/limits.h"
#include "airways/terms.h"
#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "json/fields.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

using json::Fields;

constexpr std::string_view kGroup = "yoke.cd";

Result<Fields> spec_of(const json::Value& object) {
  const json::Object* const spec = json::object_at(object, {"spec"});
  if (spec == nullptr) return invalid("spec: is required");
  return Fields(*spec, "spec");
}

// As in yoke: the text as it is, else the object as JSON, else nothing.
Result<std::string> input_in(const Fields& spec) {
  std::string input = HANGAR_TRY(spec.text("input"));
  if (!input.empty()) return input;
  const json::Object* const object = HANGAR_TRY(spec.object("inputObject"));
  return object == nullptr ? std::string() : json::dump(*object);
}

}  // namespace

kube::Resource flight_resource() {
  return {.group = std::string(kGroup),
          .version = "v1alpha1",
          .plural = "flights",
          .kind = std::string(kFlightKind),
          .namespaced = true};
}

kube::Resource cluster_flight_resource() {
  return {.group = std::string(kGroup),
          .version = "v1alpha1",
          .plural = "clusterflights",
          .kind = std::string(kClusterFlightKind),
          .namespaced = false};
}

bool is_flight(const kube::GroupKind& kind) {
  return kind.group == kGroup && (kind.kind == kFlightKind || kind.kind == kClusterFlightKind);
}

Result<Terms> parse_flight(const json::Value& object) {
  const Fields spec = HANGAR_TRY(spec_of(object));
  Terms terms = HANGAR_TRY(parse_terms(spec));
  terms.flight.reference = HANGAR_TRY(spec.required_text("wasmUrl"));
  terms.flight.sha256 = HANGAR_TRY(spec.text("checksum"));
  terms.args = HANGAR_TRY(spec.texts("args"));
  terms.input = HANGAR_TRY(input_in(spec));
  const bool follows = terms.mode == Mode::Dynamic || terms.mode == Mode::Subscription;
  terms.lookup_watch = follows ? LookupWatch::Changes : LookupWatch::None;
  terms.tracked_interval_min = limits::kFlightTrackedIntervalMin;
  terms.timeout =
      std::min<Duration>(terms.timeout.value_or(limits::kFlightTimeMax), limits::kFlightTimeMax);
  if (terms.fix_drift_interval > Duration(0)) {
    terms.fix_drift_interval =
        std::max<Duration>(terms.fix_drift_interval, limits::kFlightDriftIntervalMin);
  }
  return terms;
}

PruneOptions prune_of(const json::Value& object) {
  return {.crds = json::bool_at(object, {"spec", "prune", "crds"}),
          .namespaces = json::bool_at(object, {"spec", "prune", "namespaces"})};
}

Result<Account> account_of(const json::Value& flight) {
  const std::string namespace_(json::string_at(flight, {"metadata", "namespace"}));
  if (namespace_.empty()) return invalid("metadata.namespace: is required");
  const Acting acting = HANGAR_TRY(
      acting_of(flight, {.namespace_ = namespace_, .name = std::string(kDefaultFlightAccount)}));
  if (!acting.namespace_.empty() && acting.namespace_ != namespace_) {
    return invalid(fmt::format(
        "metadata.annotations[{}]: a Flight acts as a ServiceAccount of its own namespace {}, and "
        "not of {}",
        kServiceAccountAnnotation, namespace_, acting.namespace_));
  }
  return Account{.namespace_ = namespace_, .name = acting.name};
}

Result<Actor> cluster_actor_of(const json::Value& flight, AsHost as_host) {
  Acting acting = HANGAR_TRY(acting_of(flight, {}));
  if (acting.name.empty() && as_host == AsHost::Allowed) return Actor::host();
  if (acting.name.empty() || acting.namespace_.empty()) {
    return invalid(
        fmt::format("metadata.annotations[{}]: a ClusterFlight acts as the ServiceAccount that it "
                    "names here as "
                    "NAMESPACE/NAME; it acts as the host itself only where that is allowed "
                    "(--cluster-flights-as-host)",
                    kServiceAccountAnnotation));
  }
  return Actor::account(
      {.namespace_ = std::move(acting.namespace_), .name = std::move(acting.name)});
}

}  // namespace hangar::airways
