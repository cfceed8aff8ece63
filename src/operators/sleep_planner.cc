#include "operators/sleep_planner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace hangar::operators {

using foresight::Forecaster;
using foresight::Moment;
using foresight::OperatorId;
using foresight::Plan;

namespace {

// Far enough for "never", and near enough to be added to a time.
constexpr float kSecondsMax = 100.0F * 24 * 3600;

Instant later(Instant since, float seconds) {
  return since + foresight::to_duration(std::min(seconds, kSecondsMax));
}

}  // namespace

SleepPlanners::SleepPlanners(Metrics& metrics)
    : late_wakes_(
          metrics.counter("hangar_operator_late_wakes_total",
                          "wakes for which a resume took longer than spec.sleep.wakeLatency")),
      loads_refused_(metrics.counter("hangar_operator_loads_ahead_total",
                                     "guests that were loaded before they were needed",
                                     {{"outcome", "refused"}})),
      loads_used_(metrics.counter("hangar_operator_loads_ahead_total",
                                  "guests that were loaded before they were needed",
                                  {{"outcome", "used"}})),
      loads_wasted_(metrics.counter("hangar_operator_loads_ahead_total",
                                    "guests that were loaded before they were needed",
                                    {{"outcome", "wasted"}})) {
  for (std::size_t index = 0; index < foresight::kPredictors; ++index) {
    const std::string predictor(name_of(static_cast<foresight::Predictor>(index)));
    const auto counter = [&](const char* outcome) {
      return &metrics.counter("hangar_operator_sleep_decisions_total",
                              "plans for idle times of operators with the policy Predictive",
                              {{"predictor", predictor}, {"outcome", outcome}});
    };
    decisions_[index] = {.hits = counter("hit"), .misses = counter("miss")};
  }
}

SleepPlanner::SleepPlanner(SleepPlanners& planners, const std::string& namespace_name,
                           const SleepPolicy& policy, bool can_load_ahead,
                           std::function<void()> on_change)
    : planners_(planners),
      id_(planners.leaders_.join(namespace_name)),
      on_change_(std::move(on_change)),
      latency_max_(policy.wake_latency),
      forecaster_({.idle_after = policy.after,
                   .latency_max = policy.wake_latency,
                   .can_load_ahead = can_load_ahead}) {
  planners_.by_id_.emplace(id_, this);
}

SleepPlanner::~SleepPlanner() {
  planners_.by_id_.erase(id_);
  planners_.leaders_.leave(id_);
}

const Life::Nap& SleepPlanner::nap(Moment now) {
  if (!nap_) {
    idle_since_ = now.at;
    take(forecaster_.on_idle(now));
  }
  return *nap_;
}

void SleepPlanner::take(const Plan& plan) {
  nap_ = Life::Nap{.sleep_at = later(idle_since_, plan.keep)};
  if (!plan.loads_ahead()) return;
  nap_->load_at = later(idle_since_, plan.load_at);
  nap_->drop_at = later(idle_since_, plan.drop_at);
}

void SleepPlanner::on_arrival(Moment now) {
  if (!nap_) return;
  nap_.reset();
  const Forecaster::Outcome outcome = forecaster_.on_wake(now, planners_.leaders_.recent(id_));
  planners_.leaders_.follow(id_, forecaster_.leader());
  const auto& counters = planners_.decisions_[static_cast<std::size_t>(outcome.predictor)];
  (outcome.is_hit ? counters.hits : counters.misses)->add();
  if (outcome.has_loaded_ahead) {
    (outcome.has_used_load ? planners_.loads_used_ : planners_.loads_wasted_).add();
  }
  for (const OperatorId follower : planners_.leaders_.on_wake(id_, now.at))
    planners_.by_id_.at(follower)->on_leader_wake(now.at);
}

void SleepPlanner::on_leader_wake(Instant now) {
  if (!nap_) return;
  const Plan* const changed = forecaster_.on_leader_wake(now);
  if (changed == nullptr) return;
  take(*changed);
  on_change_();
}

void SleepPlanner::on_woken(const Resume& resume) {
  if (resume.took > latency_max_) planners_.late_wakes_.add();
  on_loaded(resume);
}

void SleepPlanner::on_loaded(const Resume& resume) {
  last_resume_cpu_ = resume.cpu_time;
  forecaster_.on_resumed(resume.took);
}

void SleepPlanner::on_load_refused() {
  planners_.loads_refused_.add();
  forecaster_.on_load_refused();
}

void SleepPlanner::on_suspended(Instant now, Duration cpu_time, std::uint64_t resident_bytes) {
  forecaster_.on_asleep(now);
  // Before the first resume, it is taken to cost as much as the suspend.
  const Duration resume = last_resume_cpu_ > Duration::zero() ? last_resume_cpu_ : cpu_time;
  forecaster_.on_cost(cpu_time + resume, resident_bytes);
}

}  // namespace hangar::operators
