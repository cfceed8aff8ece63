#include "airways/review_modules.h"

#include "airways/flight_modules.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/supply.h"

#include <cstddef>
#include <stop_token>
#include <utility>

namespace hangar::airways {

namespace {

// Concurrent preparations; a single namespace may have half of them.
constexpr std::size_t kPreparingMax = 16;
constexpr std::size_t kWaitingPerTenantMax = 64;

}  // namespace

ReviewModules::ReviewModules(io::Loop& loop, FlightModules& modules)
    : loop_(loop),
      modules_(modules),
      slots_(loop, {.slots = kPreparingMax, .waiting_per_tenant_max = kWaitingPerTenantMax}),
      prepared_(loop) {}

ReviewModules::~ReviewModules() = default;

io::Task<Result<FlightModule>> ReviewModules::prepare(modules::Wish wish, std::stop_token stop) {
  HANGAR_CO_TRY(modules_.check_allowed(wish.module.reference));
  Result<budget::FairSlots::Slot> slot =
      co_await slots_.acquire(wish.requester.consumer("reviews"), {}, stop);
  if (!slot) {
    co_return fail(ErrorKind::Unavailable,
                   "other modules are being fetched and compiled for reviews; try again in a "
                   "moment");
  }
  const io::OneShot<Result<FlightModule>> done(loop_);
  loop_.spawn(prepare_for(std::move(wish), *std::move(slot), done));
  const std::stop_callback on_stop(stop, [&done] {
    done.set(fail(ErrorKind::Unavailable,
                  "the module is still being fetched and compiled; try again in a moment"));
  });
  co_return co_await done.wait();
}

io::Task<void> ReviewModules::prepare_for(modules::Wish wish, budget::FairSlots::Slot slot,
                                          io::OneShot<Result<FlightModule>> done) {
  ++preparing_;
  {
    const budget::FairSlots::Slot held = std::move(slot);
    done.set(co_await modules_.prepare(std::move(wish), stop_.get_token()));
  }
  --preparing_;
  prepared_.notify_all();
}

io::Task<void> ReviewModules::stop() {
  stop_.request_stop();
  while (preparing_ > 0)
    (void)co_await prepared_.wait({});
}

}  // namespace hangar::airways
