// What a guest's read pays so that it never shows a state from before its own writes
// (src/gateway/own_writes.h), without Kubernetes: `own_writes_bench`.
#include "base/metrics.h"
#include "gateway/own_writes.h"
#include "gateway/request_target.h"
#include "io/loop.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace hangar;  // NOLINT(google-build-using-namespace): one program, one file.

constexpr std::string_view kRead = "/api/v1/namespaces/own/configmaps/settings?resourceVersion=0";

std::string user(std::int64_t number) {
  return fmt::format("system:serviceaccount:tenant-{}:operator", number);
}

gateway::RequestTarget target(std::string_view method, std::string_view path) {
  return *gateway::parse_target(method, path);
}

// Each read does this anyway.
void parse_the_request(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(gateway::parse_target("GET", kRead));
}

// A read of a user while that many users have recent writes, its own not among them.
void read_without_pending_writes(benchmark::State& state) {
  Metrics metrics;
  gateway::OwnWrites writes(metrics);
  const auto write = target("DELETE", "/api/v1/namespaces/own/configmaps/settings");
  for (std::int64_t number = 0; number < state.range(0); ++number) {
    writes.wrote(user(number), write, 200, {}, io::Loop::now());
  }
  const std::string reader = user(-1);
  const auto read = target("GET", kRead);
  for (auto _ : state) {
    benchmark::DoNotOptimize(writes.oldest_for(reader, read, io::Loop::now()));
  }
}

// The same of a user that has written in that many other places.
void read_beside_own_writes(benchmark::State& state) {
  Metrics metrics;
  gateway::OwnWrites writes(metrics);
  const std::string reader = user(0);
  for (std::int64_t number = 0; number < state.range(0); ++number) {
    const auto path = fmt::format("/api/v1/namespaces/other-{}/configmaps/settings", number);
    writes.wrote(reader, target("DELETE", path), 200, {}, io::Loop::now());
  }
  const auto read = target("GET", kRead);
  for (auto _ : state) {
    benchmark::DoNotOptimize(writes.oldest_for(reader, read, io::Loop::now()));
  }
}

BENCHMARK(parse_the_request);
BENCHMARK(read_without_pending_writes)->Arg(0)->Arg(10'000);
BENCHMARK(read_beside_own_writes)->Arg(1)->Arg(gateway::kOwnWritePlacesMax);

}  // namespace

BENCHMARK_MAIN();
