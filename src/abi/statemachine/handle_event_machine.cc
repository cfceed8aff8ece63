// A module with the published entry point: handle_event(state, its size, event, its size) -> text.
#include "abi/statemachine/answer.h"
#include "abi/statemachine/internal/runtime_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/task.h"
#include "wasm/guest_memory.h"
#include "wasm/instance.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

constexpr std::string_view kEntry = "handle_event";
constexpr std::string_view kInitialState = "initial_state";
constexpr std::string_view kInitialize = "_initialize";
constexpr std::string_view kAllocate = "(i32) -> (i32)";
// The host of the article uses malloc.
constexpr std::array<std::string_view, 3> kAllocators = {"malloc", "allocate", "alloc"};

using Exports = std::span<const wasm::Export>;

bool has_function(Exports exports, std::string_view name, std::string_view signature) {
  const wasm::Export* const found = wasm::find_export(exports, name);
  return found != nullptr && found->kind == wasm::ExternKind::Function &&
         found->signature == signature;
}

// Reads a text that either ends with a null byte or follows its size (four bytes, little-endian).
// Its first four bytes tell which: an allowed size fits three bytes, so the fourth is null; a text
// has no null byte among its first four, because no answer is shorter than that.
Result<std::string> read_text(wasm::GuestMemory memory, std::uint32_t address) {
  static_assert(limits::kMachineAnswerBytesMax < (1U << 24U));
  const std::span<std::byte> head = HANGAR_TRY(memory.range(address, 4));
  if (std::ranges::find(head, std::byte{0}) != head.end()) {
    const std::uint32_t size = HANGAR_TRY(memory.read_u32(address));
    return read_packed(memory, (std::uint64_t{address} + 4) << 32U | size);
  }
  const std::uint64_t room =
      std::min(memory.size_bytes() - address, std::uint64_t{limits::kMachineAnswerBytesMax} + 1);
  const std::span<std::byte> bytes = HANGAR_TRY(memory.range(address, room));
  const auto end = std::ranges::find(bytes, std::byte{0});
  if (end == bytes.end()) {
    return room > limits::kMachineAnswerBytesMax
               ? fail(ErrorKind::LimitExceeded,
                      fmt::format("the machine's answer has more than {} bytes, or no null byte "
                                  "behind it",
                                  limits::kMachineAnswerBytesMax))
               : fail(ErrorKind::GuestFault, "the machine's answer has no null byte behind it");
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()),
                     static_cast<std::size_t>(end - bytes.begin()));
}

class HandleEventTurn final : public CallTurn {
 public:
  enum class Returns : std::uint8_t { Nothing, Address, AddressAndSize };
  HandleEventTurn(std::string allocator, std::vector<Call> calls, Returns returns)
      : CallTurn(std::move(allocator), std::move(calls)), returns_(returns) {}

 private:
  Result<std::string> read_result(wasm::GuestMemory memory, std::uint64_t result) override {
    switch (returns_) {
      case Returns::Nothing:
        break;
      case Returns::Address:
        return read_text(memory, static_cast<std::uint32_t>(result));
      case Returns::AddressAndSize:
        return read_packed(memory, result);
    }
    return std::string();
  }

  const Returns returns_;
};
using Returns = HandleEventTurn::Returns;

struct Entry {
  std::string allocator;
  Returns returns = Returns::Address;
  bool has_initialize = false;
  std::optional<Returns> initial_state;  // Its return type, if the function exists.
};

Result<Entry> find_entry(Exports exports) {
  Entry entry{.has_initialize = has_function(exports, kInitialize, "() -> ()")};
  if (has_function(exports, kEntry, "(i32, i32, i32, i32) -> (i64)")) {
    entry.returns = Returns::AddressAndSize;
  } else if (!has_function(exports, kEntry, "(i32, i32, i32, i32) -> (i32)")) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("module's {} is to be a function (i32, i32, i32, i32) -> (i32)", kEntry));
  }
  const auto* const allocator = std::ranges::find_if(
      kAllocators, [&](std::string_view name) { return has_function(exports, name, kAllocate); });
  if (allocator == kAllocators.end()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("module exports {} and no function malloc {} that gives it memory for "
                            "its arguments",
                            kEntry, kAllocate));
  }
  entry.allocator = *allocator;
  const wasm::Export* const memory = wasm::find_export(exports, "memory");
  if (memory == nullptr || memory->kind != wasm::ExternKind::Memory) {
    return fail(ErrorKind::InvalidInput, "module exports no memory");
  }
  if (has_function(exports, kInitialState, "(i32, i32) -> (i32)")) {
    entry.initial_state = Returns::Address;
  } else if (has_function(exports, kInitialState, "(i32, i32) -> (i64)")) {
    entry.initial_state = Returns::AddressAndSize;
  }
  return entry;
}

class HandleEventMachine final : public Machine {
 public:
  HandleEventMachine(Runtime::Native& runtime, std::shared_ptr<const wasm::SleepableModule> module,
                     std::shared_ptr<const wasm::Checkpoint> beginning, Entry entry,
                     MachineLimits limits)
      : runtime_(runtime),
        module_(std::move(module)),
        beginning_(std::move(beginning)),
        entry_(std::move(entry)),
        limits_(limits) {}

  [[nodiscard]] Shape shape() const override { return Shape::HandleEvent; }

