#include "airways/life.h"

#include "airways/resource_ref.h"
#include "base/time.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace hangar::airways {

bool Life::on_child(bool is_our_own_write) const {
  if (waits_for_ != Waiting::Nothing) return true;
  return !is_our_own_write && !is_to_evaluate_ && !is_ready_flights_;
}

Life::Act Life::begin(const Facts& facts, const std::function<bool(const ResourceRef&)>& has_news,
                      Instant now) {
  // A change that arrives before the act has ended must queue the instance again.
  const bool waited_for_release = std::exchange(waits_for_, Waiting::Release) == Waiting::Release;
  if (facts.is_being_deleted) return Act::TakeDown;
  if (!facts.has_flight) {
    waits_for_ = Waiting::Nothing;
    drift_at_.reset();  // Without a flight, it would do nothing.
    return Act::Nothing;
  }
  const bool is_drift_due = drift_at_ && *drift_at_ <= now;
  due_ = has_failed_          ? Due::Retry
         : is_drift_due       ? Due::Drift
         : waited_for_release ? Due::Release
                              : Due::Nothing;
  const bool counts = tracked_in(now) == Duration::zero();
  const bool is_changed = counts && std::ranges::any_of(changed_, has_news);
  if (std::exchange(is_to_evaluate_, false) || is_changed || is_drift_due || waited_for_release) {
    changed_.clear();
    tracked_at_ = now + facts.tracked_interval_min;
    return Act::Evaluate;
  }
  if (counts) changed_.clear();
  if (is_ready_flights_) {
    // The flight sets Ready, and says nothing new before it runs again.
    waits_for_ = Waiting::Nothing;
    return Act::Nothing;
  }
  return Act::Settle;
}

bool Life::on_release_waits(const ReleaseWait& wait, Instant now) {
  // Each stage has its own patience, and so has the prune after them. A release that falls back to
  // an earlier one gets no more: it could go back and forth for ever.
  if (!release_until_ || wait.step > release_step_) {
    release_until_ = now + wait.patience;
    release_step_ = wait.step;
  }
  if (*release_until_ <= now) {
    release_until_.reset();
    return false;
  }
  waits_for_ = Waiting::Release;
  return true;
}

void Life::on_released() {
  release_until_.reset();
  waits_for_ = Waiting::Readiness;
}

void Life::on_settled(bool is_ready) {
  waits_for_ = is_ready ? Waiting::Nothing : Waiting::Readiness;
}

void Life::on_evaluated(Duration drift_interval, Instant now) {
  has_failed_ = false;
  drift_at_.reset();
  if (drift_interval > Duration::zero()) drift_at_ = now + drift_interval;
}

void Life::on_failed() {
  waits_for_ = Waiting::Nothing;
  release_until_.reset();
  has_failed_ = true;
  is_to_evaluate_ = true;
}

Duration Life::patience_left(Instant now) const {
  return release_until_ ? std::max(Duration::zero(), Duration(*release_until_ - now))
                        : Duration::zero();
}

Duration Life::tracked_in(Instant now) const {
  return tracked_at_ ? std::max(Duration::zero(), Duration(*tracked_at_ - now)) : Duration::zero();
}

std::optional<Duration> Life::next_look(std::optional<Duration> look_again, Instant now) const {
  const auto soonest = [&look_again](Duration wait) {
    look_again = std::min(look_again.value_or(Duration::max()), wait);
  };
  if (drift_at_) soonest(std::max(Duration::zero(), Duration(*drift_at_ - now)));
  if (!changed_.empty() && tracked_in(now) > Duration::zero()) soonest(tracked_in(now));
  return look_again;
}

}  // namespace hangar::airways
