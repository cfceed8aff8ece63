// The cost of one evaluation, without Kubernetes: `runtime_bench MODULE.wasm ...` with Go flights
// (tests/guests/flights). Real time per iteration; CPU time is that of the loop thread only.
#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "domains/guest_processes.h"
#include "io/all.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace hangar;  // NOLINT(google-build-using-namespace): one program, one file.

constexpr const char* kInput =
    R"({"apiVersion":"examples.com/v1","kind":"Backend","metadata":{"name":"web","namespace":"ns"},)"
    R"("spec":{"image":"nginx:1","replicas":2,"behaviour":"basic","data":{"a":"b"}}})";

class NoCluster final : public abi::flight::Lookups {
 public:
  io::Task<abi::flight::LookupAnswer> lookup(abi::flight::LookupRequest) override {
    co_return abi::flight::LookupAnswer{.state = abi::flight::LookupState::Ok, .body = "{}"};
  }
  io::Task<abi::flight::LookupAnswer> rest_mapping(std::string, std::string) override {
    co_return abi::flight::LookupAnswer{.state = abi::flight::LookupState::NotFound, .body = "no"};
  }
};

struct Rig {
  explicit Rig(std::filesystem::path directory)
      : workers(loop, static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN))),
        engine(loop, workers),
        runtime(engine),
        processes({.engine = engine, .metrics = metrics},
                  {.program = HANGAR_GUEST_PROGRAM,
                   .thread_count = static_cast<std::uint32_t>(workers.thread_count())},
                  std::nullopt),
        elsewhere(engine, &processes),
        cache(engine,
              {.directory = std::move(directory), .compile_program = HANGAR_COMPILE_PROGRAM}) {
    if (!cache.open()) std::abort();
  }

  template <class T>
  T await(io::Task<T> task) {
    std::optional<T> value;
    loop.spawn([](io::Task<T> inner, std::optional<T>& into) -> io::Task<void> {
      into.emplace(co_await std::move(inner));
    }(std::move(task), value));
    loop.run_until([&value] { return value.has_value(); });
    return *std::move(value);
  }

  std::shared_ptr<const wasm::Module> load(std::string bytes) {
    const wasm::Digest digest = wasm::Digest::of(bytes);
    auto module =
        await(cache.load(digest, std::make_shared<const std::string>(std::move(bytes)), {}));
    if (!module) {
      std::fprintf(stderr, "%s\n", module.error().message().c_str());
      std::exit(1);
    }
    return *std::move(module);
  }

  enum class Place : std::uint8_t { Here, GuestProcess };
  io::Task<Result<abi::flight::Output>> evaluate(std::shared_ptr<const wasm::Module> module,
                                                 Place place = Place::Here,
                                                 std::string namespace_name = "ns") {
    return abi::flight::evaluate(
        place == Place::Here ? runtime : elsewhere, std::move(module),
        {.release = "web",
         .namespace_ = "ns",
         .stdin_bytes = kInput,
         .consumer = {.tenant = budget::Tenant::of_namespace(std::move(namespace_name)),
                      .name = "web"}},
        cluster, {});
  }

  io::Loop loop;
  io::Workers workers;
  wasm::Engine engine;
  abi::flight::Runtime runtime;
  Metrics metrics;
  domains::GuestProcesses processes;
  abi::flight::Runtime elsewhere;
  wasm::CodeCache cache;
  NoCluster cluster;
};

std::string read(const std::string& path) {
  auto bytes = io::read_file(path, limits::kModuleBytesMax);
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.error().message().c_str());
    std::exit(1);
  }
  return *std::move(bytes);
}

// A module with the same behaviour and another digest: one more custom section.
std::string variant(std::string bytes, int number) {
  const std::string text = "variant " + std::to_string(number);
  bytes += '\0';
  bytes += static_cast<char>(text.size() + 1);
  bytes += static_cast<char>(text.size());
  return bytes + text;
}

struct Resident {
  double total_mib = 0;
  double anonymous_mib = 0;
  double file_mib = 0;
  double shared_mib = 0;  // Memory files: images of linear memories.
};

