// A WASI command, as Javy builds them: reads {"state", "event"} from stdin, prints the answer
// to stdout.
#include "abi/module_kind/module_kind.h"
#include "abi/statemachine/internal/programs_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "io/task.h"
#include "wasm/module_header.h"
#include "wasm/run.h"
#include "wasm/wasi/c_strings.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

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

// Wall time bounds a run, and a run may have to wait for the processor: its bound is this multiple
// of its CPU time.
constexpr int kWallTimeFactor = 5;

bool is_entry(const wasm::ModuleHeader& header, std::string_view name) {
  const wasm::Export* const found = wasm::find_export(header.exports, name);
  return found != nullptr && found->kind == wasm::ExternKind::Function &&
         found->signature == "() -> ()";
}

// A program that fails reports the reason on stderr and then traps: Javy's do so when a script
// throws.
std::unexpected<Error> with_last_words(const Error& error, std::string_view words) {
  while (words.ends_with('\n'))
    words.remove_suffix(1);
  if (words.empty() || error.kind() != ErrorKind::GuestFault) return std::unexpected(error);
  return fail(error.kind(), fmt::format("{}: {}", error.message(), words));
}

}  // namespace

io::Task<Answer> ask_command(Programs::Native& programs, const Program& program, Question question,
                             const Programs::Terms& terms, std::stop_token stop) {
  const bool is_start = question.request == Request::Start;
  wasm::wasi::Command command;
  command.arguments = wasm::wasi::CStrings({"machine"});
  command.stdin_bytes =
      fmt::format(R"({{"state":{},"event":{}}})", is_start ? "null" : question.first,
                  is_start ? initial_event(question.first) : question.second);
  command.stdin_bytes += '\n';
  command.stdout_bytes_max = limits::kMachineAnswerBytesMax;
  command.stderr_bytes_max = limits::kMachineLogBytesMax;
  const wasm::RunReport report = co_await wasm::run(
      programs.engine, program.module, programs.functions, command, program.function,
      {.timeout = kWallTimeFactor * program.limits.cpu_time_max,
       .memory_bytes_max = program.limits.memory_bytes_max,
       .consumer = terms.consumer,
       .ask_memory = terms.ask_memory},
      std::move(stop));
  Answer answer{.text = std::string(),
                .log = command.stderr_text(),
                .cost = {.cpu = report.cpu_time, .memory_bytes = report.memory_bytes}};
  if (!report.ended) {
    answer.text = with_last_words(report.ended.error(), answer.log);
  } else if (command.exit_code.value_or(0) != 0) {
    answer.text = fail(ErrorKind::GuestFault, fmt::format("the machine exited with code {}: {}",
                                                          *command.exit_code, answer.log));
  } else {
    answer.text = std::move(command.stdout_bytes);
  }
  co_return answer;
}

Result<> find_entry_of_command(const wasm::ModuleHeader& header, Program& program) {
  const std::string_view entry = is_entry(header, kNamed) ? kNamed : kStart;
  if (!is_entry(header, entry)) {
    return refuse(
        "module exports neither handle_event nor _start: build it as a WASI command, or export "
        "handle_event and malloc",
        ModuleKind::Machine, header.imports, header.exports);
  }
  program.function = entry;
  return {};
}

}  // namespace hangar::abi::statemachine
