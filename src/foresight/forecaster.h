// Looks ahead for one operator: learns from its wakes, and plans each idle time.
//
// Each predictor, and the policy Idle, plans each idle time; the wake then shows what each plan
// would have cost. The plan of the predictor with the lowest recent cost is carried out, as long as
// there is allowance for cost above that of Idle (README.md).
#pragma once

#include "base/time.h"
#include "foresight/day_times.h"
#include "foresight/gap_histogram.h"
#include "foresight/leader_lag.h"
#include "foresight/moment.h"
#include "foresight/plan.h"
#include "foresight/rhythm.h"
#include "foresight/smoothing.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hangar::foresight {

enum class Predictor : std::uint8_t {
  Idle,  // Predicts nothing: the policy that the others are compared with.
  Gaps,  // Stays in memory as long as the lengths of recent gaps suggest.
  Smoothing,
  Rhythm,
  DayTimes,
  Leader,
};
inline constexpr std::size_t kPredictors = 6;
[[nodiscard]] std::string_view name_of(Predictor predictor);

class Forecaster {
 public:
  struct Goals {
    Duration idle_after;   // Idle time of the policy Idle.
    Duration latency_max;  // Goal for the time that a resume adds to 95 % of the wakes.
    bool can_load_ahead = true;
  };
  explicit Forecaster(Goals goals);

  // Measurements: the wall time of a resume (`took`), and the processor time of one suspend and one
  // resume together, for a guest of `bytes`. Larger values count less: a busy
  // machine adds to them.
  void on_resumed(Duration took);
  void on_cost(Duration cpu_time, std::uint64_t bytes);

  // The guest is idle from now on. Returns the plan until it wakes; valid until then.
  const Plan& on_idle(Moment now);
  // The operator that this one follows has woken. Returns the plan if that changes it.
  [[nodiscard]] const Plan* on_leader_wake(Instant now);
  // What was done instead of the plan, so that its cost is that of what was done: the guest has
  // left memory by now, perhaps earlier than planned, or has not been loaded.
  void on_asleep(Instant now);
  void on_load_refused();

  struct Outcome {
    Predictor predictor = Predictor::Idle;
    // The plan was at least as good as that of Idle, and the wake not late.
    bool is_hit = true;
    bool is_late = false;
    bool has_loaded_ahead = false;  // The plan had loaded the guest ahead at least once,
    bool has_used_load = false;     // and the wake came while it was loaded.
  };
  // An event woke the idle guest. `recent`: wakes of operators that it may follow, the latest
  // first. Ignored (with a default outcome) if the guest was not idle.
  Outcome on_wake(Moment now, std::span<const RecentWake> recent = {});

  // When the guest probably wakes next, according to the predictor with the best hit rate. Only
  // while it is idle; std::nullopt: no predictor has a guess whose time has not passed.
  struct Expectation {
    Instant at;
    Duration spread;       // Nearly all wakes come within at - spread and at + spread,
    float confidence = 0;  // the share of recent wakes for which that held: 0 to 1.
    Predictor predictor = Predictor::Idle;
  };
  [[nodiscard]] std::optional<Expectation> expectation(Moment now) const;

  [[nodiscard]] Terms terms() const;
  [[nodiscard]] Predictor chosen() const { return chosen_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] bool is_idle() const { return is_idle_; }
  [[nodiscard]] OperatorId leader() const { return leader_lag_.leader(); }

 private:
  struct Draft {
    Plan plan;
    std::optional<Guess> guess;
  };
  // std::nullopt: the predictor knows too little.
  [[nodiscard]] std::optional<Draft> draft(Predictor predictor, WallTime idle_wall,
                                           const Terms& terms) const;
  [[nodiscard]] std::optional<Draft> draft_of_leader(const Terms& terms) const;
  [[nodiscard]] Predictor choose(WallTime idle_wall, const Terms& terms) const;
  [[nodiscard]] float wasted_by_leader(const Terms& terms) const;
  [[nodiscard]] float hit_rate(Predictor predictor) const;

  Instant last_wake_;
  Instant idle_since_;
  Rhythm rhythm_;
  DayTimes day_times_;
  GapHistogram gaps_;
  LeaderLag leader_lag_;
  Smoothing smoothing_;
  Plan plan_;
  std::array<float, kPredictors> costs_{};              // Recent mean cost of each predictor.
  std::array<std::uint16_t, kPredictors> hit_rates_{};  // Share of the recent wakes, in 65535ths.
  float allowance_ = 0;  // Remaining allowance above the cost of Idle, in seconds of memory.
  float resume_ = 0;     // Mean of recent resumes, and their mean absolute error.
  float resume_error_ = 0;
  float break_even_;
  float idle_after_;
  float latency_max_;
  float leader_woke_ = kNever;  // Seconds after idle_since_.
  std::uint8_t scored_ = 0;     // Wakes that have been scored, up to a bound.
  Predictor chosen_ = Predictor::Idle;
  std::uint8_t false_alarms_ = 0;  // Wakes of the leader, in this idle time, before its last one.
  bool can_load_ahead_ : 1;
  bool knows_cost_ : 1 = false;
  bool is_idle_ : 1 = false;
  bool has_woken_ : 1 = false;
};
static_assert(sizeof(Forecaster) <= 256, "the history of one operator; there are thousands");

}  // namespace hangar::foresight
