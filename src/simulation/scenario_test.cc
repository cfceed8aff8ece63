// The whole host in the simulation: the first seeds. SIMULATION_SECONDS=N plays seeds for that
// long, SIMULATION_HOURS=N until that many hours have passed in them, SIMULATION_SEED=N only that
// one; SIMULATION_FIRST=N begins with that one. SIMULATION_TRACE=FILE gets what happens in the
// shortest scenario of a failure.
#include "simulation/scenario.h"

#include "base/time.h"
#include "simulation/network.h"
#include "simulation/simulated_host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::simulation {
namespace {

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Null: none is asked for.
std::FILE* trace_file() {
  const char* const path = std::getenv("SIMULATION_TRACE");  // NOLINT(concurrency-mt-unsafe)
  return path == nullptr ? nullptr : std::fopen(path, "w");
}

std::string report(const Scenario& scenario, const Verdict& verdict) {
  std::string out = fmt::format("SIMULATION_SEED={}\n", scenario.seed);
  for (const std::string& violation : verdict.violations)
    out += "  " + violation + "\n";
  out += "steps:\n";
  for (const Step& step : scenario.steps)
    out += "  " + shown(step) + "\n";
  return out;
}

bool is_broken(const Verdict& verdict, std::string_view invariant) {
  for (const std::string& violation : verdict.violations) {
    if (violation.starts_with(invariant)) return true;
  }
  return false;
}

// The same ones on every machine, however fast it is.
constexpr std::uint64_t kSeeds = 6;

TEST(Scenario, HoldsForEverySeed) {
  const auto began = std::chrono::steady_clock::now();
  const std::uint64_t span = environment_number("SIMULATION_SECONDS", 0);
  const auto end = began + std::chrono::seconds(span);
  const std::uint64_t hours = environment_number("SIMULATION_HOURS", 0);
  const std::uint64_t only = environment_number("SIMULATION_SEED", 0);
  const std::uint64_t first = environment_number("SIMULATION_FIRST", 1);
  std::uint64_t seeds = 0;
  std::uint64_t requests = 0;
  std::uint64_t faults = 0;
  std::uint64_t leaders = 0;
  Duration simulated{};

  const auto is_enough = [&] {
    if (hours > 0) return simulated >= std::chrono::hours(hours);
    return span == 0 ? seeds == kSeeds : std::chrono::steady_clock::now() >= end;
  };
  for (std::uint64_t seed = only != 0 ? only : first; !is_enough(); ++seed) {
    const Scenario scenario = draw_scenario(seed);
    const Verdict verdict = play(scenario);
    ++seeds;
    requests += verdict.requests;
    faults += verdict.faults;
    leaders += verdict.leaders;
    simulated += verdict.simulated;
    if (!verdict.violations.empty()) {
      const Scenario least = shrunk(scenario, verdict, {});
      FAIL() << report(least, play(least, {}, trace_file()));
    }
    if (only != 0) break;
  }

  fmt::print("{} seeds, {:.1f} simulated hours, {} requests, {} faults, {} leaders\n", seeds,
             std::chrono::duration<double>(simulated).count() / 3600, requests, faults, leaders);
  if (only != 0) return;
  EXPECT_GT(faults, 0U);
  EXPECT_GT(leaders, seeds);
}

TEST(Scenario, ASeedReplaysExactly) {
  const Scenario scenario = draw_scenario(1);

  const Verdict first = play(scenario);
  const Verdict second = play(scenario);

  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.handlers, second.handlers);
  EXPECT_GT(first.requests, 100U);
  EXPECT_NE(first.digest, play(draw_scenario(2)).digest);
}

// Plays seeds until one breaks the invariant, and returns its scenario.
std::optional<Scenario> find_break(std::string_view invariant, Omissions omissions) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    const Verdict verdict = play(scenario, omissions);
    if (verdict.violations.empty() || !verdict.violations.front().starts_with(invariant)) continue;
    return scenario;
  }
  return std::nullopt;
}

TEST(Scenario, FindsTheWriteOfAStoppedLeader) {
  const Omissions omissions{.fence = SimulatedHost::Fence::Ignored};

  const auto found = find_break("lease", omissions);

  ASSERT_TRUE(found.has_value()) << "no seed found it";
  EXPECT_FALSE(is_broken(play(*found), "lease")) << "with the fence it must hold";
}

TEST(Scenario, FindsTheLoopThatStandsStillForASilentNameServer) {
  const Omissions omissions{.lookups = Network::Lookups::Blocking};

  const auto found = find_break("wait", omissions);

  ASSERT_TRUE(found.has_value()) << "no seed found it";
  const Scenario least = shrunk(*found, play(*found, omissions), omissions);
  EXPECT_LE(least.steps.size(), 4U) << report(least, play(least, omissions));
  EXPECT_TRUE(is_broken(play(least, omissions), "wait"));
  EXPECT_TRUE(play(least).violations.empty()) << report(least, play(least));
}

}  // namespace
}  // namespace hangar::simulation
