#include "reconcile/turnstile.h"

#include "base/assert.h"
#include "io/loop.h"

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
    // Shared with a call in progress: the lane may end within.
    std::shared_ptr<const Start> start;
    std::uint32_t weight;
    std::uint32_t started_in_turn = 0;
    bool may_have_work = false;
  };

  State(io::Loop& loop_in, std::size_t slots, std::function<void()> on_end_in)
      : loop(loop_in), free(slots), on_end(std::move(on_end_in)) {}

  void release() {
    ++free;
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
    std::size_t budget = free;
    while (budget > 0 && free > 0) {
      Entry* entry = next_in_turn();
      if (entry == nullptr) return;
      --budget;
      --free;
      const auto start = entry->start;
      const Lane* lane = entry->lane;
      const bool is_started = (*start)(Slot(shared_from_this()));
      if (!is_started) ++budget;  // The slot is for the next one.
      // The entry may have moved or gone within the call.
      for (Entry& called : entries) {
        if (called.lane != lane) continue;
        // A lane that had nothing to start has not used its turn.
        if (is_started) ++called.started_in_turn;
        if (!is_started) called.may_have_work = false;
      }
    }
    // In this order: next_in_turn() skips lanes that have used their turn.
    if (free > 0 && next_in_turn() != nullptr) schedule();
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
  std::size_t free;
  std::vector<Entry> entries;
  std::size_t turn = 0;  // The lane whose turn it is, as a position in entries.
  bool is_scheduled = false;
  std::function<void()> on_end;  // Null once the turnstile is gone.
};

Turnstile::Slot::Slot(std::shared_ptr<State> state) : state_(std::move(state)) {}

Turnstile::Slot::~Slot() {
  if (state_) state_->release();
}

Turnstile::Lane::~Lane() {
  std::erase_if(state_->entries, [this](const auto& entry) { return entry.lane == this; });
}

void Turnstile::Lane::wake() {
  for (auto& entry : state_->entries)
    if (entry.lane == this) entry.may_have_work = true;
  if (state_->free > 0) state_->schedule();
}

Turnstile::Turnstile(io::Loop& loop, std::size_t slots, std::function<void()> on_end)
    : state_(std::make_shared<Slot::State>(loop, slots, std::move(on_end))) {
  HANGAR_ASSERT(slots > 0, "nothing would ever run");
}

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
  return state_->free;
}

}  // namespace hangar::reconcile
