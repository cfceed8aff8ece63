#include "foresight/plan.h"

#include <algorithm>

namespace hangar::foresight {

namespace {

// A load waits for other work of the loop and the workers.
constexpr float kLoadMargin = 1.25F;

}  // namespace

Plan plan_for(const Guess& guess, const Terms& terms) {
  const float end = guess.at + guess.spread;
  // Staying in memory costs the time until the wake.
  if (!terms.loads_ahead()) return {.keep = guess.at <= terms.missed() ? end : 0};
  const float load_at = guess.at - guess.spread - kLoadMargin * terms.resume;
  if (load_at <= terms.break_even) return {.keep = std::max(end, 0.0F)};
  return {.keep = 0, .load_at = load_at, .drop_at = end};
}

Price price_of(const Plan& plan, float gap, const Terms& terms) {
  if (gap <= plan.keep) return {.cost = gap};
  if (gap < plan.load_at) {
    return {.cost = plan.keep + terms.break_even, .is_late = terms.resumes_late()};
  }
  if (gap <= plan.drop_at) {
    // A load in progress shortens the resume by the time that it has run.
    const float rest = terms.resume - (gap - plan.load_at);
    return {.cost = plan.keep + (gap - plan.load_at) + terms.break_even,
            .is_late = rest > terms.latency};
  }
  return {.cost = plan.keep + (plan.drop_at - plan.load_at) + 2 * terms.break_even,
          .is_late = terms.resumes_late()};
}

}  // namespace hangar::foresight
