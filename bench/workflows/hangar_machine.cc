// The hangar side of the step benchmark: machines that decide, without Kubernetes. See peer/main.go
// for the commands; `first` adds what a host does with a module that was compiled before: load it
// and take a machine's first step.
#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "wasm/code_cache.h"
#include "wasm/engine.h"
#include "wasm/limits.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar {

namespace {

using abi::statemachine::Machine;
using abi::statemachine::Runtime;
using abi::statemachine::Step;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double seconds_since(Instant began) {
  return std::chrono::duration<double>(io::Loop::now() - began).count();
}

class Bench {
 public:
  Bench(std::filesystem::path module, std::filesystem::path directory,
        std::vector<std::string> events, std::size_t workers)
      : module_(std::move(module)),
        directory_(std::move(directory)),
        events_(std::move(events)),
        worker_count_(workers),
        workers_(loop_, workers),
        engine_(loop_, workers_),
        cache_(engine_,
               {.directory = directory_ / "code", .compile_program = HANGAR_COMPILE_PROGRAM}) {}

  Result<> open() { return cache_.open(); }

  Result<> obey(std::string_view command) {
    if (command == "load" || command == "first") {
      const Instant began = io::Loop::now();
      HANGAR_TRY(wait_for(load(command == "first")));
      fmt::print("{{\"seconds\":{}}}\n", seconds_since(began));
    } else if (command.starts_with("run ")) {
      HANGAR_TRY(run(command.substr(4)));
    } else {
      return fail(ErrorKind::InvalidInput, fmt::format("unknown command {}", command));
    }
    std::fflush(stdout);
    return {};
  }

 private:
  io::Task<Result<>> load(bool and_step) {
    machine_.reset();
    runtime_.reset();
    runtime_ = std::make_unique<Runtime>(cache_, directory_ / "images");
    auto bytes = std::make_shared<const std::string>(
        HANGAR_CO_TRY(io::read_file(module_, limits::kModuleBytesMax)));
    machine_ = HANGAR_CO_TRY(co_await runtime_->load(std::move(bytes), {}, stop_.get_token()));
    if (and_step) HANGAR_CO_TRY(co_await machine_->start("{}", stop_.get_token()));
    co_return Result<>();
  }

  Result<> run(std::string_view text) {
    double duration = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), duration);
    if (error != std::errc() || end != text.data() + text.size()) {
      return fail(ErrorKind::InvalidInput, fmt::format("{} is not a number of seconds", text));
    }
    took_.clear();
    const double cpu = cpu_seconds();
    const Instant began = io::Loop::now();
    std::size_t running = worker_count_;
    std::optional<Error> failure;
    const auto until = began + std::chrono::duration_cast<Instant::duration>(
                                   std::chrono::duration<double>(duration));
    for (std::size_t number = 0; number < worker_count_; ++number) {
      loop_.spawn(keep_living(until, running, failure));
    }
    loop_.run_until([&running] { return running == 0; });
    if (failure) return std::unexpected(*failure);

    std::ranges::sort(took_);
    const auto milliseconds = [this](std::size_t percent) {
      return took_[(took_.size() - 1) * percent / 100] * 1000;
    };
    fmt::print(
        "{{\"steps\":{},\"seconds\":{},\"cpu_seconds\":{},\"median_ms\":{},\"p99_ms\":{},\"value\":"
        "{}}}\n",
        took_.size(), seconds_since(began), cpu_seconds() - cpu, milliseconds(50), milliseconds(99),
        last_value_);
    return {};
  }

  // Whole lives, one after the other. The first state counts as a step like the others.
  io::Task<void> keep_living(Instant until, std::size_t& running, std::optional<Error>& failure) {
    while (io::Loop::now() < until && !failure) {
      Result<> lived = co_await live();
      if (!lived) failure = lived.error();
    }
    --running;
  }

  io::Task<Result<>> live() {
    // Made once, like the peer's, which comes from a file: its module cannot make it.
    if (first_state_.empty()) {
      Step first = HANGAR_CO_TRY(co_await machine_->start("{}", stop_.get_token()));
      first_state_ = std::move(first.state);
    }
    std::string state = first_state_;
    for (const std::string& event : events_) {
      const Instant began = io::Loop::now();
      Step step =
          HANGAR_CO_TRY(co_await machine_->step(std::move(state), event, stop_.get_token()));
      took_.push_back(seconds_since(began));
      state = std::move(step.state);
      last_value_ = std::move(step.value);
    }
    co_return Result<>();
  }

  Result<> wait_for(io::Task<Result<>> task) {
    std::optional<Result<>> result;
    loop_.spawn(keep(std::move(task), result));
    loop_.run_until([&result] { return result.has_value(); });
    return *result;
  }
  static io::Task<void> keep(io::Task<Result<>> task, std::optional<Result<>>& result) {
    result = co_await std::move(task);
  }

  const std::filesystem::path module_;
  const std::filesystem::path directory_;
  const std::vector<std::string> events_;
  const std::size_t worker_count_;
  std::stop_source stop_;
  io::Loop loop_;
  io::Workers workers_;
  wasm::Engine engine_;
  wasm::CodeCache cache_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<Machine> machine_;
  std::string first_state_;
  std::vector<double> took_;  // Seconds, each step.
  std::string last_value_ = "null";
};

Result<> run(const std::filesystem::path& module, const std::filesystem::path& events,
             const std::filesystem::path& directory, std::string_view worker_count) {
  std::size_t workers = 1;
  std::from_chars(worker_count.data(), worker_count.data() + worker_count.size(), workers);
  const std::string text = HANGAR_TRY(io::read_file(events, limits::kMiB));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  Bench bench(module, directory, std::move(lines), workers);
  HANGAR_TRY(bench.open());
  for (std::string line; std::getline(std::cin, line);) {
    HANGAR_TRY(bench.obey(line));
  }
  return {};
}

}  // namespace

}  // namespace hangar

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: {} MODULE EVENTS DIRECTORY WORKERS\n", argv[0]);
    return 2;
  }
  const hangar::Result<> result = hangar::run(argv[1], argv[2], argv[3], argv[4]);
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message());
    return 1;
  }
  return 0;
}
