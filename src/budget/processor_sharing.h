// Slows namespaces that take more than an equal part of the processors while these are short.
#pragma once

#include "budget/equal_rates.h"
#include "budget/processor_stalls.h"
#include "budget/rates.h"
#include "io/loop.h"

namespace hangar::budget {

// Looks at `rates` regularly, and at how long tasks of this machine or container waited for a
// processor. Loop thread.
class ProcessorSharing {
 public:
  // Both outlive this object. Without `is_on`, nobody is slowed.
  ProcessorSharing(io::Loop& loop, const Rates& rates, bool is_on);
  ProcessorSharing(const ProcessorSharing&) = delete;
  ProcessorSharing& operator=(const ProcessorSharing&) = delete;
  ~ProcessorSharing() = default;

  [[nodiscard]] const EqualRates& equal_rates() const { return equal_rates_; }

 private:
  void look_later();
  void look();

  io::Loop& loop_;
  const Rates& rates_;
  EqualRates equal_rates_;
  ProcessorStalls stalls_;
  io::Loop::Timer timer_;
};

}  // namespace hangar::budget
