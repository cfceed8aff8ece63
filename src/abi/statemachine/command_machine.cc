// A WASI command, as Javy builds them: reads {"state", "event"} from stdin, prints the answer
// to stdout.
#include "abi/module_kind/module_kind.h"
#include "abi/statemachine/answer.h"
#include "abi/statemachine/internal/runtime_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "io/task.h"
#include "wasm/module.h"
#include "wasm/module_header.h"
#include "wasm/run.h"
#include "wasm/wasi/c_strings.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::abi::statemachine {

namespace {

constexpr std::string_view kStart = "_start";
// The export that Javy makes for an exported function handleEvent: it has no arguments, and input
// and output are the same.
constexpr std::string_view kNamed = "handle-event";

// The clock bounds a run, which may have to wait for its turn on the processor.
constexpr int kWallTimeFactor = 5;

bool is_entry(const Described& module, std::string_view name) {
  const wasm::Export* const found = wasm::find_export(module.header.exports, name);
  return found != nullptr && found->kind == wasm::ExternKind::Function &&
         found->signature == "() -> ()";
}

// A program that fails says why on stderr and then traps: Javy's do so when a script throws.
std::unexpected<Error> with_last_words(const Error& error, std::string_view words) {
  while (words.ends_with('\n'))
    words.remove_suffix(1);
  if (words.empty() || error.kind() != ErrorKind::GuestFault) return std::unexpected(error);
  return fail(error.kind(), fmt::format("{}: {}", error.message(), words));
}

class CommandMachine final : public Machine {
 public:
  CommandMachine(Runtime::Native& runtime, std::shared_ptr<const wasm::Module> module,
                 std::string entry, MachineLimits limits)
      : runtime_(runtime), module_(std::move(module)), entry_(std::move(entry)), limits_(limits) {}

  [[nodiscard]] Shape shape() const override { return Shape::Command; }

  [[nodiscard]] io::Task<Result<Step>> start(std::string input, std::stop_token stop,
                                             Asker asker) override {
    HANGAR_CO_TRY(check_json(input, "the input"));
    co_return co_await ask("null", initial_event(input), "", std::move(stop), std::move(asker));
  }

  [[nodiscard]] io::Task<Result<Step>> step(std::string state, std::string event,
                                            std::stop_token stop, Asker asker) override {
    HANGAR_CO_TRY(check_json(event, "the event"));
    std::string given = HANGAR_CO_TRY(restorable(state));
    co_return co_await ask(std::move(given), std::move(event), std::move(state), std::move(stop),
                           std::move(asker));
  }

  [[nodiscard]] io::Task<Result<std::string>> definition(std::stop_token /*stop*/,
                                                         Asker /*asker*/) override {
    co_return fail(ErrorKind::NotFound,
                   "a command does not tell what its machine is: draw the bundle");
  }

 private:
  io::Task<Result<Step>> ask(std::string state, std::string event, std::string before,
                             std::stop_token stop, Asker asker) {
    wasm::wasi::Command command;
    command.arguments = wasm::wasi::CStrings({"machine"});
    command.stdin_bytes = fmt::format(R"({{"state":{},"event":{}}})", state, event);
    command.stdin_bytes += '\n';
    command.stdout_bytes_max = limits::kMachineAnswerBytesMax;
    command.stderr_bytes_max = limits::kMachineLogBytesMax;
    const wasm::RunReport report =
        co_await wasm::run(runtime_.engine(), module_, runtime_.functions, command, entry_,
                           {.timeout = kWallTimeFactor * limits_.cpu_time_max,
                            .memory_bytes_max = limits_.memory_bytes_max,
                            .consumer = std::move(asker.consumer)},
                           std::move(stop));
    if (asker.cost != nullptr) {
      *asker.cost = {.cpu = report.cpu_time, .memory_bytes = report.memory_bytes};
    }
    if (!report.ended) co_return with_last_words(report.ended.error(), command.stderr_text());
    if (command.exit_code.value_or(0) != 0) {
      co_return fail(ErrorKind::GuestFault, fmt::format("the machine ended with exit code {}: {}",
                                                        *command.exit_code, command.stderr_text()));
    }
    Step step = HANGAR_CO_TRY(read_answer(command.stdout_bytes, before));
    step.log = command.stderr_text();
    co_return step;
  }

  Runtime::Native& runtime_;
  const std::shared_ptr<const wasm::Module> module_;
  const std::string entry_;
  const MachineLimits limits_;
};

}  // namespace

io::Task<Result<std::shared_ptr<Machine>>> load_command(Runtime::Native& runtime,
                                                        Described described,
                                                        std::shared_ptr<const std::string> bytes,
                                                        MachineLimits limits, std::stop_token stop,
                                                        budget::Beneficiaries beneficiaries) {
  const std::string_view entry = is_entry(described, kNamed) ? kNamed : kStart;
  if (!is_entry(described, entry)) {
    co_return refuse(
        "module exports neither handle_event nor _start: build it as a WASI command, or export "
        "handle_event and malloc",
        ModuleKind::Machine, described.header.imports, described.header.exports);
  }
  std::shared_ptr<const wasm::Module> module = HANGAR_CO_TRY(
      co_await runtime.cache.load(described.digest, std::move(bytes), std::move(stop),
                                  wasm::Module::Allocation::Pooled, std::move(beneficiaries)));
  co_return std::make_shared<CommandMachine>(runtime, std::move(module), std::string(entry),
                                             limits);
}

}  // namespace hangar::abi::statemachine