Resident resident() {
  Resident result;
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == "VmRSS:" && file >> kib) result.total_mib = kib / 1024;
    if (word == "RssAnon:" && file >> kib) result.anonymous_mib = kib / 1024;
    if (word == "RssFile:" && file >> kib) result.file_mib = kib / 1024;
    if (word == "RssShmem:" && file >> kib) result.shared_mib = kib / 1024;
  }
  return result;
}

void report_memory(benchmark::State& state) {
  const Resident now = resident();
  state.counters["rss_mib"] = now.total_mib;
  state.counters["anon_mib"] = now.anonymous_mib;
  state.counters["file_mib"] = now.file_mib;
  state.counters["shmem_mib"] = now.shared_mib;
}

void one_at_a_time(benchmark::State& state, Rig& rig, const std::string& path,
                   Rig::Place place = Rig::Place::Here) {
  const auto module = rig.load(read(path));
  double cpu_us = 0;
  std::uint64_t memory = 0;
  for (auto _ : state) {
    const auto output = rig.await(rig.evaluate(module, place));
    if (!output) {
      state.SkipWithError(output.error().message().c_str());
      return;
    }
    cpu_us += std::chrono::duration<double, std::micro>(output->cpu_time).count();
    memory = output->memory_bytes;
  }
  state.counters["worker_us"] = cpu_us / static_cast<double>(state.iterations());
  state.counters["guest_mib"] = static_cast<double>(memory) / static_cast<double>(limits::kMiB);
  report_memory(state);
}

// The first evaluation of a namespace: the host forks a process for it.
void first_of_a_namespace(benchmark::State& state, Rig& rig, const std::string& path) {
  const auto module = rig.load(read(path));
  int number = 0;
  for (auto _ : state) {
    const auto output = rig.await(
        rig.evaluate(module, Rig::Place::GuestProcess, "namespace-" + std::to_string(++number)));
    if (!output) state.SkipWithError(output.error().message().c_str());
  }
}

// Many at once, over modules that are all distinct, as on a busy host.
void many_at_once(benchmark::State& state, Rig& rig, const std::string& path,
                  Rig::Place place = Rig::Place::Here) {
  std::vector<std::shared_ptr<const wasm::Module>> modules;
  const std::string bytes = read(path);
  for (int index = 0; index < state.range(0); ++index)
    modules.push_back(rig.load(variant(bytes, index)));
  const Resident idle = resident();
  constexpr std::size_t kAtOnce = 100;
  for (auto _ : state) {
    std::vector<io::Task<Result<abi::flight::Output>>> tasks;
    for (std::size_t index = 0; index < kAtOnce; ++index)
      tasks.push_back(rig.evaluate(modules[index % modules.size()], place));
    for (const auto& output : rig.await(io::all(rig.loop, std::move(tasks)))) {
      if (!output) state.SkipWithError(output.error().message().c_str());
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kAtOnce) * state.iterations());
  state.counters["loaded_rss_mib"] = idle.total_mib;
  state.counters["loaded_anon_mib"] = idle.anonymous_mib;
  report_memory(state);
  for (const auto& module : modules)
    module->release_pages();
  state.counters["released_rss_mib"] = resident().total_mib;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const char* const directory = std::getenv("HANGAR_BENCH_CODE");
  Rig rig(directory != nullptr ? directory : "/tmp/hangar-runtime-bench");
  for (int index = 1; index < argc; ++index) {
    const std::string path = argv[index];
    const std::string name = std::filesystem::path(path).stem().string();
    benchmark::RegisterBenchmark(
        ("evaluate/" + name).c_str(),
        [&rig, path](benchmark::State& state) { one_at_a_time(state, rig, path); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark(("evaluate_in_guest_process/" + name).c_str(),
                                 [&rig, path](benchmark::State& state) {
                                   one_at_a_time(state, rig, path, Rig::Place::GuestProcess);
                                 })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark(
        ("first_of_a_namespace/" + name).c_str(),
        [&rig, path](benchmark::State& state) { first_of_a_namespace(state, rig, path); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark(("hundred_at_once_in_guest_process/" + name).c_str(),
                                 [&rig, path](benchmark::State& state) {
                                   many_at_once(state, rig, path, Rig::Place::GuestProcess);
                                 })
        ->Arg(1)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark(
        ("hundred_at_once/" + name).c_str(),
        [&rig, path](benchmark::State& state) { many_at_once(state, rig, path); })
        ->Arg(1)
        ->Arg(20)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
