// The delays (XState's `after`) of a machine's active states, from the definition that
// Machine::definition() returns.
#pragma once

#include "base/result.h"
#include "base/time.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

// The prefix of the type of every delay's event, in both major versions.
inline constexpr std::string_view kDelayPrefix = "xstate.after";

struct Delay {
  std::string event;  // Type of the event at its end, and the timer's id.
  // std::nullopt when the machine computes it (a named delay).
  std::optional<Duration> duration;
  // The actor of the machine that it belongs to. Empty: the machine itself.
  std::string actor = {};

  bool operator==(const Delay&) const = default;
};

// `value`: the value of a state, as in Step::value. InvalidInput when either is not valid;
// LimitExceeded when there are more than limits::kMachineDelaysMax.
[[nodiscard]] Result<std::vector<Delay>> delays_of(std::string_view definition,
                                                   std::string_view value);

}  // namespace hangar::abi::statemachine
