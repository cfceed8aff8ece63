// The cost of waking a sleeping guest for one call and suspending it again, without Kubernetes:
// `sleep_bench`. Real time per wake, as the loop sees it: two hops to a worker and back.
#include "base/limits.h"
#include "base/result.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/wasi/preview1.h"

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
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

template <class T>
T value_or_exit(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(1);
}

class OneCall final : public wasm::Turn {
 public:
  explicit OneCall(wasm::Invocation call) : call_(std::move(call)) {}
  Result<std::optional<wasm::Invocation>> next(wasm::GuestMemory, std::uint64_t) override {
    return std::exchange(call_, std::nullopt);
  }

 private:
  std::optional<wasm::Invocation> call_;
};

struct Rig {
  explicit Rig(const std::filesystem::path& directory)
      : workers(loop, static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN))),
        engine(loop, workers),
        functions(engine),
        cache(engine, {.directory = directory / "code", .compile_program = HANGAR_COMPILE_PROGRAM}),
        store(value_or_exit(wasm::SnapshotStore::open(directory / "snapshots"))) {
    wasm::wasi::add_preview1(functions);
    if (!cache.open()) std::abort();
    auto bytes = std::make_shared<const std::string>(value_or_exit(io::read_file(
        std::filesystem::path(HANGAR_GUESTS_DIR) / "sleeper.wasm", limits::kModuleBytesMax)));
    module = value_or_exit(await(wasm::SleepableModule::load(cache, wasm::Digest::of(*bytes), bytes,
                                                             directory / "images", {})));
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

  std::unique_ptr<wasm::Instance> make() {
    return std::make_unique<wasm::Instance>(engine, module, functions, state, 64 * limits::kMiB);
  }
  wasm::TurnReport call(wasm::Instance& instance, wasm::Invocation invocation) {
    OneCall turn(std::move(invocation));
    wasm::TurnReport report = await(instance.run(turn, {}, {}));
    if (!report.ended) {
      std::fprintf(stderr, "%s\n", report.ended.error().message().c_str());
      std::exit(1);
    }
    return report;
  }

  io::Loop loop;
  io::Workers workers;
  wasm::Engine engine;
  wasm::HostFunctions functions;
  wasm::CodeCache cache;
  std::unique_ptr<wasm::SnapshotStore> store;
  wasm::wasi::Command state;
  std::shared_ptr<const wasm::SleepableModule> module;
};

std::uint64_t anonymous_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && file >> kib) return kib;
  }
  return 0;
}

// A guest that has written to that many KiB before, and writes to one page in each turn.
void wake_and_sleep(benchmark::State& state, Rig& rig) {
  const auto instance = rig.make();
  rig.call(*instance, {.function = "grow", .arguments = {60}});
  for (std::int64_t page = 0; page < state.range(0) / 4; ++page) {
    rig.call(*instance, {.function = "store",
                         .arguments = {static_cast<std::uint64_t>(page) * 4096 + 8,
                                       static_cast<std::uint64_t>(page) * 0x9e37'79b9'7f4a'7c15U}});
  }
  double resume_us = 0;
  double turn_us = 0;
  std::uint64_t value = 0;
  for (auto _ : state) {
    if (!rig.await(instance->sleep(*rig.store))) state.SkipWithError("cannot sleep");
    const wasm::TurnReport report =
        rig.call(*instance, {.function = "store", .arguments = {12'288, ++value}});
    resume_us += std::chrono::duration<double, std::micro>(report.resume_time).count();
    turn_us += std::chrono::duration<double, std::micro>(report.cpu_time).count();
  }
  if (!rig.await(instance->sleep(*rig.store))) state.SkipWithError("cannot sleep");
  state.counters["resume_us"] = resume_us / static_cast<double>(state.iterations());
  state.counters["turn_cpu_us"] = turn_us / static_cast<double>(state.iterations());
  state.counters["disk_bytes"] = static_cast<double>(instance->disk_bytes());
}

// The same guest, kept in memory.
void call_resident(benchmark::State& state, Rig& rig) {
  const auto instance = rig.make();
  std::uint64_t value = 0;
  for (auto _ : state)
    rig.call(*instance, {.function = "store", .arguments = {12'288, ++value}});
}

// The memory of a sleeping guest.
void asleep(benchmark::State& state, Rig& rig) {
  const auto count = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    std::vector<std::unique_ptr<wasm::Instance>> instances;
    instances.reserve(count);
    std::uint64_t before = 0;
    for (std::size_t index = 0; index < count; ++index) {
      // The first ones add memory that is allocated only once, such as compressors.
      if (index == count / 10) before = anonymous_kib();
      instances.push_back(rig.make());
      rig.call(*instances.back(), {.function = "work", .arguments = {20}});
      if (!rig.await(instances.back()->sleep(*rig.store))) state.SkipWithError("cannot sleep");
    }
    const auto others = static_cast<double>(count - count / 10);
    state.counters["memory_bytes_each"] =
        static_cast<double>(anonymous_kib() - before) * 1024 / others;
    state.counters["disk_bytes_each"] =
        static_cast<double>(rig.store->file_bytes()) / static_cast<double>(count);
    state.counters["image_bytes"] = static_cast<double>(rig.module->image_bytes());
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const char* const directory = std::getenv("HANGAR_BENCH_CODE");
  Rig rig(directory != nullptr ? directory : "/tmp/hangar-sleep-bench");
  const auto add = [&rig](const char* name, void (*run)(benchmark::State&, Rig&)) {
    return benchmark::RegisterBenchmark(name,
                                        [&rig, run](benchmark::State& state) { run(state, rig); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  };
  add("wake_and_sleep/dirty_kib", wake_and_sleep)->Arg(16)->Arg(1024);
  add("call_resident", call_resident);
  add("asleep", asleep)->Arg(5000)->Iterations(1);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
