#include "abi/flight/evaluation.h"

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "abi/flight/question.h"
#include "abi/module_kind/module_kind.h"
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/host_task.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/module_header.h"
#include "wasm/run.h"
#include "wasm/wasi/c_strings.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::abi::flight {

namespace {

using wasm::HostCall;
using wasm::HostTask;

constexpr std::string_view kHostModule = "host";
constexpr std::string_view kEntry = "_start";

// For a name, namespace, kind or API version. Kubernetes' own bounds are at most 253
// characters each.
constexpr std::uint32_t kNameBytesMax = 4096;

class State final : public wasm::wasi::Command {
 public:
  explicit State(Lookups& lookups_in) : lookups(lookups_in) {}
  Lookups& lookups;
};

// Reads a buffer of the contract: address << 32 | size.
Result<std::string> read_buffer(const wasm::GuestMemory& memory, std::uint64_t buffer) {
  const auto size = static_cast<std::uint32_t>(buffer);
  if (size > kNameBytesMax) {
    return fail(ErrorKind::GuestFault,
                fmt::format("a name of {} bytes, the most is {}", size, kNameBytesMax));
  }
  return memory.read_string(static_cast<std::uint32_t>(buffer >> 32U), size);
}

// Passes `answer` to the guest, in memory from the guest's own allocator; the guest owns that
// memory. The state is written only when it is not Ok: guests set it to zero before.
HostTask<std::uint64_t> hand_over(HostCall call, std::uint32_t state_at, LookupAnswer answer) {
  if (answer.state != LookupState::Ok) {
    const wasm::GuestMemory memory = HANGAR_CO_TRY(call.memory());
    HANGAR_CO_TRY(memory.write_u32(state_at, static_cast<std::uint32_t>(answer.state)));
  }
  if (answer.body.empty()) co_return std::uint64_t{0};
  const auto size = static_cast<std::uint32_t>(answer.body.size());
  const std::uint64_t buffer = HANGAR_CO_TRY(co_await call.call_guest("malloc", size));
  // Obtained after the call: the guest may have grown its memory.
  const wasm::GuestMemory memory = HANGAR_CO_TRY(call.memory());
  const auto address = static_cast<std::uint32_t>(buffer >> 32U);
  if (Result<> written = memory.write(address, answer.body); !written) {
    co_return std::unexpected(std::move(written).error().in("malloc's answer"));
  }
  co_return std::uint64_t{address} << 32U | size;
}

HostTask<std::uint64_t> k8s_lookup(HostCall call, std::uint32_t state_at, std::uint64_t name,
                                   std::uint64_t namespace_, std::uint64_t kind,
                                   std::uint64_t api_version) {
  LookupRequest request;
  {
    const wasm::GuestMemory memory = HANGAR_CO_TRY(call.memory());
    std::ignore = HANGAR_CO_TRY(
        memory.read_u32(state_at));  // A bad address fails before the cluster is asked.
    request.name = HANGAR_CO_TRY(read_buffer(memory, name));
    request.namespace_ = HANGAR_CO_TRY(read_buffer(memory, namespace_));
    request.kind = HANGAR_CO_TRY(read_buffer(memory, kind));
    request.api_version = HANGAR_CO_TRY(read_buffer(memory, api_version));
  }
  Lookups& lookups = call.state<State>().lookups;
  LookupAnswer answer = HANGAR_CO_TRY(co_await call.on_loop<LookupAnswer>(
      [&lookups, request = std::move(request)](const std::stop_token& /*stop*/) mutable {
        return lookups.lookup(std::move(request));
      }));
  co_return co_await hand_over(call, state_at, std::move(answer));
}

HostTask<std::uint64_t> k8s_rest_mapping(HostCall call, std::uint32_t state_at,
                                         std::uint64_t group_or_api_version, std::uint64_t kind) {
  std::string group_text;
  std::string kind_text;
  {
    const wasm::GuestMemory memory = HANGAR_CO_TRY(call.memory());
    std::ignore = HANGAR_CO_TRY(memory.read_u32(state_at));
    group_text = HANGAR_CO_TRY(read_buffer(memory, group_or_api_version));
    kind_text = HANGAR_CO_TRY(read_buffer(memory, kind));
  }
  Lookups& lookups = call.state<State>().lookups;
  LookupAnswer answer = HANGAR_CO_TRY(co_await call.on_loop<LookupAnswer>(
      [&lookups, group = std::move(group_text),
       kind_in = std::move(kind_text)](const std::stop_token& /*stop*/) mutable {
        return lookups.rest_mapping(std::move(group), std::move(kind_in));
      }));
  co_return co_await hand_over(call, state_at, std::move(answer));
}

std::optional<Duration> timeout_of(std::chrono::nanoseconds asked) {
  if (asked < std::chrono::nanoseconds::zero()) return std::nullopt;
  return asked == std::chrono::nanoseconds::zero() ? Duration(limits::kGuestCallMax) : asked;
}

// Guests read these as C strings, which end at a null byte.
Result<> check_strings(const Command& command) {
  const auto has_null = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  if (std::ranges::any_of(command.arguments, has_null) ||
      std::ranges::any_of(command.environment, has_null))
    return fail(ErrorKind::InvalidInput, "an argument contains a null byte");
  return {};
}

// Adds the variables whose names `environment` does not have.
void add_environment(std::vector<std::string>& environment, std::vector<std::string> more) {
  const std::vector<std::string> own = environment;
  for (std::string& variable : more) {
    const std::string name = variable.substr(0, variable.find('=')) + "=";
    const bool is_own =
        std::ranges::any_of(own, [&name](const std::string& one) { return one.starts_with(name); });
    if (!is_own) environment.push_back(std::move(variable));
  }
}

Result<> check_entry(const wasm::Module& module) {
  const wasm::Export* const entry = module.find_export(kEntry);
  if (entry == nullptr || entry->signature != "() -> ()") {
    return refuse(
        "module exports no function _start: build it as a WASI command (a program with a main "
        "function)",
        ModuleKind::Flight, module.imports(), module.exports());
  }
  return {};
}

// `state` outlives the task.
io::Task<Result<Output>> run_command(wasm::Engine& engine,
                                     std::shared_ptr<const wasm::Module> module,
                                     const wasm::HostFunctions& functions,
                                     wasm::wasi::Command& state, wasm::RunLimits run_limits,
                                     std::stop_token stop) {
  wasm::RunReport report =
      co_await wasm::run(engine, std::move(module), functions, state, std::string(kEntry),
                         std::move(run_limits), std::move(stop));
  if (!report.ended) {
    Error error = std::move(report.ended).error();
    // The message that tools and tests of the contract expect.
    if (report.has_timed_out) {
      error = std::move(error).in("module closed with context deadline exceeded");
    }
    co_return std::unexpected(std::move(error));
  }
  co_return Output{.exit_code = state.exit_code.value_or(0),
                   .stdout_bytes = std::move(state.stdout_bytes),
                   .stderr_bytes = state.stderr_text(),
                   .cpu_time = report.cpu_time,
                   .memory_bytes = report.memory_bytes};
}

void give(wasm::wasi::Command& state, Command& command) {
  state.arguments = wasm::wasi::CStrings(command.arguments);
  state.environment = wasm::wasi::CStrings(command.environment);
  state.stdin_bytes = std::move(command.stdin_bytes);
}

io::Task<Result<Output>> run_somewhere(const Runtime& runtime,
                                       std::shared_ptr<const wasm::Module> module, Command command,
                                       Lookups* lookups, std::stop_token stop) {
  if (runtime.elsewhere() != nullptr) {
    co_return co_await runtime.elsewhere()->run(std::move(module), std::move(command), lookups,
                                                std::move(stop));
  }
  co_return co_await run_here(runtime, std::move(module), std::move(command), lookups, {},
                              std::move(stop));
}

}  // namespace

