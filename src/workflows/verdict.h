// How a workflow is, in the words of its conditions: Ready, Progressing, Stalled.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::workflows {

// The reason of a Problem: somebody has edited the status into what it cannot be.
inline constexpr std::string_view kStatusInvalid = "StatusInvalid";

// What keeps a workflow from going on.
struct Problem {
  std::string reason;   // One word in CamelCase.
  std::string message;  // Says what to do.
  // It goes on by itself when what it waits for is there.
  bool is_waiting = false;
};

// Puts the conditions into `status`.
void put_conditions(json::Value& status, const Ledger& ledger,
                    const std::optional<Problem>& problem, std::int64_t generation, WallTime now);

}  // namespace hangar::workflows
