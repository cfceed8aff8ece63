// The delays (XState's `after`) of the states that a machine is in: from the definition that
// Machine::definition() gives.
#pragma once

#include "base/result.h"
#include "base/time.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

// What the types of all their events begin with, in both majors.
inline constexpr std::string_view kDelayPrefix = "xstate.after";

struct Delay {
  std::string event;  // The type of what the machine gets once it is over, and its timer's id.
  // Nothing when the machine works it out (it has a name).
  std::optional<Duration> duration;
  // Of which of the machine's actors. Empty: of the machine itself.
  std::string actor = {};

  bool operator==(const Delay&) const = default;
};

// `value`: a state's as Step::value has it. InvalidInput when one of the two is not what it should
// be.
[[nodiscard]] Result<std::vector<Delay>> delays_of(std::string_view definition,
                                                   std::string_view value);

}  // namespace hangar::abi::statemachine
