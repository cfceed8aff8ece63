// A JavaScript bundle: evaluated once in the state machine runtime. An image of the memory after
// that is kept, and every call starts from the image.
#include "abi/statemachine/answer.h"
#include "abi/statemachine/internal/runtime_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/task.h"
#include "wasm/guest_memory.h"
#include "wasm/instance.h"
#include "wasm/snapshot/checkpoint.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

// The numbers that the prelude uses.
enum class Request : std::uint8_t { Start, Step, Definition, Actors };

class ScriptTurn final : public CallTurn {
 public:
  explicit ScriptTurn(Call call) : CallTurn("alloc", one(std::move(call))) {}

 private:
  static std::vector<Call> one(Call call) {
    std::vector<Call> calls;
    calls.push_back(std::move(call));
    return calls;
  }
  Result<std::string> read_result(wasm::GuestMemory memory, std::uint64_t result) override {
    return read_packed(memory, result);
  }
};

class BundleMachine final : public Machine {
 public:
  BundleMachine(Runtime::Native& runtime, std::shared_ptr<const wasm::Checkpoint> beginning,
                MachineLimits limits)
      : runtime_(runtime), beginning_(std::move(beginning)), limits_(limits) {}

  [[nodiscard]] Shape shape() const override { return Shape::Bundle; }

  [[nodiscard]] io::Task<Result<Step>> start(std::string input, std::stop_token stop,
                                             Asker asker) override {
    Said said = HANGAR_CO_TRY(
        co_await ask(Request::Start, std::move(input), {}, std::move(stop), std::move(asker)));
    co_return read_step(std::move(said), "");
  }

  [[nodiscard]] io::Task<Result<Step>> step(std::string state, std::string event,
                                            std::stop_token stop, Asker asker) override {
    Said said = HANGAR_CO_TRY(
        co_await ask(Request::Step, state, std::move(event), std::move(stop), std::move(asker)));
    co_return read_step(std::move(said), state);
  }

  [[nodiscard]] io::Task<Result<std::string>> definition(std::stop_token stop,
                                                         Asker asker) override {
    const Said said =
        HANGAR_CO_TRY(co_await ask(Request::Definition, {}, {}, std::move(stop), std::move(asker)));
    co_return read_definition(said.text);
  }

  [[nodiscard]] io::Task<Result<std::vector<Actor>>> actors(std::string state, std::stop_token stop,
                                                            Asker asker) override {
    const Said said = HANGAR_CO_TRY(
        co_await ask(Request::Actors, std::move(state), {}, std::move(stop), std::move(asker)));
    co_return read_actors(said.text);
  }

 private:
  struct Said {
    std::string text;
    std::string log;
  };

  static Result<Step> read_step(Said said, const std::string& before) {
    Step step = HANGAR_TRY(read_answer(said.text, before));
    step.log = std::move(said.log);
    return step;
  }

  io::Task<Result<Said>> ask(Request request, std::string first, std::string second,
                             std::stop_token stop, Asker asker) {
    const std::uint64_t first_bytes = first.size();
    const std::uint64_t second_bytes = second.size();
    first += second;
    ScriptTurn turn(
        {.function = "run",
         .texts = {std::move(first)},
         .more_arguments = {static_cast<std::uint64_t>(request), first_bytes, second_bytes}});
    CallState state;
    const budget::FairSlots::Slot slot =
        HANGAR_CO_TRY(co_await runtime_.turns.acquire(asker.consumer, {}, stop));
    const wasm::TurnReport report = co_await runtime_.instances.run(
        beginning_, limits_.memory_bytes_max, turn, state,
        {.cpu_time_max = limits_.cpu_time_max, .consumer = std::move(asker.consumer)},
        std::move(stop));
    if (asker.cost != nullptr) {
      *asker.cost = {.cpu = report.cpu_time, .memory_bytes = turn.memory_bytes()};
    }
    if (!report.ended) co_return std::unexpected(report.ended.error());
    co_return Said{.text = turn.text(), .log = std::move(state.log)};
  }

  Runtime::Native& runtime_;
  const std::shared_ptr<const wasm::Checkpoint> beginning_;
  const MachineLimits limits_;
};

}  // namespace

io::Task<Result<std::shared_ptr<Machine>>> load_bundle(Runtime::Native& runtime,
                                                       std::shared_ptr<const std::string> text,
                                                       MachineLimits limits, std::stop_token stop,
                                                       budget::Consumer consumer) {
  if (text->size() > limits::kMachineBundleBytesMax) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("the bundle has {} bytes, the most is {}", text->size(),
                               limits::kMachineBundleBytesMax));
  }
  const std::shared_ptr<const wasm::Checkpoint> script =
      HANGAR_CO_TRY(co_await runtime.script_beginning(stop));
  CallState state;
  wasm::Instance instance(runtime.engine(), script, runtime.functions, state,
                          limits.memory_bytes_max);
  ScriptTurn turn({.function = "load_bundle", .texts = {*text}});
  const wasm::TurnReport report = co_await instance.run(
      turn, {.cpu_time_max = limits.cpu_time_max, .consumer = std::move(consumer)},
      std::move(stop));
  if (!report.ended) co_return std::unexpected(report.ended.error());
  // An empty object, or the error with which evaluating the bundle failed.
  const Result<std::string> loaded = read_definition(turn.text());
  if (!loaded) co_return std::unexpected(loaded.error());
  co_return std::make_shared<BundleMachine>(runtime, HANGAR_CO_TRY(co_await instance.checkpoint()),
                                            limits);
}

}  // namespace hangar::abi::statemachine
