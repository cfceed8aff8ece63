#include "abi/statemachine/program.h"

#include "abi/statemachine/internal/programs_native.h"
#include "abi/statemachine/limits.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "io/event.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

// Starts the runtime itself; the only result is a number.
class StartTurn final : public CallTurn {
 public:
  StartTurn() : CallTurn("alloc", {{.function = "_initialize"}, {.function = "start_runtime"}}) {}

 private:
  Result<std::string> read_result(wasm::GuestMemory /*memory*/, std::uint64_t /*result*/) override {
    return std::string();
  }
};

}  // namespace

Result<> CallState::print(wasm::wasi::OutputStream /*stream*/, std::string_view bytes) {
  log += bytes.substr(0, limits::kMachineLogBytesMax -
                             std::min<std::size_t>(log.size(), limits::kMachineLogBytesMax));
  return {};
}

CallTurn::CallTurn(std::string allocator, std::vector<Call> calls)
    : allocator_(std::move(allocator)), calls_(std::move(calls)) {}

Answer answer_of(const CallTurn& turn, CallState& state, const wasm::TurnReport& report) {
  Answer answer{.text = turn.text(),
                .log = std::move(state.log),
                .cost = {.cpu = report.cpu_time, .memory_bytes = turn.memory_bytes()}};
  if (!report.ended) answer.text = std::unexpected(report.ended.error());
  return answer;
}

Result<std::optional<wasm::Invocation>> CallTurn::next(wasm::GuestMemory memory,
                                                       std::uint64_t result) {
  memory_bytes_ = memory.size_bytes();
  if (phase_ == Phase::Calling) {
    phase_ = Phase::Preparing;
    if (++at_ == calls_.size()) {
      result_ = result;
      text_ = HANGAR_TRY(read_result(memory, result));
      return std::nullopt;
    }
  }
  Call& call = calls_[at_];
  if (phase_ == Phase::Allocating) {
    const std::string& text = call.texts[texts_at_++];
    const auto address = static_cast<std::uint32_t>(result);
    if (address == 0) {
      return fail(ErrorKind::GuestFault,
                  fmt::format("{} has no memory for {} bytes", allocator_, text.size()));
    }
    if (Result<> written = memory.write(address, text); !written) {
      return std::unexpected(
          std::move(written).error().in(fmt::format("the answer of {}", allocator_)));
    }
    arguments_.push_back(address);
    arguments_.push_back(text.size());
  }
  if (texts_at_ < call.texts.size()) {
    phase_ = Phase::Allocating;
    // Some allocators refuse to allocate zero bytes.
    return wasm::Invocation{
        .function = allocator_,
        .arguments = {std::max<std::uint64_t>(1, call.texts[texts_at_].size())}};
  }
  phase_ = Phase::Calling;
  texts_at_ = 0;
  std::vector<std::uint64_t> arguments = std::exchange(arguments_, {});
  arguments.insert(arguments.end(), call.more_arguments.begin(), call.more_arguments.end());
  return wasm::Invocation{.function = call.function, .arguments = std::move(arguments)};
}

Result<std::string> read_packed(wasm::GuestMemory memory, std::uint64_t result) {
  const auto size = static_cast<std::uint32_t>(result);
  if (size > limits::kMachineAnswerBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the machine's answer has {} bytes, the most is {}", size,
                            limits::kMachineAnswerBytesMax));
  }
  return memory.read_string(static_cast<std::uint32_t>(result >> 32U), size);
}

std::string initial_event(std::string_view input) {
  return fmt::format(R"({{"type":"xstate.init","input":{}}})", input);
}

Programs::Native::Native(wasm::Engine& engine_in,
                         std::shared_ptr<const wasm::HostFunctions> functions_in)
    : engine(engine_in),
      owned_functions(std::move(functions_in)),
      functions(*owned_functions),
      instances(engine, functions),
      turns(engine.loop(), {.slots = 2 * std::size_t{limits::kGuestRunsMax}}),
      starting_(engine.loop(), 1) {
  if (budget::Rates* const rates = engine.rates()) turns.brake(*rates);
}

io::Task<wasm::TurnReport> Programs::Native::run(const Program& program,
                                                 std::shared_ptr<const wasm::Checkpoint> checkpoint,
                                                 wasm::Turn& turn, CallState& state,
                                                 const Terms& terms, std::stop_token stop) {
  const std::uint64_t memory_bytes_max = program.limits.memory_bytes_max;
  const wasm::TurnLimits turn_limits{.cpu_time_max = program.limits.cpu_time_max,
                                     .consumer = terms.consumer};
  if (checkpoint != nullptr) {
    co_return co_await instances.run(std::move(checkpoint), memory_bytes_max, turn, state,
                                     turn_limits, std::move(stop), terms.ask_memory);
  }
  wasm::Instance instance(engine, program.sleepable, functions, state, memory_bytes_max);
  instance.ask_for_memory(terms.ask_memory);
  co_return co_await instance.run(turn, turn_limits, std::move(stop));
}