  [[nodiscard]] io::Task<Result<Step>> start(std::string input, std::stop_token stop,
                                             Asker asker) override {
    HANGAR_CO_TRY(check_json(input, "the input"));
    const bool is_own = entry_.initial_state.has_value();
    CallTurn::Call call{.function = std::string(is_own ? kInitialState : kEntry)};
    if (is_own) {
      call.texts = {std::move(input)};
    } else {
      call.texts = {"null", initial_event(input)};
    }
    co_return co_await ask(std::move(call), entry_.initial_state.value_or(entry_.returns), "",
                           std::move(stop), std::move(asker));
  }

  [[nodiscard]] io::Task<Result<Step>> step(std::string state, std::string event,
                                            std::stop_token stop, Asker asker) override {
    HANGAR_CO_TRY(check_json(event, "the event"));
    std::string given = HANGAR_CO_TRY(restorable(state));
    co_return co_await ask(
        {.function = std::string(kEntry), .texts = {std::move(given), std::move(event)}},
        entry_.returns, std::move(state), std::move(stop), std::move(asker));
  }

  [[nodiscard]] io::Task<Result<std::string>> definition(std::stop_token /*stop*/,
                                                         Asker /*asker*/) override {
    co_return fail(ErrorKind::NotFound,
                   "a module with handle_event does not tell what its machine is: draw the bundle");
  }

 private:
  io::Task<Result<Step>> ask(CallTurn::Call call, Returns returns, std::string before,
                             std::stop_token stop, Asker asker) {
    std::vector<CallTurn::Call> calls;
    if (beginning_ == nullptr && entry_.has_initialize) {
      calls.push_back({.function = std::string(kInitialize)});
    }
    calls.push_back(std::move(call));
    HandleEventTurn turn(entry_.allocator, std::move(calls), returns);
    CallState state;
    const budget::FairSlots::Slot slot =
        HANGAR_CO_TRY(co_await runtime_.turns.acquire(asker.consumer, {}, stop));
    const wasm::TurnReport report =
        co_await run(turn, state, std::move(asker.consumer), std::move(stop));
    if (asker.cost != nullptr) {
      *asker.cost = {.cpu = report.cpu_time, .memory_bytes = turn.memory_bytes()};
    }
    if (!report.ended) co_return std::unexpected(report.ended.error());
    if (report.has_left) {
      co_return fail(ErrorKind::GuestFault,
                     fmt::format("the machine called exit({}) and gave no answer: {}",
                                 state.exit_code.value_or(0), state.log));
    }
    Step step = HANGAR_CO_TRY(read_answer(turn.text(), before));
    step.log = std::move(state.log);
    co_return step;
  }

  io::Task<wasm::TurnReport> run(HandleEventTurn& turn, CallState& state, budget::Consumer consumer,
                                 std::stop_token stop) {
    const wasm::TurnLimits limits{.cpu_time_max = limits_.cpu_time_max,
                                  .consumer = std::move(consumer)};
    if (beginning_ != nullptr) {
      co_return co_await runtime_.instances.run(beginning_, limits_.memory_bytes_max, turn, state,
                                                limits, std::move(stop));
    }
    wasm::Instance instance(runtime_.engine(), module_, runtime_.functions, state,
                            limits_.memory_bytes_max);
    co_return co_await instance.run(turn, limits, std::move(stop));
  }

  Runtime::Native& runtime_;
  const std::shared_ptr<const wasm::SleepableModule> module_;
  // The state after _initialize. Null for a module that cannot be stored or needs no such call.
  const std::shared_ptr<const wasm::Checkpoint> beginning_;
  const Entry entry_;
  const MachineLimits limits_;
};

}  // namespace

io::Task<Result<std::shared_ptr<Machine>>> load_handle_event(
    Runtime::Native& runtime, Described described, std::shared_ptr<const std::string> bytes,
    MachineLimits limits, std::stop_token stop, budget::Beneficiaries beneficiaries) {
  Entry entry = HANGAR_CO_TRY(find_entry(described.header.exports));
  const std::shared_ptr<const wasm::SleepableModule> module = HANGAR_CO_TRY(
      co_await wasm::SleepableModule::load(runtime.cache, described.digest, std::move(bytes),
                                           runtime.image_directory, stop, beneficiaries));
  std::shared_ptr<const wasm::Checkpoint> beginning;
  if (entry.has_initialize && !module->obstacle()) {
    CallState state;
    wasm::Instance instance(runtime.engine(), module, runtime.functions, state,
                            limits.memory_bytes_max);
    HandleEventTurn turn(entry.allocator, {{.function = std::string(kInitialize)}},
                         Returns::Nothing);
    const wasm::TurnReport report = co_await instance.run(
        turn, {.cpu_time_max = limits.cpu_time_max, .consumer = beneficiaries.first()},
        std::move(stop));
    if (!report.ended) co_return std::unexpected(report.ended.error());
    if (report.has_left) {
      co_return fail(ErrorKind::GuestFault, "the module leaves while it is initialised");
    }
    beginning = HANGAR_CO_TRY(co_await instance.checkpoint());
  }
  co_return std::make_shared<HandleEventMachine>(runtime, module, std::move(beginning),
                                                 std::move(entry), limits);
}

}  // namespace hangar::abi::statemachine
