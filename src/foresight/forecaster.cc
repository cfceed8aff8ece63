#include "foresight/forecaster.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hangar::foresight {

namespace {

// A processor costs as much as this much memory: clouds charge for a core about four to eight times
// the price of a GiB.
constexpr float kBytesPerCore = 4.0F * 1024 * 1024 * 1024;
// Used until it is measured: a suspend and a resume of 0.5 ms for a guest of 2 MiB.
constexpr float kBreakEvenUnknown = 1;
constexpr float kBreakEvenMin = 0.001F;
constexpr float kBreakEvenMax = 60;
constexpr float kCostWeight = 0.2F;
constexpr float kHigherCostWeight = 0.02F;

// The share of all wakes that may be late. The goal allows 5 %; one percent is a margin for the
// error of such a short history.
constexpr float kLateMax = 0.04F;

// Scores follow the last wakes: costs faster than hits, since one late wake of twenty has to be
// visible.
constexpr float kScoreWeight = 1.0F / 16;
constexpr float kHitWeight = 1.0F / 32;
constexpr std::uint8_t kScoredMin = 4;
constexpr std::uint8_t kScoredMax = 32;
// The least gain of a predictor over Idle.
constexpr float kGainMin = 0.02F;

// The allowed cost above Idle, as a share of the cost of Idle; and the number of wakes for which
// allowance accumulates.
constexpr float kExtraMax = 0.04F;
constexpr float kSavedWakes = 8;

float blend(float mean, float value, float weight) {
  return mean + weight * (value - mean);
}

}  // namespace

std::string_view name_of(Predictor predictor) {
  switch (predictor) {
    case Predictor::Idle:
      return "idle";
    case Predictor::Gaps:
      return "gaps";
    case Predictor::Smoothing:
      return "smoothing";
    case Predictor::Rhythm:
      return "rhythm";
    case Predictor::DayTimes:
      return "dayTimes";
    case Predictor::Leader:
      return "leader";
  }
  return "";
}

Forecaster::Forecaster(Goals goals)
    : break_even_(kBreakEvenUnknown),
      idle_after_(std::chrono::duration<float>(goals.idle_after).count()),
      latency_max_(std::chrono::duration<float>(goals.latency_max).count()),
      can_load_ahead_(goals.can_load_ahead) {}

void Forecaster::on_resumed(Duration took) {
  const float seconds = std::chrono::duration<float>(took).count();
  resume_error_ = resume_ > 0 ? blend(resume_error_, std::abs(seconds - resume_), kCostWeight) : 0;
  resume_ = resume_ > 0 ? blend(resume_, seconds, kCostWeight) : seconds;
}

void Forecaster::on_cost(Duration cpu_time, std::uint64_t bytes) {
  const float seconds = std::chrono::duration<float>(cpu_time).count();
  const float measured =
      seconds * kBytesPerCore / static_cast<float>(std::max<std::uint64_t>(bytes, 1));
  const float bounded = std::clamp(measured, kBreakEvenMin, kBreakEvenMax);
  const float weight = !knows_cost_ ? 1 : bounded > break_even_ ? kHigherCostWeight : kCostWeight;
  break_even_ = blend(break_even_, bounded, weight);
  knows_cost_ = true;
}

Terms Forecaster::terms() const {
  return {.break_even = break_even_,
          .resume = resume_ + 2 * resume_error_,
          .latency = latency_max_,
          .idle_after = idle_after_,
          .can_load_ahead = can_load_ahead_};
}

float Forecaster::hit_rate(Predictor predictor) const {
  return static_cast<float>(hit_rates_[static_cast<std::size_t>(predictor)]) / 65535;
}

// The guest sleeps until the leader wakes, and is loaded by the time its own wake is due if it
// would be late.
std::optional<Forecaster::Draft> Forecaster::draft_of_leader(const Terms& terms) const {
  const std::optional<Guess> lag = leader_lag_.guess();
  if (!lag) return std::nullopt;
  if (leader_woke_ == kNever) return Draft{};
  const Guess guess{.at = leader_woke_ + lag->at, .spread = lag->spread};
  if (!terms.loads_ahead()) return Draft{.plan = {}, .guess = guess};
  const float load_at = guess.at - guess.spread - 2 * terms.resume;
  return Draft{.plan = {.keep = 0,
                        .load_at = std::max(load_at, leader_woke_),
                        .drop_at = guess.at + guess.spread},
               .guess = guess};
}

