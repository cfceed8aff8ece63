// Simulates policies of sleep on patterns of events, and prints what each costs as JSON lines.
//
// Nothing runs: operators are times of wakes, and a resume is its measured cost. Predictive is
// hangar's own code (src/foresight).
//
//   sleep_simulation [--seed=N] [--resume-ms=N] [--cpu-ms=N] [--mib=N] [--latency-ms=N]
//                    [--published-cpu=N] [--day]
//
// With --day: one operator that has several patterns at once, and when its guest was in memory on
// the last day (day_picture.py).
#include "foresight/forecaster.h"
#include "foresight/leaders.h"
#include "patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::bench_sleep {
namespace {

using foresight::Forecaster;
using foresight::Moment;
using foresight::OperatorId;
using foresight::Plan;

constexpr double kForEver = std::numeric_limits<double>::infinity();
// As in foresight: a core costs as much as 4 GiB.
constexpr double kMibPerCore = 4096;
// Of a turn: in memory, whatever the policy.
constexpr double kTurn = 0.002;

struct Parameters {
  std::uint64_t seed = 1;
  double resume = 0.0008;      // Wall time.
  double cpu = 0.00048;        // Of a suspend and a resume together.
  double mib = 2;              // Of a guest in memory.
  double latency = 0.02;       // spec.sleep.wakeLatency.
  double published_cpu = 5.8;  // Times as much for a cycle of the published system.
  bool is_day = false;

  [[nodiscard]] double break_even() const { return cpu * kMibPerCore / mib; }
};

struct Totals {
  double resident_seconds = 0;
  std::uint64_t loads = 0;
  std::uint64_t wakes = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::vector<float> latencies;
  // When each guest was in memory, from `stays_from` on.
  double stays_from = kForEver;
  std::vector<std::pair<double, double>> stays;
};

// What a policy decides: a plan for each idle time, as foresight::Plan.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // The operator is idle from `now` on. `gap`: to its next wake, which only the oracle may use.
  virtual Plan on_idle(std::size_t who, double now, double gap) = 0;
  // It wakes. Returns operators whose plans have changed, with their new plans.
  virtual std::vector<std::pair<std::size_t, Plan>> on_wake(std::size_t /*who*/, double /*now*/,
                                                            Totals& /*totals*/) {
    return {};
  }
};

class Fixed final : public Policy {
 public:
  explicit Fixed(double keep) : keep_(keep) {}
  Plan on_idle(std::size_t, double, double) override { return {.keep = static_cast<float>(keep_)}; }

 private:
  const double keep_;
};

// Knows the next wake.
class Oracle final : public Policy {
 public:
  explicit Oracle(const Parameters& parameters) : parameters_(parameters) {}
  Plan on_idle(std::size_t, double, double gap) override {
    const double ahead = parameters_.resume > parameters_.latency ? parameters_.resume : 0;
    if (gap <= ahead + parameters_.break_even()) return {.keep = static_cast<float>(gap) + 1};
    if (ahead == 0 || gap == kForEver) return {};
    // Floats are too coarse for a resume after a day.
    return {.keep = 0,
            .load_at = static_cast<float>(gap - ahead) * (1 - 1e-6F),
            .drop_at = static_cast<float>(gap) + 1};
  }

 private:
  const Parameters& parameters_;
};

// The published system: unloads after a second, smooths the last gaps (a history of 50), loads a
// second before the predicted event and waits a second after it.
class Published final : public Policy {
 public:
  Published(std::size_t count) : states_(count) {}
  Plan on_idle(std::size_t who, double now, double) override {
    const State& state = states_[who];
    if (state.gaps < 3) return {.keep = 1};
    const double expected = state.woke + state.mean - now;
    if (expected <= 2) return {.keep = static_cast<float>(std::max(1.0, expected + 1))};
    return {.keep = 1,
            .load_at = static_cast<float>(expected - 1),
            .drop_at = static_cast<float>(expected + 1)};
  }
  std::vector<std::pair<std::size_t, Plan>> on_wake(std::size_t who, double now, Totals&) override {
    State& state = states_[who];
    if (state.woke >= 0) {
      const double gap = now - state.woke;
      ++state.gaps;
      state.mean = state.gaps == 1 ? gap : state.mean + 0.3 * (gap - state.mean);
    }
    state.woke = now;
    return {};
  }

