// A Flight, or a ClusterFlight, as a struct: what its manifest says, checked, with yoke's defaults.
//
// It is an instance without an Airway: its terms stand in itself.
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
[[nodiscard]] bool is_flight(const kube::GroupKind& kind);  // Either.

// InvalidInput names the field ("spec.wasmUrl: ...").
[[nodiscard]] Result<Terms> parse_flight(const json::Value& object);
// What may be deleted when the Flight is, whatever else is wrong with it.
[[nodiscard]] PruneOptions prune_of(const json::Value& object);

// A Flight acts as a service account of its own namespace, and as nothing else: the one that its
// annotation names, or `default`. InvalidInput for one of another namespace.
[[nodiscard]] Result<Account> account_of(const json::Value& flight);

// Whether ClusterFlights may act as the host itself.
enum class AsHost : std::uint8_t { Refused, Allowed };
// A ClusterFlight acts as the service account that its annotation names, with its namespace; else
// as the host, where the host's settings allow that. InvalidInput says how it would.
[[nodiscard]] Result<Actor> cluster_actor_of(const json::Value& flight, AsHost as_host);

}  // namespace hangar::airways
