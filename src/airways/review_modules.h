// Modules that reviews wait for. Fetching and compiling continue after the API server has stopped
// waiting, so that the next review of the same object finds the module. The number of preparations
// is bounded, in total and for each namespace.
// Loop thread only.
#pragma once

#include "airways/flight_modules.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/supply.h"

#include <cstddef>
#include <stop_token>

namespace hangar::airways {

class ReviewModules {
 public:
  // The references outlive this object.
  ReviewModules(io::Loop& loop, FlightModules& modules);
  ReviewModules(const ReviewModules&) = delete;
  ReviewModules& operator=(const ReviewModules&) = delete;
  // Call stop() first.
  ~ReviewModules();

  // Errors: as of FlightModules; Unavailable when `stop` comes first, or too many wait.
  [[nodiscard]] io::Task<Result<FlightModule>> prepare(modules::Wish wish, std::stop_token stop);

  // Stops all preparations, and waits for them.
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<void> prepare_for(modules::Wish wish, budget::FairSlots::Slot slot,
                                           io::OneShot<Result<FlightModule>> done);

  io::Loop& loop_;
  FlightModules& modules_;
  budget::FairSlots slots_;
  std::stop_source stop_;
  std::size_t preparing_ = 0;
  io::Event prepared_;  // A preparation has ended.
};

}  // namespace hangar::airways