Runtime::Runtime(wasm::Engine& engine, CommandRunner* elsewhere)
    : Runtime(engine, elsewhere, make_functions(engine.parts())) {}

Runtime::Runtime(wasm::Engine& engine, CommandRunner* elsewhere, Functions functions)
    : engine_(engine), elsewhere_(elsewhere), functions_(std::move(functions)) {}

Runtime::Functions Runtime::make_functions(const wasm::EngineParts& parts,
                                           const AddFunctions& add_functions) {
  auto of_flights = std::make_shared<wasm::HostFunctions>(parts);
  auto of_converters = std::make_shared<wasm::HostFunctions>(parts);
  wasm::wasi::add_preview1(*of_flights);
  wasm::wasi::add_preview1(*of_converters);
  of_flights->add<&k8s_lookup>(kHostModule, "k8s_lookup");
  of_flights->add<&k8s_rest_mapping>(kHostModule, "k8s_rest_mapping");
  if (add_functions) add_functions(*of_flights);
  return {.of_flights = std::move(of_flights), .of_converters = std::move(of_converters)};
}

Result<> Runtime::check(const wasm::Module& module) const {
  const std::vector<wasm::Import> missing = functions().missing(module);
  if (!missing.empty()) {
    return refuse(fmt::format("module imports {}, which a flight does not get; flights get {} and "
                              "host.{{k8s_lookup,k8s_rest_mapping}}",
                              wasm::names_of(missing), wasm::wasi::kModule),
                  ModuleKind::Flight, module.imports(), module.exports());
  }
  return check_entry(module);
}

