#include "host/pressure_relief.h"

#include "base/metrics.h"
#include "budget/memory_pressure.h"
#include "io/loop.h"

#include <utility>
#include <vector>

namespace hangar::host {

PressureRelief::PressureRelief(io::Loop& loop, Metrics& metrics, std::vector<Keeper> keepers,
                               Options options)
    : loop_(loop), options_(std::move(options)) {
  for (Keeper& keeper : keepers) {
    Counter& freed = metrics.counter("hangar_pressure_freed_total",
                                     "kept instances that were freed, and guest processes that "
                                     "were ended or emptied, because memory is short",
                                     {{"what", keeper.name}});
    keepers_.push_back({.keeper = std::move(keeper), .freed = freed});
  }
  look_later();
}

void PressureRelief::look_later() {
  timer_ = loop_.after(options_.interval, [this] {
    // How much is given back elsewhere does not matter here: all of this is little.
    const budget::PressureGuard::Advice advice =
        guard_.on_reading(options_.gauge.read(), 0, io::Loop::now());
    if (advice.is_short) {
      for (const Counted& one : keepers_)
        one.freed.add(static_cast<double>(one.keeper.give_back()));
    }
    look_later();
  });
}

}  // namespace hangar::host