 private:
  struct State {
    double woke = -1;
    double mean = 0;
    int gaps = 0;
  };
  std::vector<State> states_;
};

class Predictive final : public Policy {
 public:
  Predictive(const Parameters& parameters, const Pattern& pattern) {
    for (const std::string& group : pattern.groups) {
      forecasters_.push_back(std::make_unique<Forecaster>(Forecaster::Goals{
          .idle_after = std::chrono::seconds(1),
          .latency_max = foresight::to_duration(static_cast<float>(parameters.latency))}));
      Forecaster& one = *forecasters_.back();
      for (int times = 0; times < 30; ++times) {
        one.on_resumed(foresight::to_duration(static_cast<float>(parameters.resume)));
        one.on_cost(foresight::to_duration(static_cast<float>(parameters.cpu)),
                    static_cast<std::uint64_t>(parameters.mib * 1024 * 1024));
      }
      ids_.push_back(leaders_.join(group));
      by_id_.emplace(ids_.back(), ids_.size() - 1);
    }
  }
  Plan on_idle(std::size_t who, double now, double) override {
    return forecasters_[who]->on_idle(moment(now));
  }
  std::vector<std::pair<std::size_t, Plan>> on_wake(std::size_t who, double now,
                                                    Totals& totals) override {
    Forecaster& one = *forecasters_[who];
    if (one.is_idle()) {
      const Forecaster::Outcome outcome = one.on_wake(moment(now), leaders_.recent(ids_[who]));
      ++(outcome.is_hit ? totals.hits : totals.misses);
      leaders_.follow(ids_[who], one.leader());
    }
    std::vector<std::pair<std::size_t, Plan>> changed;
    for (const OperatorId follower : leaders_.on_wake(ids_[who], moment(now).at)) {
      const std::size_t index = by_id_.at(follower);
      if (const Plan* const plan = forecasters_[index]->on_leader_wake(moment(now).at)) {
        changed.emplace_back(index, *plan);
      }
    }
    return changed;
  }

 private:
  static Moment moment(double now) {
    const auto since = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(now));
    return {.at = Instant(since + std::chrono::hours(1)),
            .wall = WallTime(std::chrono::duration_cast<WallTime::duration>(since))};
  }

  std::vector<std::unique_ptr<Forecaster>> forecasters_;
  foresight::Leaders leaders_;
  std::vector<OperatorId> ids_;
  std::map<OperatorId, std::size_t> by_id_;
};

// Carries the plans out, operator by operator, in the order of time.
class Simulation {
 public:
  // `resident_max`: the least recently woken idle operator leaves memory above that many.
  // `stays_from`: from when on stays are kept.
  Simulation(const Parameters& parameters, const Pattern& pattern, Policy& policy,
             std::size_t resident_max, double stays_from = kForEver)
      : parameters_(parameters),
        pattern_(pattern),
        policy_(policy),
        resident_max_(resident_max),
        operators_(pattern.wakes.size()) {
    totals_.stays_from = stays_from;
  }

