// Sleep that looks ahead, for operators with the policy Predictive: what foresight/ plans from the
// wakes of an operator, as its Life takes it.
#pragma once

#include "base/in_slot.h"
#include "base/metrics.h"
#include "base/time.h"
#include "foresight/forecaster.h"
#include "foresight/leaders.h"
#include "foresight/moment.h"
#include "operators/life.h"
#include "operators/operator.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace hangar::operators {

class SleepPlanner;

// What the planners of a host share: who follows whom, and the counts. Loop thread.
class SleepPlanners {
 public:
  explicit SleepPlanners(Metrics& metrics);
  SleepPlanners(const SleepPlanners&) = delete;
  SleepPlanners& operator=(const SleepPlanners&) = delete;

 private:
  friend class SleepPlanner;
  struct Decisions {
    Counter* hits = nullptr;
    Counter* misses = nullptr;
  };

  foresight::Leaders leaders_;
  std::map<foresight::OperatorId, SleepPlanner*> by_id_;
  std::array<Decisions, foresight::kPredictors> decisions_;
  Counter& late_wakes_;
  Counter& loads_refused_;  // There was no memory to spare.
  Counter& loads_used_;
  Counter& loads_wasted_;
};

// Of one operator. Loop thread.
class SleepPlanner : public slots::InSlot {
 public:
  // `on_change`: the plan has changed for a reason outside of this operator. `planners` outlives
  // it.
  SleepPlanner(SleepPlanners& planners, const std::string& namespace_name,
               const SleepPolicy& policy, bool can_load_ahead, std::function<void()> on_change);
  SleepPlanner(const SleepPlanner&) = delete;
  SleepPlanner& operator=(const SleepPlanner&) = delete;
  ~SleepPlanner();

  // The plan of a guest that has nothing to do. The first call since something arrived makes it.
  // Valid until the next call of any of these.
  [[nodiscard]] const Life::Nap& nap(foresight::Moment now);
  // Something arrived for the guest.
  void on_arrival(foresight::Moment now);
  // The guest starts anew: it is not idle.
  void on_start() { nap_.reset(); }
  // It slept, and has been resumed for a turn, or ahead of one.
  struct Resume {
    Duration took;      // That is what a wake waits for,
    Duration cpu_time;  // and this is what it costs.
  };
  void on_woken(const Resume& resume);
  void on_loaded(const Resume& resume);
  void on_load_refused();
  // It sleeps from now on.
  void on_suspended(Instant now, Duration cpu_time, std::uint64_t resident_bytes);

  // As Forecaster::expectation.
  [[nodiscard]] std::optional<foresight::Forecaster::Expectation> expectation(
      foresight::Moment now) const {
    return forecaster_.expectation(now);
  }

 private:
  void on_leader_wake(Instant now);
  void take(const foresight::Plan& plan);

  SleepPlanners& planners_;
  const foresight::OperatorId id_;
  const std::function<void()> on_change_;
  const Duration latency_max_;
  foresight::Forecaster forecaster_;
  Instant idle_since_;
  std::optional<Life::Nap> nap_;  // While it is idle.
  Duration last_resume_cpu_{};
};

}  // namespace hangar::operators
