// The internals of Programs, for the three shapes of machines.
#pragma once

#include "abi/statemachine/program.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/warm_instances.h"
#include "wasm/wasi/preview1.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

// The state of one call of a machine. All its output goes to the log.
class CallState final : public wasm::wasi::Process {
 public:
  CallState() : Process(wasm::wasi::ProcessState{}) {}
  [[nodiscard]] Result<> print(wasm::wasi::OutputStream stream, std::string_view bytes) override;

  std::string log;
};

// Calls exports in order; keeps the result of the last one.
class CallTurn : public wasm::Turn {
 public:
  // Each text is copied into memory from the guest's own allocator before the call. Its address and
  // size become the first arguments of the call, for each text in order.
  struct Call {
    std::string function;
    std::vector<std::string> texts;
    std::vector<std::uint64_t> more_arguments;
  };
  CallTurn(std::string allocator, std::vector<Call> calls);

  Result<std::optional<wasm::Invocation>> next(wasm::GuestMemory memory,
                                               std::uint64_t result) override;

  // Of the last call.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::uint64_t result() const { return result_; }
  // The size of memory at the start or the end of the last call.
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }

 protected:
  // The text that the result of the last call refers to. Runs on the worker.
  [[nodiscard]] virtual Result<std::string> read_result(wasm::GuestMemory memory,
                                                        std::uint64_t result) = 0;

 private:
  const std::string allocator_;
  std::vector<Call> calls_;
  std::size_t at_ = 0;        // The call that is being prepared or made.
  std::size_t texts_at_ = 0;  // The text of the call for which memory is being allocated.
  std::vector<std::uint64_t> arguments_;
  enum class Phase : std::uint8_t { Preparing, Allocating, Calling } phase_ = Phase::Preparing;
  std::string text_;
  std::uint64_t result_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

// The answer of a finished turn, or the reason why the turn failed.
[[nodiscard]] Answer answer_of(const CallTurn& turn, CallState& state,
                               const wasm::TurnReport& report);

// Reads the text whose address << 32 | size is `result`; bounded.
[[nodiscard]] Result<std::string> read_packed(wasm::GuestMemory memory, std::uint64_t result);

struct Programs::Native {
  Native(wasm::Engine& engine_in, std::shared_ptr<const wasm::HostFunctions> functions_in);

  // One turn of a new instance of `program`, or of one that starts from `checkpoint`.
  [[nodiscard]] io::Task<wasm::TurnReport> run(const Program& program,
                                               std::shared_ptr<const wasm::Checkpoint> checkpoint,
                                               wasm::Turn& turn, CallState& state,
                                               const Terms& terms, std::stop_token stop);
  // The state machine runtime after its prelude was evaluated: every bundle starts from this
  // checkpoint.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::Checkpoint>>> script_beginning(
      std::shared_ptr<const wasm::SleepableModule> module, const Terms& terms,
      std::stop_token stop);

  wasm::Engine& engine;
  const std::shared_ptr<const wasm::HostFunctions> owned_functions;
  const wasm::HostFunctions& functions;
  wasm::WarmInstances instances;  // Shared by all programs.
  // Slots for questions, so that a namespace that has used up its rate asks none. There are twice
  // as many slots as guests that run at a time: a namespace that waits for memory takes at most
  // half.
  budget::FairSlots turns;

 private:
  io::Semaphore starting_;
  std::shared_ptr<const wasm::SleepableModule> script_module_;
  std::shared_ptr<const wasm::Checkpoint> script_beginning_;
};

// A checkpoint for all questions: null when the program needs none, or cannot have one. References
// outlive the task, here and below.
using Begun = Result<std::shared_ptr<const wasm::Checkpoint>>;
[[nodiscard]] io::Task<Begun> begin_bundle(Programs::Native& programs, const Program& program,
                                           const Programs::Terms& terms, std::stop_token stop);
[[nodiscard]] io::Task<Begun> begin_handle_event(Programs::Native& programs, const Program& program,
                                                 const Programs::Terms& terms,
                                                 std::stop_token stop);

// One function per shape. Requires that the beginning has been made.
[[nodiscard]] io::Task<Answer> ask_bundle(Programs::Native& programs, const Program& program,
                                          const Beginning& beginning, Question question,
                                          const Programs::Terms& terms, std::stop_token stop);
[[nodiscard]] io::Task<Answer> ask_handle_event(Programs::Native& programs, const Program& program,
                                                const Beginning& beginning, Question question,
                                                const Programs::Terms& terms, std::stop_token stop);
[[nodiscard]] io::Task<Answer> ask_command(Programs::Native& programs, const Program& program,
                                           Question question, const Programs::Terms& terms,
                                           std::stop_token stop);

// Completes `program` with the exports that a module of each shape needs. InvalidInput.
[[nodiscard]] Result<> find_entries_of_handle_event(std::span<const wasm::Export> exports,
                                                    Program& program);
[[nodiscard]] Result<> find_entry_of_command(const wasm::ModuleHeader& header, Program& program);

// The first event for a module that creates its initial state itself.
[[nodiscard]] std::string initial_event(std::string_view input);

}  // namespace hangar::abi::statemachine