std::optional<Forecaster::Draft> Forecaster::draft(Predictor predictor, WallTime idle_wall,
                                                   const Terms& terms) const {
  std::optional<Guess> guess;
  switch (predictor) {
    case Predictor::Idle:
      return Draft{.plan = {.keep = terms.idle_after}, .guess = {}};
    case Predictor::Gaps: {
      const std::optional<float> keep = gaps_.best_keep(terms);
      if (!keep) return std::nullopt;
      return Draft{.plan = {.keep = *keep}, .guess = {}};
    }
    case Predictor::Leader:
      return draft_of_leader(terms);
    case Predictor::Smoothing:
      guess = smoothing_.guess();
      break;
    case Predictor::Rhythm:
      guess = rhythm_.guess(idle_since_);
      break;
    case Predictor::DayTimes:
      guess = day_times_.guess(idle_wall);
      break;
  }
  if (!guess) return std::nullopt;
  return Draft{.plan = plan_for(*guess, terms), .guess = guess};
}

Predictor Forecaster::choose(WallTime idle_wall, const Terms& terms) const {
  if (scored_ < kScoredMin || allowance_ < 0) return Predictor::Idle;
  Predictor best = Predictor::Idle;
  float best_score = std::numeric_limits<float>::max();
  for (std::size_t index = 0; index < kPredictors; ++index) {
    const auto predictor = static_cast<Predictor>(index);
    if (!draft(predictor, idle_wall, terms)) continue;
    const float late = terms.resumes_late() ? 1 - hit_rate(predictor) : 0;
    float score = costs_[index] + kLatePrice * std::max(0.0F, late - kLateMax);
    if (predictor == Predictor::Idle) score *= 1 - kGainMin;
    if (score >= best_score) continue;
    best = predictor;
    best_score = score;
  }
  return best;
}

const Plan& Forecaster::on_idle(Moment now) {
  is_idle_ = true;
  idle_since_ = now.at;
  leader_woke_ = kNever;
  false_alarms_ = 0;
  const Terms now_terms = terms();
  chosen_ = choose(now.wall, now_terms);
  const std::optional<Draft> drafted = draft(chosen_, now.wall, now_terms);
  plan_ = drafted ? drafted->plan : Plan{.keep = idle_after_};
  return plan_;
}

const Plan* Forecaster::on_leader_wake(Instant now) {
  if (!is_idle_ || now < idle_since_) return nullptr;
  const Terms now_terms = terms();
  const std::optional<Draft> before = draft_of_leader(now_terms);
  const float since = seconds_between(idle_since_, now);
  // If the leader wakes again before this operator was due, only the time moves; it is not a
  // false alarm.
  if (leader_woke_ != kNever && before && before->guess &&
      since > before->guess->at + before->guess->spread) {
    false_alarms_ = static_cast<std::uint8_t>(std::min(false_alarms_ + 1, 255));
  }
  leader_woke_ = since;
  if (chosen_ != Predictor::Leader) return nullptr;
  const std::optional<Draft> drafted = draft_of_leader(now_terms);
  if (!drafted || !drafted->plan.loads_ahead()) return nullptr;
  plan_ = drafted->plan;
  return &plan_;
}

void Forecaster::on_asleep(Instant now) {
  if (!is_idle_ || now < idle_since_) return;
  const float since = seconds_between(idle_since_, now);
  if (since < plan_.keep) {
    plan_.keep = since;
  } else if (since >= plan_.load_at) {
    plan_.drop_at = std::min(plan_.drop_at, since);
  }
}

void Forecaster::on_load_refused() {
  plan_.load_at = plan_.drop_at = kNever;
}

// The cost of false alarms: for each the guest was loaded and dropped again.
float Forecaster::wasted_by_leader(const Terms& terms) const {
  const std::optional<Guess> lag = leader_lag_.guess();
  if (!lag || !terms.loads_ahead()) return 0;
  return static_cast<float>(false_alarms_) *
         (2 * lag->spread + 2 * terms.resume + terms.break_even);
}

