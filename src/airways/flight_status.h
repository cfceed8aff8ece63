// What an Airway's status says about its flight: which module instances are evaluated with, and
// whether its source still serves that one.
#pragma once

#include "airways/conditions.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/pin.h"

#include <optional>
#include <string>
#include <string_view>

namespace hangar::airways {

// Whether the source serves the module that instances run. True for what cannot change and for
// what is followed; False when an upgrade waits for the Airway's author; Unknown while the source
// does not say.
inline constexpr std::string_view kFlightUpToDate = "FlightUpToDate";
inline constexpr std::string_view kReasonSourceChanged = "SourceChanged";

struct FlightFacts {
  std::string reference;  // For people.
  modules::Upgrade upgrade = modules::Upgrade::Followed;
  std::string sha256;
  std::string resolved;
  std::optional<modules::Pin> pin;  // Nothing where the reference is followed.
  std::string offered_sha256;       // What the source serves in place of that; empty: nothing.
  std::optional<Error> look_error;  // Why nobody knows.
};

// status.flight.
[[nodiscard]] json::Value flight_status(const FlightFacts& facts);
// What an earlier host wrote there.
[[nodiscard]] std::optional<modules::Pin> pin_in(const json::Value& airway);

// Without its generation.
[[nodiscard]] Condition flight_condition(const FlightFacts& facts);

}  // namespace hangar::airways
