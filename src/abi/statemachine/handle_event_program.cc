// A module with the published entry point: handle_event(state, its size, event, its size) -> text.
#include "abi/statemachine/internal/programs_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "base/utf8.h"
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
                      fmt::format("the machine's answer has more than {} bytes, or is not "
                                  "null-terminated",
                                  limits::kMachineAnswerBytesMax))
               : fail(ErrorKind::GuestFault, "the machine's answer is not null-terminated");
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()),
                     static_cast<std::size_t>(end - bytes.begin()));
}

class HandleEventTurn final : public CallTurn {
 public:
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

// What a program prints before it traps says more than the trap: of a panic, or of memory that is
// full.
Error with_output(const Error& error, std::string_view log) {
  if (error.kind() != ErrorKind::GuestFault || log.empty()) return error;
  log = utf8_beginning(log, limits::kMachineFaultOutputBytesMax);
  log = log.substr(0, valid_utf8_prefix(log));
  return {error.kind(), fmt::format("{}; it has printed: {}", error.message(), log)};
}

// If so, each question of a module that cannot be copied calls _initialize.
bool is_initialized_each_time(const Program& program) {
  return program.has_initialize && program.sleepable->obstacle() != nullptr;
}

}  // namespace

Result<> find_entries_of_handle_event(std::span<const wasm::Export> exports, Program& program) {
  program.has_initialize = has_function(exports, kInitialize, "() -> ()");
  if (has_function(exports, kEntry, "(i32, i32, i32, i32) -> (i64)")) {
    program.returns = Returns::AddressAndSize;
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
  program.allocator = *allocator;
  const wasm::Export* const memory = wasm::find_export(exports, "memory");
  if (memory == nullptr || memory->kind != wasm::ExternKind::Memory) {
    return fail(ErrorKind::InvalidInput, "module exports no memory");
  }
  if (has_function(exports, kInitialState, "(i32, i32) -> (i32)")) {
    program.initial_state = Returns::Address;
  } else if (has_function(exports, kInitialState, "(i32, i32) -> (i64)")) {
    program.initial_state = Returns::AddressAndSize;
  }
  return {};
}

io::Task<Begun> begin_handle_event(Programs::Native& programs, const Program& program,
                                   const Programs::Terms& terms, std::stop_token stop) {
  if (!program.has_initialize || is_initialized_each_time(program)) co_return nullptr;
  CallState state;
  wasm::Instance instance(programs.engine, program.sleepable, programs.functions, state,
                          program.limits.memory_bytes_max);
  instance.ask_for_memory(terms.ask_memory);
  HandleEventTurn turn(program.allocator, {{.function = std::string(kInitialize)}},
                       Returns::Nothing);
  const wasm::TurnReport report = co_await instance.run(
      turn, {.cpu_time_max = program.limits.cpu_time_max, .consumer = terms.consumer},
      std::move(stop));
  if (!report.ended) co_return std::unexpected(report.ended.error());
  if (report.has_left) {
    co_return fail(ErrorKind::GuestFault, "the module leaves while it is initialised");
  }
  co_return co_await instance.checkpoint(terms.consumer);
}

io::Task<Answer> ask_handle_event(Programs::Native& programs, const Program& program,
                                  const Beginning& beginning, Question question,
                                  const Programs::Terms& terms, std::stop_token stop) {
  const bool is_start = question.request == Request::Start;
  const bool is_own = is_start && program.initial_state.has_value();
  CallTurn::Call call{.function = std::string(is_own ? kInitialState : kEntry)};
  if (is_own) {
    call.texts = {std::move(question.first)};
  } else if (is_start) {
    call.texts = {"null", initial_event(question.first)};
  } else {
    call.texts = {std::move(question.first), std::move(question.second)};
  }
  std::vector<CallTurn::Call> calls;
  if (is_initialized_each_time(program)) calls.push_back({.function = std::string(kInitialize)});
  calls.push_back(std::move(call));
  HandleEventTurn turn(program.allocator, std::move(calls),
                       is_own ? *program.initial_state : program.returns);
  CallState state;
  const wasm::TurnReport report =
      co_await programs.run(program, beginning.checkpoint, turn, state, terms, std::move(stop));
  Answer answer = answer_of(turn, state, report);
  if (!report.ended) {
    answer.text = std::unexpected(with_output(report.ended.error(), answer.log));
  } else if (report.has_left) {
    answer.text = fail(ErrorKind::GuestFault,
                       fmt::format("the machine called exit({}) and gave no answer: {}",
                                   state.exit_code.value_or(0), answer.log));
  }
  co_return answer;
}

}  // namespace hangar::abi::statemachine