Forecaster::Outcome Forecaster::on_wake(Moment now, std::span<const RecentWake> recent) {
  if (!is_idle_) return {};
  is_idle_ = false;
  const Terms now_terms = terms();
  const float gap = std::max(0.0F, seconds_between(idle_since_, now.at));
  const WallTime idle_wall =
      now.wall - std::chrono::duration_cast<WallTime::duration>(now.at - idle_since_);
  const bool by_leader = chosen_ == Predictor::Leader;
  const float wasted = wasted_by_leader(now_terms);

  // The cost that each plan would have had.
  std::array<Price, kPredictors> prices;
  std::array<bool, kPredictors> hits{};
  const Price idle = price_of({.keep = idle_after_}, gap, now_terms);
  bool is_decisive = false;
  for (std::size_t index = 0; index < kPredictors; ++index) {
    const auto predictor = static_cast<Predictor>(index);
    const std::optional<Draft> drafted = draft(predictor, idle_wall, now_terms);
    prices[index] = drafted ? price_of(drafted->plan, gap, now_terms) : idle;
    if (drafted && predictor == Predictor::Leader) prices[index].cost += wasted;
    hits[index] = now_terms.resumes_late()    ? !prices[index].is_late
                  : drafted && drafted->guess ? drafted->guess->contains(gap)
                                              : drafted && gap <= drafted->plan.keep;
    is_decisive = is_decisive || prices[index].is_late != idle.is_late ||
                  std::abs(prices[index].cost - idle.cost) > 0.01F * now_terms.break_even;
  }
  Price actual = price_of(plan_, gap, now_terms);
  if (by_leader) actual.cost += wasted;

  // Wakes for which all plans cost the same, as within a burst, would only dilute the scores.
  if (is_decisive) {
    const float weight = 1 / static_cast<float>(scored_ + 1);
    for (std::size_t index = 0; index < kPredictors; ++index) {
      costs_[index] = blend(costs_[index], prices[index].cost, std::max(weight, kScoreWeight));
      const float rate = blend(static_cast<float>(hit_rates_[index]) / 65535, hits[index] ? 1 : 0,
                               std::max(weight, kHitWeight));
      hit_rates_[index] = static_cast<std::uint16_t>(std::lround(rate * 65535));
    }
    scored_ = std::min<std::uint8_t>(static_cast<std::uint8_t>(scored_ + 1U), kScoredMax);
  }
  const float idle_all = idle.cost + (idle.is_late ? kLatePrice : 0);
  const float actual_all = actual.cost + (actual.is_late ? kLatePrice : 0);
  // Avoided late wakes count as savings; the regular allowance is only a share of the memory cost
  // of Idle.
  allowance_ = std::min(allowance_ + kExtraMax * idle.cost + idle_all - actual_all,
                        kSavedWakes * std::max(idle_all, now_terms.break_even));

  const Outcome outcome{
      .predictor = chosen_,
      .is_hit = !actual.is_late && (idle.is_late || actual.cost <= idle.cost * 1.001F),
      .is_late = actual.is_late,
      .has_loaded_ahead = gap >= plan_.load_at || (by_leader && false_alarms_ > 0),
      .has_used_load = gap >= plan_.load_at && gap <= plan_.drop_at};

  gaps_.learn(gap);
  smoothing_.learn(gap);
  if (has_woken_) rhythm_.learn(now.at, seconds_between(last_wake_, now.at));
  day_times_.learn(now.wall);
  leader_lag_.learn(now.at, recent);
  last_wake_ = now.at;
  has_woken_ = true;
  return outcome;
}

std::optional<Forecaster::Expectation> Forecaster::expectation(Moment now) const {
  if (!is_idle_ || scored_ < kScoredMin) return std::nullopt;
  const WallTime idle_wall =
      now.wall - std::chrono::duration_cast<WallTime::duration>(now.at - idle_since_);
  const float passed = seconds_between(idle_since_, now.at);
  std::optional<Expectation> best;
  for (std::size_t index = 0; index < kPredictors; ++index) {
    const auto predictor = static_cast<Predictor>(index);
    const std::optional<Draft> drafted = draft(predictor, idle_wall, terms());
    if (!drafted || !drafted->guess) continue;
    const Guess& guess = *drafted->guess;
    if (passed > guess.at + guess.spread) continue;
    const float confidence = hit_rate(predictor);
    if (best && confidence <= best->confidence) continue;
    best = Expectation{.at = idle_since_ + to_duration(guess.at),
                       .spread = to_duration(guess.spread),
                       .confidence = confidence,
                       .predictor = predictor};
  }
  return best;
}

}  // namespace hangar::foresight