  Totals run() {
    for (std::size_t who = 0; who < operators_.size(); ++who) {
      operators_[who].use = used_.end();
      schedule_wake(who);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.at >= pattern_.seconds) break;
      on_event(event);
    }
    for (std::size_t who = 0; who < operators_.size(); ++who)
      end_stay(who, pattern_.seconds);
    return std::move(totals_);
  }

 private:
  enum class What : std::uint8_t { Wake, TurnEnd, Sleep, Load };
  struct Event {
    double at;
    std::uint64_t order;
    std::size_t who;
    What what;
    std::uint32_t plan;  // Of Sleep and Load: ignored if there is a newer one.
    bool operator>(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  struct One {
    std::size_t next = 0;              // Of its wakes.
    std::optional<double> since = {};  // In memory, or on the way.
    double ready = 0;                  // When the load is complete.
    bool is_busy = false;
    std::uint32_t plan = 0;
    double idle_since = 0;
    std::list<std::size_t>::iterator use;
  };

  void push(double at, std::size_t who, What what) {
    if (at < kForEver) events_.push({at, order_++, who, what, operators_[who].plan});
  }
  void schedule_wake(std::size_t who) {
    const std::vector<double>& wakes = pattern_.wakes[who];
    One& one = operators_[who];
    if (one.next < wakes.size()) push(wakes[one.next], who, What::Wake);
  }
  void load(std::size_t who, double now) {
    One& one = operators_[who];
    if (one.since) return;
    one.since = now;
    one.ready = now + parameters_.resume;
    if (pattern_.is_counted[who]) ++totals_.loads;
    used_.push_back(who);
    one.use = std::prev(used_.end());
    make_room(now);
  }
  void end_stay(std::size_t who, double now) {
    One& one = operators_[who];
    if (one.since && pattern_.is_counted[who]) {
      totals_.resident_seconds += now - *one.since;
      if (now > totals_.stays_from) {
        totals_.stays.emplace_back(std::max(*one.since, totals_.stays_from), now);
      }
    }
    one.since.reset();
  }
  void drop(std::size_t who, double now) {
    One& one = operators_[who];
    if (!one.since || one.is_busy) return;
    end_stay(who, now);
    used_.erase(one.use);
  }
  void make_room(double now) {
    for (auto next = used_.begin(); used_.size() > resident_max_ && next != used_.end();) {
      const std::size_t who = *next++;
      drop(who, now);
    }
  }
  void count_wake(std::size_t who, double latency) {
    if (!pattern_.is_counted[who]) return;
    ++totals_.wakes;
    totals_.latencies.push_back(static_cast<float>(latency));
  }
  void adopt(std::size_t who, const Plan& plan) {
    One& one = operators_[who];
    ++one.plan;
    push(one.idle_since + static_cast<double>(plan.keep), who, What::Sleep);
    push(one.idle_since + static_cast<double>(plan.load_at), who, What::Load);
    push(one.idle_since + static_cast<double>(plan.drop_at), who, What::Sleep);
  }
  void on_event(const Event& event) {
    One& one = operators_[event.who];
    const double now = event.at;
    switch (event.what) {
      case What::Wake: {
        ++one.next;
        schedule_wake(event.who);
        // Comes with the turn that is under way, or right after it.
        if (one.is_busy) return count_wake(event.who, 0);
        load(event.who, now);
        used_.splice(used_.end(), used_, one.use);
        const double waits = std::max(0.0, one.ready - now);
        count_wake(event.who, waits);
        one.is_busy = true;
        ++one.plan;
        push(now + waits + kTurn, event.who, What::TurnEnd);
        for (const auto& [who, plan] : policy_.on_wake(event.who, now, totals_)) {
          if (operators_[who].is_busy) continue;
          adopt(who, plan);
        }
        return;
      }
      case What::TurnEnd: {
        one.is_busy = false;
        one.idle_since = now;
        const std::vector<double>& wakes = pattern_.wakes[event.who];
        const double gap = one.next < wakes.size() ? wakes[one.next] - now : kForEver;
        adopt(event.who, policy_.on_idle(event.who, now, gap));
        make_room(now);
        return;
      }
      case What::Sleep:
        if (event.plan == one.plan) drop(event.who, now);
        return;
      case What::Load:
        if (event.plan == one.plan && !one.is_busy) load(event.who, now);
        return;
    }
  }

  const Parameters& parameters_;
  const Pattern& pattern_;
  Policy& policy_;
  const std::size_t resident_max_;
  std::vector<One> operators_;
  std::list<std::size_t> used_;  // In memory; the latest last.
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Totals totals_;
};

void report(const Parameters& parameters, const Pattern& pattern, std::string_view policy,
            Totals totals, double cpu_factor) {
  std::ranges::sort(totals.latencies);
  const std::size_t count = totals.latencies.size();
  const double p95 =
      count == 0 ? 0 : static_cast<double>(totals.latencies[(count * 95 + 99) / 100 - 1]);
  const auto late = static_cast<double>(
      totals.latencies.end() -
      std::ranges::upper_bound(totals.latencies, static_cast<float>(parameters.latency)));
  const double mib_seconds = totals.resident_seconds * parameters.mib;
  const double cpu = static_cast<double>(totals.loads) * parameters.cpu * cpu_factor;
  fmt::print(
      R"({{"pattern":"{}","policy":"{}","wakes":{},"loads":{},"mib_seconds":{:.1f},"cpu_seconds":{:.3f},)"
      R"("cost":{:.1f},"p95_ms":{:.3f},"late":{:.5f},"hits":{},"misses":{}}})"
      "\n",
      pattern.name, policy, totals.wakes, totals.loads, mib_seconds, cpu,
      mib_seconds + cpu * kMibPerCore, p95 * 1000, late / std::max(1.0, static_cast<double>(count)),
      totals.hits, totals.misses);
}

void compare(const Parameters& parameters, const Pattern& pattern) {
  const std::size_t count = pattern.wakes.size();
  const auto run = [&](std::string_view name, Policy& policy, std::size_t resident_max,
                       double cpu_factor = 1) {
    report(parameters, pattern, name, Simulation(parameters, pattern, policy, resident_max).run(),
           cpu_factor);
  };
  Fixed never(kForEver);
  run("never", never, count);
  Fixed idle(1);
  run("idle", idle, count);
  Fixed at_once(0);
  run("at once", at_once, count);
  // The budget holds a quarter of the operators.
  Fixed budget(kForEver);
  run("lru", budget, std::max<std::size_t>(1, count / 4));
  Published policy(count);
  run("published policy", policy, count);
  Published published(count);
  run("published", published, count, parameters.published_cpu);
  Predictive predictive(parameters, pattern);
  run("predictive", predictive, count);
  Oracle oracle(parameters);
  run("oracle", oracle, count);
}

// Times are seconds since the last midnight.
void print_day(const Parameters& parameters, std::uint64_t seed) {
  const Pattern pattern = several_at_once(seed);
  const double midnight = pattern.seconds - 24 * 3600;
  const auto run = [&](std::string_view name, Policy& policy) {
    const Totals totals =
        Simulation(parameters, pattern, policy, pattern.wakes.size(), midnight).run();
    std::string stays;
    for (const auto& [from, to] : totals.stays)
      stays += fmt::format("{}[{:.3f},{:.3f}]", stays.empty() ? "" : ",", from - midnight,
                           to - midnight);
    fmt::print(R"({{"policy":"{}","stays":[{}]}})"
               "\n",
               name, stays);
  };
  std::string wakes;
  for (const double at : pattern.wakes.front())
    if (at >= midnight) wakes += fmt::format("{}{:.3f}", wakes.empty() ? "" : ",", at - midnight);
  fmt::print(R"({{"wakes":[{}]}})"
             "\n",
             wakes);
  Fixed idle(1);
  run("Idle", idle);
  Predictive predictive(parameters, pattern);
  run("Predictive", predictive);
}

std::optional<Parameters> parse(int count, char** arguments) {
  Parameters parameters;
  for (int index = 1; index < count; ++index) {
    const std::string_view argument(arguments[index]);
    if (argument == "--day") {
      parameters.is_day = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = argument.substr(0, equals);
    const double value = std::strtod(arguments[index] + equals + 1, nullptr);
    if (name == "--seed") {
      parameters.seed = static_cast<std::uint64_t>(value);
    } else if (name == "--resume-ms") {
      parameters.resume = value / 1000;
    } else if (name == "--cpu-ms") {
      parameters.cpu = value / 1000;
    } else if (name == "--mib") {
      parameters.mib = value;
    } else if (name == "--latency-ms") {
      parameters.latency = value / 1000;
    } else if (name == "--published-cpu") {
      parameters.published_cpu = value;
    } else {
      return std::nullopt;
    }
  }
  return parameters;
}

int simulate(int count, char** arguments) {
  const std::optional<Parameters> parameters = parse(count, arguments);
  if (!parameters) {
    fmt::print(stderr,
               "sleep_simulation [--seed=N] [--resume-ms=N] [--cpu-ms=N] [--mib=N] "
               "[--latency-ms=N] [--published-cpu=N] [--day]\n");
    return 2;
  }
  fmt::print(stderr, "seed {}\n", parameters->seed);
  if (parameters->is_day) {
    print_day(*parameters, parameters->seed);
    return 0;
  }
  for (const Pattern& pattern : all_patterns(parameters->seed))
    compare(*parameters, pattern);
  return 0;
}

}  // namespace
}  // namespace hangar::bench_sleep

int main(int count, char** arguments) {
  return hangar::bench_sleep::simulate(count, arguments);
}
