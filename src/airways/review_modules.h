// Modules that reviews wait for. What is fetched and compiled for one goes on when the API server
// has stopped waiting, so that the next review of the same object finds it.
// Loop thread only.
#pragma once

#include "airways/flight_modules.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/supply.h"

#include <cstddef>
#include <stop_token>

namespace hangar::airways {

class ReviewModules {
 public:
  // Both outlive it.
  ReviewModules(io::Loop& loop, FlightModules& modules);
  ReviewModules(const ReviewModules&) = delete;
  ReviewModules& operator=(const ReviewModules&) = delete;
  // Stop it before.
  ~ReviewModules();

  // Errors: as of FlightModules; Unavailable when `stop` comes first.
  [[nodiscard]] io::Task<Result<FlightModule>> prepare(modules::Wish wish, std::stop_token stop);

  // Ends what goes on, and waits for it.
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<void> prepare_for(modules::Wish wish,
                                           io::OneShot<Result<FlightModule>> done);

  io::Loop& loop_;
  FlightModules& modules_;
  std::stop_source stop_;
  std::size_t preparing_ = 0;
  io::Event prepared_;  // One of them has ended.
};

}  // namespace hangar::airways