Result<> Runtime::check_converter(const wasm::Module& module) const {
  const std::vector<wasm::Import> missing = converter_functions().missing(module);
  if (!missing.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("module imports {}, which a converter does not get; converters get {}",
                            wasm::names_of(missing), wasm::wasi::kModule));
  }
  return check_entry(module);
}

io::Task<Result<Output>> evaluate(const Runtime& runtime,
                                  std::shared_ptr<const wasm::Module> module, Evaluation evaluation,
                                  Lookups& lookups, std::stop_token stop) {
  HANGAR_CO_TRY(runtime.check(*module));
  Command command{.role = Role::Flight,
                  .environment = {"YOKE_RELEASE=" + evaluation.release,
                                  "YOKE_NAMESPACE=" + evaluation.namespace_,
                                  "NAMESPACE=" + evaluation.namespace_,
                                  fmt::format("YOKE_VERSION={}", kContractVersion),
                                  "HANGAR_VERSION=" + evaluation.host_version},
                  .stdin_bytes = std::move(evaluation.stdin_bytes),
                  .timeout = timeout_of(evaluation.timeout),
                  .memory_bytes_max = evaluation.memory_bytes_max,
                  .consumer = std::move(evaluation.consumer)};
  add_environment(command.environment, std::move(evaluation.environment));
  command.arguments = std::move(evaluation.args);
  command.arguments.insert(command.arguments.begin(), std::move(evaluation.release));
  HANGAR_CO_TRY(check_strings(command));
  co_return co_await run_somewhere(runtime, std::move(module), std::move(command), &lookups,
                                   std::move(stop));
}

io::Task<Result<Output>> ask(const Runtime& runtime, std::shared_ptr<const wasm::Module> module,
                             Question question, Lookups& lookups, std::stop_token stop) {
  HANGAR_CO_TRY(runtime.check(*module));
  Command command{.role = Role::Flight,
                  .arguments = std::move(question.args),
                  .timeout = timeout_of(question.timeout),
                  .memory_bytes_max = question.memory_bytes_max};
  command.arguments.insert(command.arguments.begin(), "schematics");
  HANGAR_CO_TRY(check_strings(command));
  co_return co_await run_somewhere(runtime, std::move(module), std::move(command), &lookups,
                                   std::move(stop));
}

io::Task<Result<Output>> run_here(const Runtime& runtime,
                                  std::shared_ptr<const wasm::Module> module, Command command,
                                  Lookups* lookups, wasm::AskMemory ask_memory,
                                  std::stop_token stop) {
  wasm::RunLimits run_limits{.timeout = command.timeout,
                             .memory_bytes_max = command.memory_bytes_max,
                             .consumer = std::move(command.consumer),
                             .ask_memory = std::move(ask_memory)};
  if (command.role == Role::Converter) {
    wasm::wasi::Command state;
    give(state, command);
    co_return co_await run_command(runtime.engine(), std::move(module),
                                   runtime.converter_functions(), state, std::move(run_limits),
                                   std::move(stop));
  }
  HANGAR_ASSERT(lookups != nullptr, "a flight may look things up");
  State state(*lookups);
  give(state, command);
  co_return co_await run_command(runtime.engine(), std::move(module), runtime.functions(), state,
                                 std::move(run_limits), std::move(stop));
}

io::Task<Result<Output>> run_without_lookups(const Runtime& runtime,
                                             std::shared_ptr<const wasm::Module> module,
                                             Command command, std::stop_token stop) {
  HANGAR_CO_TRY(runtime.check_converter(*module));
  HANGAR_CO_TRY(check_strings(command));
  command.role = Role::Converter;
  co_return co_await run_somewhere(runtime, std::move(module), std::move(command), nullptr,
                                   std::move(stop));
}

io::Task<Result<Output>> convert(const Runtime& runtime, std::shared_ptr<const wasm::Module> module,
                                 Conversion conversion, std::stop_token stop) {
  Command command{.arguments = {"converter"},
                  .stdin_bytes = std::move(conversion.stdin_bytes),
                  .timeout = timeout_of(conversion.timeout),
                  .memory_bytes_max = conversion.memory_bytes_max,
                  .consumer = std::move(conversion.consumer)};
  co_return co_await run_without_lookups(runtime, std::move(module), std::move(command),
                                         std::move(stop));
}

}  // namespace hangar::abi::flight
