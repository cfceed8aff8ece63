// The parts of a machine and one question to it, independent of where it runs.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/module.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::abi::statemachine {

// The result of a module's function.
enum class Returns : std::uint8_t { Nothing, Address, AddressAndSize };

// Immutable.
struct Program {
  Shape shape = Shape::Bundle;
  // Bundle: the state machine runtime. HandleEvent: the machine's module.
  std::shared_ptr<const wasm::SleepableModule> sleepable = nullptr;
  std::shared_ptr<const wasm::Module> module = nullptr;  // Command.
  wasm::Digest module_digest = {};                       // Command.
  std::shared_ptr<const std::string> bundle = nullptr;   // Bundle.
  std::string function = {};                             // Command: the function to call.
  std::string allocator = {};                            // HandleEvent.
  Returns returns = Returns::Address;                    // HandleEvent.
  bool has_initialize = false;                           // HandleEvent.
  std::optional<Returns> initial_state = std::nullopt;   // HandleEvent: of that function, if any.
  MachineLimits limits = {};
};

// The numbers that the prelude of bundles uses.
enum class Request : std::uint8_t {
  Start,       // `first` is the input.
  Step,        // `first` is the state, `second` the event.
  Definition,  // Only for a bundle; so is the next.
  Actors,      // `first` is the state.
  Begin,       // Only the work before the first question, if there is any.
};

struct Question {
  Request request = Request::Begin;
  std::string first = {};
  std::string second = {};
};

struct Answer {
  Result<std::string> text;  // Unchecked except for its size. Of Begin: empty.
  std::string log = {};
  Cost cost = {};
};

// Asks programs outside this process. Loop thread.
class ProgramRunner {
 public:
  ProgramRunner() = default;
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;
  virtual ~ProgramRunner() = default;

  // Errors as of Machine, and Unavailable when there is no place for the question now, or when its
  // place was lost: then the answer is unknown, and the machine may be asked again.
  [[nodiscard]] virtual io::Task<Answer> ask(std::shared_ptr<const Program> program,
                                             Question question, budget::Consumer consumer,
                                             std::stop_token stop) = 0;
};

// Computed once per program, for all its questions: a bundle is evaluated, a module initialised.
struct Beginning {
  explicit Beginning(io::Loop& loop) : making(loop, 1) {}

  io::Semaphore making;
  std::shared_ptr<const wasm::Checkpoint> checkpoint = nullptr;  // Null: not made, or none needed.
};

// Asks programs in this process. Loop thread. Outlives its questions.
class Programs {
 public:
  explicit Programs(wasm::Engine& engine);
  // With functions that were made before the engine, from its parts.
  Programs(wasm::Engine& engine, std::shared_ptr<const wasm::HostFunctions> functions);
  [[nodiscard]] static std::shared_ptr<const wasm::HostFunctions> make_functions(
      const wasm::EngineParts& parts);
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  ~Programs();

  struct Terms {
    budget::Consumer consumer = budget::unnamed_consumer();
    // As in wasm::RunLimits.
    wasm::AskMemory ask_memory = {};
  };
  // Makes the beginning of `program`, unless it exists. Errors as of Machine. All references
  // outlive the task.
  [[nodiscard]] io::Task<Result<>> begin(const Program& program, Beginning& beginning, Terms terms,
                                         std::stop_token stop);
  // Makes the beginning first, if it is missing. Unavailable, in addition to the errors of the
  // program, if memory was refused although it is within the program's bound.
  [[nodiscard]] io::Task<Answer> ask(std::shared_ptr<const Program> program,
                                     std::shared_ptr<Beginning> beginning, Question question,
                                     Terms terms, std::stop_token stop);

  // Frees the instances that are kept for later questions; returns how many there were.
  std::size_t free_instances();

  struct Native;

 private:
  [[nodiscard]] io::Task<Answer> answer_to(std::shared_ptr<const Program> program,
                                           std::shared_ptr<Beginning> beginning, Question question,
                                           Terms terms, std::stop_token stop);

  const std::unique_ptr<Native> native_;
};

}  // namespace hangar::abi::statemachine
