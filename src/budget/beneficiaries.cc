#include "budget/beneficiaries.h"

#include "base/assert.h"
#include "base/fair_queue.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/task.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace hangar::budget {

struct Beneficiaries::Wait {
  Wait(FairSlots& slots_in, Demand demand_in)
      : slots(slots_in), demand(demand_in), ended(slots.loop()) {}

  void leave() {
    if (--competing == 0) ended.set(true);
  }

  FairSlots& slots;
  const Demand demand;
  std::stop_source over;  // Requested by the first slot, or from outside.
  std::size_t competing = 0;
  std::optional<Result<FairSlots::Slot>> result;
  io::OneShot<bool> ended;  // No consumer competes any more.
};

struct Beneficiaries::State {
  std::vector<Consumer> consumers;
  std::shared_ptr<Wait> wait;  // Null while nothing waits.
};

Beneficiaries::Beneficiaries(Consumer first) : state_(std::make_shared<State>()) {
  state_->consumers.push_back(std::move(first));
}

const std::vector<Consumer>& Beneficiaries::all() const {
  return state_->consumers;
}

void Beneficiaries::add(const Beneficiaries& others) const {
  if (others.state_ == state_) return;
  for (const Consumer& consumer : others.state_->consumers) {
    const auto known = std::ranges::find(state_->consumers, consumer.tenant, &Consumer::tenant);
    if (known != state_->consumers.end()) continue;
    state_->consumers.push_back(consumer);
    const std::shared_ptr<Wait>& wait = state_->wait;
    if (wait && wait->competing > 0 && !wait->over.stop_requested()) compete(wait, consumer);
  }
}

io::Task<Result<FairSlots::Slot>> Beneficiaries::acquire(FairSlots& slots, Demand demand,
                                                         std::stop_token stop) const {
  const std::shared_ptr<State> state = state_;
  HANGAR_ASSERT(state->wait == nullptr, "the work waits for one slot");
  const auto wait = std::make_shared<Wait>(slots, demand);
  state->wait = wait;
  ++wait->competing;  // Keeps `ended` unset until all have started to compete.
  for (const Consumer& consumer : state->consumers)
    compete(wait, consumer);
  wait->leave();
  {
    const std::stop_callback on_stop(stop, [&wait] { wait->over.request_stop(); });
    // Waits for the last competing task, which must not outlive the slots.
    co_await wait->ended.wait();
  }
  state->wait.reset();
  co_return *std::move(wait->result);
}

void Beneficiaries::compete(const std::shared_ptr<Wait>& wait, Consumer consumer) {
  ++wait->competing;
  wait->slots.loop().spawn(run(wait, std::move(consumer)));
}

io::Task<void> Beneficiaries::run(std::shared_ptr<Wait> wait, Consumer consumer) {
  Result<FairSlots::Slot> slot =
      co_await wait->slots.acquire(std::move(consumer), wait->demand, wait->over.get_token());
  const bool has_won = wait->result && *wait->result;
  if (slot && !has_won) {
    wait->result.emplace(*std::move(slot));
    wait->over.request_stop();
  } else if (!slot && !has_won) {
    wait->result.emplace(std::unexpected(std::move(slot).error()));
  }
  wait->leave();
}

}  // namespace hangar::budget
