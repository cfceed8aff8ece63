// Frees what is kept only for later when the container or the machine is short of memory.
//
// Operators have their own way (operators/fleet.h), since sleeping costs them more than their
// memory. What is freed here is made again at its next use.
#pragma once

#include "base/metrics.h"
#include "base/time.h"
#include "budget/memory_pressure.h"
#include "io/loop.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hangar::host {

// Loop thread.
class PressureRelief {
 public:
  struct Keeper {
    std::string name;  // The label of its metric.
    // Frees what it can; returns of how many things.
    std::function<std::size_t()> give_back;
  };
  struct Options {
    budget::MemoryGauge gauge = budget::MemoryGauge();
    Duration interval = std::chrono::seconds(1);
  };
  // Looks from now on. The loop and the metrics outlive this object.
  PressureRelief(io::Loop& loop, Metrics& metrics, std::vector<Keeper> keepers, Options options);
  PressureRelief(const PressureRelief&) = delete;
  PressureRelief& operator=(const PressureRelief&) = delete;

 private:
  void look_later();

  io::Loop& loop_;
  const Options options_;
  struct Counted {
    Keeper keeper;
    Counter& freed;
  };
  std::vector<Counted> keepers_;
  budget::PressureGuard guard_;
  io::Loop::Timer timer_;
};

}  // namespace hangar::host
