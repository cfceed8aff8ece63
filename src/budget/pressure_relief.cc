#include "budget/pressure_relief.h"

#include "base/metrics.h"
#include "budget/memory_pressure.h"
#include "budget/pressure_watch.h"

#include <utility>
#include <vector>

namespace hangar::budget {

PressureRelief::PressureRelief(PressureWatch& pressure, Metrics& metrics,
                               std::vector<Keeper> keepers)
    : listening_(
          pressure.listen({.on_advice = [this](const auto& advice) { on_advice(advice); }})) {
  for (Keeper& keeper : keepers) {
    Counter& freed = metrics.counter("hangar_pressure_freed_total",
                                     "kept instances that were freed, and guest processes that "
                                     "were ended or emptied, because memory is short",
                                     {{"what", keeper.name}});
    keepers_.push_back({.keeper = std::move(keeper), .freed = freed});
  }
}

// How much is given back elsewhere does not matter here: all of this is little.
void PressureRelief::on_advice(const PressureGuard::Advice& advice) const {
  if (!advice.is_short) return;
  for (const Counted& one : keepers_)
    one.freed.add(static_cast<double>(one.keeper.give_back()));
}

}  // namespace hangar::budget
