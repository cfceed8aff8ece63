// Frees what is kept only for later when the container or the machine is short of memory.
//
// Operators listen themselves (operators/fleet.h), since sleeping costs them more than their
// memory. What is freed here is made again at its next use.
#pragma once

#include "base/metrics.h"
#include "budget/memory_pressure.h"
#include "budget/pressure_watch.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hangar::budget {

// Loop thread.
class PressureRelief {
 public:
  struct Keeper {
    std::string name;  // The label of its metric.
    // Frees what it can; returns of how many things.
    std::function<std::size_t()> give_back;
  };
  // The watch and the metrics outlive this object.
  PressureRelief(PressureWatch& pressure, Metrics& metrics, std::vector<Keeper> keepers);
  PressureRelief(const PressureRelief&) = delete;
  PressureRelief& operator=(const PressureRelief&) = delete;

 private:
  void on_advice(const PressureGuard::Advice& advice) const;

  struct Counted {
    Keeper keeper;
    Counter& freed;
  };
  std::vector<Counted> keepers_;
  const std::unique_ptr<PressureWatch::Listening> listening_;
};

}  // namespace hangar::budget
