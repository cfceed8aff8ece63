#include "operators/life.h"

#include "base/assert.h"
#include "base/backoff.h"

#include <algorithm>
#include <utility>

namespace hangar::operators {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::Starting:
      return "Starting";
    case Phase::Running:
      return "Running";
    case Phase::Asleep:
      return "Asleep";
    case Phase::BackOff:
      return "BackOff";
    case Phase::Completed:
      return "Completed";
  }
  return "";
}

Life::Step Life::begin(Act act) {
  state_ = State::Busy;
  act_ = act;
  if (act == Act::Start || act == Act::Wake) {
    has_arrivals_ = false;
    is_pressed_ = false;
  }
  return {.act = act};
}

Life::Step Life::next(Instant now, const Nap* nap) {
  if (is_held_) {
    const bool leaves = state_ == State::Resident && may_sleep_now_held() && !expects_answer_;
    return leaves ? begin(Act::Sleep) : Step();
  }
  switch (state_) {
    case State::New:
      started_at_ = now;
      ++start_count_;
      return begin(Act::Start);
    case State::BackOff:
      if (now < retry_at_) return {.ask_again = retry_at_};
      started_at_ = now;
      ++start_count_;
      return begin(Act::Start);
    case State::Resident: {
      if (is_evicted_) return begin(Act::Sleep);
      if (has_arrivals_) return begin(Act::Wake);
      if (!options_.sleep_after) return {};
      Instant planned = idle_since_ + *options_.sleep_after;
      if (nap != nullptr) planned = loaded_for_ ? nap->drop_at : nap->sleep_at;
      if (expects_answer_) planned = std::max(planned, idle_since_ + options_.answer_wait);
      const Instant sleep_at = std::max(is_pressed_ ? idle_since_ : planned, sleep_not_before_);
      if (now >= sleep_at) {
        const bool was_pressed = is_pressed_;
        Step step = begin(wants_last_turn_ ? Act::Wake : Act::Sleep);
        is_pressed_ = was_pressed;
        return step;
      }
      return {.ask_again = sleep_at};
    }
    case State::Asleep:
      if (has_arrivals_) return begin(Act::Wake);
      if (nap == nullptr || !nap->load_at || loaded_for_ == nap->load_at || now >= nap->drop_at) {
        return {};
      }
      if (now < *nap->load_at) return {.ask_again = nap->load_at};
      loaded_for_ = nap->load_at;
      return begin(Act::Load);
    case State::Busy:
    case State::Completed:
      return {};
  }
  return {};
}

void Life::on_arrival() {
  if (state_ == State::New || state_ == State::BackOff || state_ == State::Completed) return;
  has_arrivals_ = true;
}

void Life::on_turn_ended(TurnEnd end, Instant now) {
  HANGAR_ASSERT(state_ == State::Busy && act_ != Act::Sleep && act_ != Act::Load,
                "a turn was under way");
  if (!std::exchange(stays_idle_, false)) {
    idle_since_ = now;
    loaded_for_.reset();
  }
  if (end == TurnEnd::Completed) {
    state_ = State::Completed;
    return;
  }
  state_ = State::Resident;
  if (end == TurnEnd::Failed || std::exchange(must_fail_, false)) fail(now);
}

void Life::on_turn_put_off(Instant now) {
  HANGAR_ASSERT(state_ == State::Busy && act_ == Act::Wake, "a turn was to begin");
  state_ = State::Resident;
  has_arrivals_ = true;
  if (std::exchange(must_fail_, false)) fail(now);
}

void Life::on_sleep_ended(SleepEnd end, Instant now) {
  HANGAR_ASSERT(state_ == State::Busy && act_ == Act::Sleep, "it was going to sleep");
  is_evicted_ = false;
  has_slept_in_vain_ = is_held_ && end == SleepEnd::StaysResident;
  state_ = end == SleepEnd::Asleep ? State::Asleep : State::Resident;
  // Not again at once: the obstacle (a full disk) lasts a while, and each attempt compresses.
  if (end == SleepEnd::StaysResident) sleep_not_before_ = now + options_.sleep_retry;
  is_pressed_ = false;
  if (std::exchange(must_fail_, false)) fail(now);
}

void Life::on_load_ended(LoadEnd end, Instant now) {
  HANGAR_ASSERT(state_ == State::Busy && act_ == Act::Load, "it was being loaded");
  state_ = end == LoadEnd::Loaded ? State::Resident : State::Asleep;
  if (end == LoadEnd::StaysAsleep) is_evicted_ = false;
  is_pressed_ = false;
  if (std::exchange(must_fail_, false)) fail(now);
}

void Life::take_over(const Past& past) {
  HANGAR_ASSERT(state_ == State::New, "an instance is taken over before any other has begun");
  state_ = State::Asleep;
  started_at_ = past.started_at;
  idle_since_ = past.idle_since;
  start_count_ = past.start_count;
}

void Life::fail(Instant now) {
  if (state_ == State::Busy) {
    must_fail_ = true;
    return;
  }
  if (state_ != State::Resident && state_ != State::Asleep) return;
  if (now - started_at_ >= options_.stable_min) failures_ = 0;
  const ExponentialBackoff backoff{.min = options_.backoff_min, .max = options_.backoff_max};
  loaded_for_.reset();
  is_evicted_ = false;
  retry_at_ = now + backoff.delay(failures_++);
  state_ = State::BackOff;
  has_arrivals_ = false;
  must_fail_ = false;
}

Phase Life::phase() const {
  switch (state_) {
    case State::New:
      return Phase::Starting;
    case State::Busy:
      return act_ == Act::Start ? Phase::Starting : Phase::Running;
    case State::Resident:
      return Phase::Running;
    case State::Asleep:
      return Phase::Asleep;
    case State::BackOff:
      return Phase::BackOff;
    case State::Completed:
      return Phase::Completed;
  }
  return Phase::Starting;
}

}  // namespace hangar::operators
