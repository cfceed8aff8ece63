#include "patterns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <utility>

namespace hangar::bench_sleep {

namespace {

using Dice = std::mt19937_64;

double exponential(Dice& dice, double mean) {
  return std::exponential_distribution<double>(1 / mean)(dice);
}

double normal(Dice& dice, double sigma) {
  return std::normal_distribution<double>(0, sigma)(dice);
}

constexpr double kDay = 24 * 3600;

// The periods of the published experiment; the jitter is a tenth of a second.
constexpr std::array kPeriods = {5.0, 10.0, 20.0, 30.0, 60.0};

Pattern make(std::string name, double seconds) {
  return {.name = std::move(name), .seconds = seconds, .wakes = {}, .groups = {}, .is_counted = {}};
}

void add(Pattern& pattern, std::vector<double> wakes, const std::string& group,
         bool is_counted = true) {
  std::ranges::sort(wakes);
  std::erase_if(wakes, [&](double at) { return at < 0 || at >= pattern.seconds; });
  pattern.wakes.push_back(std::move(wakes));
  pattern.groups.push_back(group);
  pattern.is_counted.push_back(is_counted);
}

std::vector<double> beats(Dice& dice, double from, double to, double period, double jitter) {
  std::vector<double> wakes;
  for (double at = from + std::uniform_real_distribution<double>(0, period)(dice); at < to;
       at += period) {
    wakes.push_back(at + normal(dice, jitter));
  }
  return wakes;
}

// A timer or a resync: a fixed period.
Pattern periodic(Dice& dice, double noise_mean) {
  Pattern pattern = make(noise_mean > 0 ? "periodic, with other events" : "periodic", 4 * 3600);
  for (int index = 0; index < 50; ++index) {
    std::vector<double> wakes = beats(
        dice, 0, pattern.seconds, kPeriods[static_cast<std::size_t>(index) % kPeriods.size()], 0.1);
    if (noise_mean > 0) {
      for (double at = exponential(dice, noise_mean); at < pattern.seconds;
           at += exponential(dice, noise_mean)) {
        wakes.push_back(at);
      }
    }
    add(pattern, std::move(wakes), "periodic");
  }
  return pattern;
}

// The period changes every quarter of an hour.
Pattern changing(Dice& dice) {
  Pattern pattern = make("period that changes", 4 * 3600);
  for (int index = 0; index < 50; ++index) {
    std::vector<double> wakes;
    for (double from = 0; from < pattern.seconds; from += 900) {
      const double period =
          kPeriods[std::uniform_int_distribution<std::size_t>(0, kPeriods.size() - 1)(dice)];
      const std::vector<double> part = beats(dice, from, from + 900, period, 0.1);
      wakes.insert(wakes.end(), part.begin(), part.end());
    }
    add(pattern, std::move(wakes), "changing");
  }
  return pattern;
}

// A rollout, a list of objects that somebody applies: some events within a second, then nothing.
Pattern bursty(Dice& dice) {
  Pattern pattern = make("bursty", 4 * 3600);
  for (int index = 0; index < 50; ++index) {
    std::vector<double> wakes;
    double at = 0;
    while ((at += exponential(dice, 120)) < pattern.seconds) {
      const int events = std::uniform_int_distribution<int>(1, 30)(dice);
      for (int event = 0; event < events; ++event)
        wakes.push_back(at += exponential(dice, 0.05));
    }
    add(pattern, std::move(wakes), "bursty");
  }
  return pattern;
}

// Events that people cause: 1 per 20 s at 14:00, 1 per half hour at 02:00.
Pattern diurnal(Dice& dice) {
  Pattern pattern = make("diurnal", 7 * kDay);
  for (int index = 0; index < 20; ++index) {
    std::vector<double> wakes;
    const double most = 1.0 / 20;
    for (double at = exponential(dice, 1 / most); at < pattern.seconds;
         at += exponential(dice, 1 / most)) {
      const double phase = (std::fmod(at, kDay) / kDay - 14.0 / 24) * 2 * std::numbers::pi;
      const double rate = std::pow((1 + std::cos(phase)) / 2, 2) * most + 1.0 / 1800;
      if (std::uniform_real_distribution<double>(0, most)(dice) < rate) wakes.push_back(at);
    }
    add(pattern, std::move(wakes), "diurnal");
  }
  return pattern;
}

// Jobs at three times of each day, give or take some seconds.
Pattern nightly(Dice& dice) {
  Pattern pattern = make("times of the day", 60 * kDay);
  for (int index = 0; index < 20; ++index) {
    std::array<double, 3> times{};
    for (double& time : times)
      time = std::uniform_real_distribution<double>(0, kDay)(dice);
    std::vector<double> wakes;
    for (double day = 0; day < pattern.seconds; day += kDay) {
      for (const double time : times)
        wakes.push_back(day + time + normal(dice, 1));
    }
    add(pattern, std::move(wakes), "nightly");
  }
  return pattern;
}

// B wakes 40 ms after A, and A once a minute on average; 2 % of B's wakes do not come. Only B
// counts: A's own wakes are as unpredictable as those of other patterns.
Pattern dependent(Dice& dice) {
  Pattern pattern = make("dependent", 4 * 3600);
  for (int index = 0; index < 25; ++index) {
    const std::string group = "pair" + std::to_string(index);
    std::vector<double> leads;
    std::vector<double> follows;
    for (double at = exponential(dice, 60); at < pattern.seconds; at += exponential(dice, 60)) {
      leads.push_back(at);
      if (std::uniform_real_distribution<double>(0, 1)(dice) < 0.02) continue;
      follows.push_back(at + 0.04 + std::abs(normal(dice, 0.003)));
    }
    add(pattern, std::move(leads), group, false);
    add(pattern, std::move(follows), group);
  }
  return pattern;
}

}  // namespace

std::vector<Pattern> all_patterns(std::uint64_t seed) {
  // Each pattern has dice of its own, so that a change of one leaves the others as they are.
  std::vector<Pattern> patterns;
  std::uint64_t next = seed;
  const auto dice = [&next] { return Dice(next++); };
  Dice first = dice();
  patterns.push_back(periodic(first, 0));
  Dice second = dice();
  patterns.push_back(periodic(second, 45));
  Dice third = dice();
  patterns.push_back(changing(third));
  Dice fourth = dice();
  patterns.push_back(bursty(fourth));
  Dice fifth = dice();
  patterns.push_back(diurnal(fifth));
  Dice sixth = dice();
  patterns.push_back(nightly(sixth));
  Dice seventh = dice();
  patterns.push_back(dependent(seventh));
  return patterns;
}

Pattern several_at_once(std::uint64_t seed) {
  constexpr int kDays = 8;
  constexpr double kHour = 3600;
  Dice dice(seed);
  Pattern pattern = make("several at once", kDays * kDay);
  std::vector<double> wakes = beats(dice, 0, pattern.seconds, 600, 0.1);
  for (double midnight = 0; midnight < pattern.seconds; midnight += kDay) {
    wakes.push_back(midnight + 2 * kHour + normal(dice, 1));
    // The first burst of a day, then one in a quarter of an hour.
    double at = midnight + 8 * kHour;
    while ((at += exponential(dice, 900)) < midnight + 18 * kHour) {
      const int events = std::uniform_int_distribution<int>(2, 30)(dice);
      for (int event = 0; event < events; ++event)
        wakes.push_back(at += exponential(dice, 0.5));
    }
  }
  add(pattern, std::move(wakes), "several");
  return pattern;
}

}  // namespace hangar::bench_sleep
