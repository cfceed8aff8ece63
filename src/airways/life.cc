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
  const bool is_changed = std::ranges::any_of(changed_, has_news);
  changed_.clear();
  if (std::exchange(is_to_evaluate_, false) || is_changed || is_drift_due || waited_for_release) {
    return Act::Evaluate;
  }
  if (is_ready_flights_) {
    // The flight sets Ready, and says nothing new before it runs again.
    waits_for_ = Waiting::Nothing;
    return Act::Nothing;
  }
  return Act::Settle;
}

bool Life::on_release_waits(Duration patience, Instant now) {
  if (!release_until_) release_until_ = now + patience;
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
  drift_at_.reset();
  if (drift_interval > Duration::zero()) drift_at_ = now + drift_interval;
}

void Life::on_failed() {
  waits_for_ = Waiting::Nothing;
  is_to_evaluate_ = true;
}

Duration Life::patience_left(Instant now) const {
  return release_until_ ? std::max(Duration::zero(), Duration(*release_until_ - now))
                        : Duration::zero();
}

std::optional<Duration> Life::next_look(std::optional<Duration> look_again, Instant now) const {
  if (!drift_at_) return look_again;
  const Duration until = std::max(Duration::zero(), Duration(*drift_at_ - now));
  return std::min(look_again.value_or(Duration::max()), until);
}

}  // namespace hangar::airways
