#include "modules/load_slots.h"

#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

namespace hangar::modules {

// The slot comes back on the loop's thread.
void LoadSlots::Slot::release() {
  if (is_released_.exchange(true)) return;
  io::Loop& loop = slots_->loop();
  loop.post([slots = std::move(slots_), slot = std::move(slot_)] {});
}

LoadSlots::LoadSlots(io::Loop& loop, Options options)
    : options_(options),
      small_(std::make_shared<budget::FairSlots>(
          loop, budget::FairSlots::Options{.slots = options.small})),
      large_(std::make_shared<budget::FairSlots>(loop, budget::FairSlots::Options{.slots = 1})) {}

io::Task<Result<std::shared_ptr<LoadSlots::Slot>>> LoadSlots::acquire(
    budget::Beneficiaries beneficiaries, std::uint64_t bytes, std::stop_token stop) {
  if (bytes <= options_.free_bytes_max) co_return std::shared_ptr<Slot>();
  const std::shared_ptr<budget::FairSlots>& slots =
      bytes <= options_.small_bytes_max ? small_ : large_;
  budget::FairSlots::Slot slot = HANGAR_CO_TRY(co_await beneficiaries.acquire(
      *slots, {.cost = bytes, .rank = static_cast<std::uint32_t>(std::bit_width(bytes))},
      std::move(stop)));
  co_return std::make_shared<Slot>(slots, std::move(slot));
}

}  // namespace hangar::modules
