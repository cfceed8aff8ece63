// The conditions of a workflow: Ready, Progressing, Stalled.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::workflows {

// The reason of a Problem: a person or client edited the status into an impossible one.
inline constexpr std::string_view kStatusInvalid = "StatusInvalid";

// The reason why a workflow does not continue.
struct Problem {
  std::string reason;   // One word in CamelCase.
  std::string message;  // Says what the reader can do.
  // The workflow continues by itself once the missing thing is there.
  bool is_waiting = false;
};

// Puts the conditions into `status`.
void put_conditions(json::Value& status, const Ledger& ledger,
                    const std::optional<Problem>& problem, std::int64_t generation, WallTime now);

}  // namespace hangar::workflows