io::Task<Begun> Programs::Native::script_beginning(
    std::shared_ptr<const wasm::SleepableModule> module, const Terms& terms, std::stop_token stop) {
  const io::Semaphore::Slot slot = HANGAR_CO_TRY(co_await starting_.acquire(stop));
  if (script_module_ == module) co_return script_beginning_;
  CallState state;
  wasm::Instance instance(engine, module, functions, state, limits::kMachineMemoryBytesMax);
  instance.ask_for_memory(terms.ask_memory);
  StartTurn turn;
  const wasm::TurnReport report =
      co_await instance.run(turn, {.cpu_time_max = limits::kGuestCallMax}, std::move(stop));
  if (!report.ended) co_return std::unexpected(report.ended.error());
  if (turn.result() != 0) {
    co_return fail(ErrorKind::Unavailable,
                   "the state machine runtime does not start: " + state.log);
  }
  script_beginning_ = HANGAR_CO_TRY(co_await instance.checkpoint(terms.consumer));
  script_module_ = std::move(module);
  co_return script_beginning_;
}

Programs::Programs(wasm::Engine& engine) : Programs(engine, make_functions(engine.parts())) {}

Programs::Programs(wasm::Engine& engine, std::shared_ptr<const wasm::HostFunctions> functions)
    : native_(std::make_unique<Native>(engine, std::move(functions))) {}

std::shared_ptr<const wasm::HostFunctions> Programs::make_functions(
    const wasm::EngineParts& parts) {
  auto functions = std::make_shared<wasm::HostFunctions>(parts);
  wasm::wasi::add_preview1(*functions);
  return functions;
}

Programs::~Programs() = default;

std::size_t Programs::free_instances() {
  return native_->instances.clear();
}

io::Task<Result<>> Programs::begin(const Program& program, Beginning& beginning, Terms terms,
                                   std::stop_token stop) {
  if (beginning.checkpoint != nullptr || program.shape == Shape::Command) co_return Result<>();
  const io::Semaphore::Slot slot = HANGAR_CO_TRY(co_await beginning.making.acquire(stop));
  if (beginning.checkpoint != nullptr) co_return Result<>();
  beginning.checkpoint =
      HANGAR_CO_TRY(program.shape == Shape::Bundle
                        ? co_await begin_bundle(*native_, program, terms, std::move(stop))
                        : co_await begin_handle_event(*native_, program, terms, std::move(stop)));
  co_return Result<>();
}

io::Task<Answer> Programs::ask(std::shared_ptr<const Program> program,
                               std::shared_ptr<Beginning> beginning, Question question, Terms terms,
                               std::stop_token stop) {
  // The memory that others leave free is not a part of a machine's state. An answer that may depend
  // on it does not count: the machine can be asked again.
  std::optional<std::string> refusal;
  if (terms.ask_memory) {
    terms.ask_memory = [ask = std::move(terms.ask_memory), &refusal](std::uint64_t bytes) {
      Result<> granted = ask(bytes);
      if (!granted) refusal = granted.error().message();
      return granted;
    };
  }
  Answer answer = co_await answer_to(std::move(program), std::move(beginning), std::move(question),
                                     std::move(terms), std::move(stop));
  if (refusal) {
    answer.text =
        fail(ErrorKind::Unavailable, fmt::format("the machine cannot get memory: {}", *refusal));
  }
  co_return answer;
}

io::Task<Answer> Programs::answer_to(std::shared_ptr<const Program> program,
                                     std::shared_ptr<Beginning> beginning, Question question,
                                     Terms terms, std::stop_token stop) {
  const Result<budget::FairSlots::Slot> slot =
      co_await native_->turns.acquire(terms.consumer, {}, stop);
  if (!slot) co_return Answer{.text = std::unexpected(slot.error())};
  if (Result<> begun = co_await begin(*program, *beginning, terms, stop); !begun) {
    co_return Answer{.text = std::unexpected(std::move(begun).error())};
  }
  if (question.request == Request::Begin) co_return Answer{.text = std::string()};
  switch (program->shape) {
    case Shape::Bundle:
      co_return co_await ask_bundle(*native_, *program, *beginning, std::move(question), terms,
                                    std::move(stop));
    case Shape::HandleEvent:
      co_return co_await ask_handle_event(*native_, *program, *beginning, std::move(question),
                                          terms, std::move(stop));
    case Shape::Command:
      break;
  }
  co_return co_await ask_command(*native_, *program, std::move(question), terms, std::move(stop));
}

}  // namespace hangar::abi::statemachine
