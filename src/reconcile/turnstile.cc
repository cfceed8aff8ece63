#include "reconcile/turnstile.h"

#include "budget/consumer.h"
#include "io/loop.h"
#include "reconcile/places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace hangar::reconcile {

struct Turnstile::Slot::State : std::enable_shared_from_this<State> {
  struct Entry {
    const Lane* lane;
    // Shared with a call in progress: the lane may be destroyed within it.
    std::shared_ptr<const Start> start;
    std::uint32_t weight;
    std::uint32_t started_in_turn = 0;
    bool may_have_work = false;
    bool may_have_deletion = false;
    bool is_blocked = false;  // Until a slot is free again.
  };

  State(io::Loop& loop_in, std::size_t slots, std::function<void()> on_end_in)
      : loop(loop_in), places(slots), on_end(std::move(on_end_in)) {}

  void released() {
    for (Entry& entry : entries)
      if (std::exchange(entry.is_blocked, false))
        entry.may_have_work = entry.may_have_deletion = true;
    if (on_end) on_end();
    schedule();
  }

  // Posted, so that no reconcile begins inside another caller's enqueue, and so that the loop gets
  // to its other work between two rounds.
  void schedule() {
    if (is_scheduled) return;
    is_scheduled = true;
    loop.post([self = shared_from_this()] {
      self->is_scheduled = false;
      self->start_round();
    });
  }

  void start_round() {
    start_deletions();
    std::size_t budget = places.ordinary_free_count();
    while (budget > 0 && places.ordinary_free_count() > 0) {
      Entry* entry = next_in_turn();
      if (entry == nullptr) return;
      // Before the call, because the call may wake the lane.
      entry->may_have_work = false;
      // A lane that started nothing has not used its turn.
      if (offer_to(*entry, /*only_deletions=*/false, [](Entry& started) {
            ++started.started_in_turn;
            started.may_have_work = true;
          })) {
        --budget;
      }
    }
    // In this order: next_in_turn() skips lanes that have used their turn.
    if (places.ordinary_free_count() > 0 && next_in_turn() != nullptr) schedule();
  }

  // Deletions of a lane go first, wherever its turn is.
  void start_deletions() {
    std::size_t budget = places.free_count();
    while (budget > 0) {
      const auto entry = std::ranges::find(entries, true, &Entry::may_have_deletion);
      if (entry == entries.end()) return;
      entry->may_have_deletion = false;
      if (offer_to(*entry, /*only_deletions=*/true,
                   [](Entry& started) { started.may_have_deletion = true; })) {
        --budget;
      }
    }
    // Without a free place the next release schedules the round.
    if (places.free_count() > 0 && std::ranges::any_of(entries, &Entry::may_have_deletion))
      schedule();
  }

  // Returns whether the lane started something; if so, calls `on_started`, unless the lane is gone.
  template <class OnStarted>
  bool offer_to(const Entry& entry, bool only_deletions, OnStarted on_started) {
    const auto start = entry.start;
    const Lane* const lane = entry.lane;
    Offer offer(*this, only_deletions);
    const Started started = (*start)(offer);
    // The entry may have moved or gone within the call.
    const auto called = std::ranges::find(entries, lane, &Entry::lane);
    if (called != entries.end()) {
      if (started == Started::Blocked) called->is_blocked = true;
      if (started == Started::One) on_started(*called);
    }
    return started == Started::One;
  }

  // The lane at `turn`, unless it has no work or has used its share: then the next one that
  // has work.
  Entry* next_in_turn() {
    for (std::size_t step = 0; step <= entries.size() && !entries.empty(); ++step) {
      turn %= entries.size();
      Entry& entry = entries[turn];
      if (entry.may_have_work && entry.started_in_turn < entry.weight) return &entry;
      entry.started_in_turn = 0;
      ++turn;
    }
    return nullptr;
  }

  io::Loop& loop;
  Places places;
  std::vector<Entry> entries;
  std::size_t turn = 0;  // The lane whose turn it is, as a position in entries.
  bool is_scheduled = false;
  std::function<void()> on_end;  // Null once the turnstile is gone.
};

Turnstile::Slot::Slot(std::shared_ptr<State> state, Places::Place place)
    : state_(std::move(state)), place_(std::move(place)) {}

Turnstile::Slot::~Slot() {
  if (!state_) return;
  place_.reset();
  state_->released();
}

bool Turnstile::Offer::may_take(const budget::Tenant& tenant, bool is_deletion) const {
  return (is_deletion || !only_deletions_) && state_.places.may_take(tenant, is_deletion);
}

Turnstile::Slot Turnstile::Offer::take(budget::Tenant tenant, bool is_deletion) {
  return {state_.shared_from_this(), state_.places.take(std::move(tenant), is_deletion)};
}

Turnstile::Lane::~Lane() {
  std::erase_if(state_->entries, [this](const auto& entry) { return entry.lane == this; });
}

void Turnstile::Lane::wake(bool has_deletion) {
  for (auto& entry : state_->entries) {
    if (entry.lane != this) continue;
    entry.may_have_work = true;
    entry.may_have_deletion = entry.may_have_deletion || has_deletion;
  }
  const Places& places = state_->places;
  if ((has_deletion ? places.free_count() : places.ordinary_free_count()) > 0) state_->schedule();
}

Turnstile::Turnstile(io::Loop& loop, std::size_t slots, std::function<void()> on_end)
    : state_(std::make_shared<Slot::State>(loop, slots, std::move(on_end))) {}

Turnstile::~Turnstile() {
  state_->on_end = nullptr;
}

std::unique_ptr<Turnstile::Lane> Turnstile::lane(Start start, std::uint32_t weight) {
  std::unique_ptr<Lane> lane(new Lane(state_));
  state_->entries.push_back({.lane = lane.get(),
                             .start = std::make_shared<const Start>(std::move(start)),
                             .weight = std::max<std::uint32_t>(weight, 1)});
  return lane;
}

std::size_t Turnstile::slots_free() const {
  return state_->places.ordinary_free_count();
}

}  // namespace hangar::reconcile
