// A Flight or a ClusterFlight as a struct: its manifest, checked, with yoke's defaults.
//
// It is an instance without an Airway: its own spec has its terms.
#pragma once

#include "airways/acting.h"
#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::airways {

inline constexpr std::string_view kFlightKind = "Flight";
inline constexpr std::string_view kClusterFlightKind = "ClusterFlight";
[[nodiscard]] kube::Resource flight_resource();
[[nodiscard]] kube::Resource cluster_flight_resource();
[[nodiscard]] bool is_flight(const kube::GroupKind& kind);  // Or ClusterFlight.

// InvalidInput names the field ("spec.wasmUrl: ...").
[[nodiscard]] Result<Terms> parse_flight(const json::Value& object);
// Kinds to delete together with a Flight or an instance of an Airway, even if that is invalid.
[[nodiscard]] PruneOptions prune_of(const json::Value& object);

// The account of a Flight that names none, as of a Pod.
inline constexpr std::string_view kDefaultFlightAccount = "default";
// The service account that a Flight acts as: the one that its annotation names, or `default`. It is
// always of the Flight's own namespace; InvalidInput if the annotation names another one.
[[nodiscard]] Result<Account> account_of(const json::Value& flight);

// Whether ClusterFlights may act as the host itself.
enum class AsHost : std::uint8_t { Refused, Allowed };
// A ClusterFlight acts as the service account that its annotation names with its namespace. Without
// the annotation it acts as the host, if the host's settings allow that. InvalidInput names both
// ways.
[[nodiscard]] Result<Actor> cluster_actor_of(const json::Value& flight, AsHost as_host);

}  // namespace hangar::airways
