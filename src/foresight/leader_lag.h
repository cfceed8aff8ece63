// "B wakes 40 ms after A": B's knowledge of its leader A. Leaders knows the operators that
// may lead.
#pragma once

#include "base/time.h"
#include "foresight/plan.h"

#include <cstdint>
#include <optional>
#include <span>

namespace hangar::foresight {

// Id of an operator within a host; zero: none.
using OperatorId = std::uint32_t;

struct RecentWake {
  OperatorId id = 0;
  Instant at;
};

class LeaderLag {
 public:
  // This operator woke. `recent`: wakes of others before that, the latest first.
  void learn(Instant at, std::span<const RecentWake> recent);
  // The time from the leader's wake to this operator's. std::nullopt: no leader is known
  // well enough.
  [[nodiscard]] std::optional<Guess> guess() const;
  [[nodiscard]] OperatorId leader() const { return leader_; }

 private:
  OperatorId leader_ = 0;
  float lag_ = 0;
  float error_ = 0;
  std::uint8_t trust_ = 0;
  std::uint8_t tries_ = 0;  // Selects the next candidate.
};

}  // namespace hangar::foresight
