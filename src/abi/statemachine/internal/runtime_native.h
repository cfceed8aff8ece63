// The internals of Runtime, for the three shapes of machines.
#pragma once

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/task.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/warm_instances.h"
#include "wasm/wasi/preview1.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

struct Runtime::Native {
  Native(wasm::CodeCache& cache_in, std::filesystem::path image_directory_in);

  [[nodiscard]] wasm::Engine& engine() const { return cache.engine(); }
  // The state machine runtime after its prelude was evaluated: every bundle starts from there.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::Checkpoint>>> script_beginning(
      std::stop_token stop);

  wasm::CodeCache& cache;
  const std::filesystem::path image_directory;
  wasm::HostFunctions functions;
  wasm::WarmInstances instances;  // Shared by all machines.
  // Slots for calls of machines, so that a namespace that has used its rate begins none. There are
  // twice as many as guests run at a time: a namespace that waits for memory takes half at most.
  budget::FairSlots turns;

 private:
  io::Semaphore starting_;
  std::shared_ptr<const wasm::Checkpoint> script_beginning_;
};

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
  // The size of memory when the last call began, or ended.
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }

 protected:
  // The text that the result of the last call refers to. Runs on the worker.
  [[nodiscard]] virtual Result<std::string> read_result(wasm::GuestMemory memory,
                                                        std::uint64_t result) = 0;

 private:
  const std::string allocator_;
  std::vector<Call> calls_;
  std::size_t at_ = 0;        // The call that is being prepared or made.
  std::size_t texts_at_ = 0;  // Which of its texts memory is being allocated for.
  std::vector<std::uint64_t> arguments_;
  enum class Phase : std::uint8_t { Preparing, Allocating, Calling } phase_ = Phase::Preparing;
  std::string text_;
  std::uint64_t result_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

// Reads the text whose address << 32 | size is `result`; bounded.
[[nodiscard]] Result<std::string> read_packed(wasm::GuestMemory memory, std::uint64_t result);

// A module before it is compiled.
struct Described {
  wasm::Digest digest;
  wasm::ModuleHeader header;
};

// One function per shape.
[[nodiscard]] io::Task<Result<std::shared_ptr<Machine>>> load_bundle(
    Runtime::Native& runtime, std::shared_ptr<const std::string> text, MachineLimits limits,
    std::stop_token stop, budget::Consumer consumer);
[[nodiscard]] io::Task<Result<std::shared_ptr<Machine>>> load_handle_event(
    Runtime::Native& runtime, Described described, std::shared_ptr<const std::string> bytes,
    MachineLimits limits, std::stop_token stop, budget::Beneficiaries beneficiaries);
[[nodiscard]] io::Task<Result<std::shared_ptr<Machine>>> load_command(
    Runtime::Native& runtime, Described described, std::shared_ptr<const std::string> bytes,
    MachineLimits limits, std::stop_token stop, budget::Beneficiaries beneficiaries);

// The first event for a module that creates its initial state itself.
[[nodiscard]] std::string initial_event(std::string_view input);

}  // namespace hangar::abi::statemachine
