#include "abi/statemachine/runtime.h"

#include "abi/module_kind/module_kind.h"
#include "abi/statemachine/internal/runtime_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "base/utf8.h"
#include "budget/beneficiaries.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "io/event.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/guest_memory.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/module_header.h"
#include "wasm/plugin.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Defined by cmake/QuickJs.cmake.
extern "C" {
extern const char hangar_machine_runtime_begin[];  // NOLINT(*-avoid-c-arrays)
extern const char hangar_machine_runtime_end[];    // NOLINT(*-avoid-c-arrays)
}

namespace hangar::abi::statemachine {

namespace {

constexpr std::string_view kWasmMagic("\0asm", 4);

// Starts the runtime itself, whose only result is a number.
class StartTurn final : public CallTurn {
 public:
  StartTurn() : CallTurn("alloc", {{.function = "_initialize"}, {.function = "start_runtime"}}) {}

 private:
  Result<std::string> read_result(wasm::GuestMemory /*memory*/, std::uint64_t /*result*/) override {
    return std::string();
  }
};

// "cabi_realloc, invoke, memory": the names that a module imports from `module`.
std::string names_from(std::span<const wasm::Import> imports, std::string_view module) {
  constexpr std::size_t kNamedMax = 5;
  std::string names;
  std::size_t count = 0;
  for (const wasm::Import& import : imports) {
    if (import.module != module || ++count > kNamedMax) continue;
    names += names.empty() ? import.name : ", " + import.name;
  }
  return count > kNamedMax ? names + ", ..." : names;
}

Result<> check_imports(const wasm::ModuleHeader& header) {
  if (const std::optional<std::string> plugin = wasm::missing_plugin(header)) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("module is linked dynamically: it imports {} from {}, another module, "
                    "its plugin. Give that too: as the key plugin.wasm of the module's ConfigMap, "
                    "with spec.plugin, or, to a command, with --plugin; or build the "
                    "module statically",
                    names_from(header.imports, *plugin), *plugin));
  }
  std::vector<wasm::Import> missing;
  for (const wasm::Import& import : header.imports)
    if (import.module != wasm::wasi::kModule) missing.push_back(import);
  if (missing.empty()) return {};
  return refuse(fmt::format("module imports {}, which a state machine does not get; it gets {}",
                            wasm::names_of(missing), wasm::wasi::kModule),
                ModuleKind::Machine, header.imports, header.exports);
}

// hangar-compile makes sure that the module itself gets all imports from its plugin.
Result<> check_carried(const wasm::ModuleHeader& header, std::span<const std::byte> plugin) {
  Result<wasm::ModuleHeader> plugin_header = wasm::read_module_header(plugin);
  Result<> checked = plugin_header ? check_imports(*plugin_header)
                                   : Result<>(std::unexpected(std::move(plugin_header).error()));
  if (!checked) return std::unexpected(std::move(checked).error().in("its plugin"));
  if (wasm::find_export(header.exports, "handle_event") == nullptr) return {};
  return fail(ErrorKind::InvalidInput,
              "module is linked dynamically and exports handle_event: only commands can be");
}

}  // namespace

bool is_bundle(std::string_view bytes) {
  return !bytes.empty() && !bytes.starts_with(kWasmMagic) &&
         bytes.find('\0') == std::string_view::npos && valid_utf8_prefix(bytes) == bytes.size();
}

std::optional<std::string> missing_plugin(std::string_view bytes) {
  if (!bytes.starts_with(kWasmMagic)) return std::nullopt;
  const Result<wasm::ModuleHeader> header =
      wasm::read_module_header(std::as_bytes(std::span(bytes)));
  return header ? wasm::missing_plugin(*header) : std::nullopt;
}

Runtime::Native::Native(wasm::CodeCache& cache_in, std::filesystem::path image_directory_in)
    : cache(cache_in),
      image_directory(std::move(image_directory_in)),
      functions(cache.engine()),
      instances(cache.engine(), functions),
      turns(cache.engine().loop(), {.slots = 2 * std::size_t{limits::kGuestRunsMax}}),
      starting_(cache.engine().loop(), 1) {
  wasm::wasi::add_preview1(functions);
  if (budget::Rates* const rates = cache.engine().rates()) turns.brake(*rates);
}

io::Task<Result<std::shared_ptr<const wasm::Checkpoint>>> Runtime::Native::script_beginning(
    std::stop_token stop) {
  const io::Semaphore::Slot slot = co_await starting_.acquire();
  if (script_beginning_ != nullptr) co_return script_beginning_;
  auto bytes = std::make_shared<const std::string>(
      hangar_machine_runtime_begin,
      static_cast<std::size_t>(hangar_machine_runtime_end - hangar_machine_runtime_begin));
  const wasm::Digest digest =
      co_await engine().workers().run([bytes] { return wasm::Digest::of(*bytes); });
  const std::shared_ptr<const wasm::SleepableModule> module = HANGAR_CO_TRY(
      co_await wasm::SleepableModule::load(cache, digest, std::move(bytes), image_directory, stop));
  CallState state;
  wasm::Instance instance(engine(), module, functions, state, limits::kMachineMemoryBytesMax);
  StartTurn turn;
  const wasm::TurnReport report =
      co_await instance.run(turn, {.cpu_time_max = limits::kGuestCallMax}, std::move(stop));
  if (!report.ended) co_return std::unexpected(report.ended.error());
  if (turn.result() != 0) {
    co_return fail(ErrorKind::Unavailable,
                   "the state machine runtime does not start: " + state.log);
  }
  script_beginning_ = HANGAR_CO_TRY(co_await instance.checkpoint());
  co_return script_beginning_;
}

Result<> CallState::print(wasm::wasi::OutputStream /*stream*/, std::string_view bytes) {
  log += bytes.substr(0, limits::kMachineLogBytesMax -
                             std::min<std::size_t>(log.size(), limits::kMachineLogBytesMax));
  return {};
}

CallTurn::CallTurn(std::string allocator, std::vector<Call> calls)
    : allocator_(std::move(allocator)), calls_(std::move(calls)) {}

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

Runtime::Runtime(wasm::CodeCache& cache, std::filesystem::path image_directory)
    : native_(std::make_unique<Native>(cache, std::move(image_directory))) {}

Runtime::~Runtime() = default;

io::Task<Result<std::shared_ptr<Machine>>> Runtime::load(std::shared_ptr<const std::string> bytes,
                                                         MachineLimits limits, std::stop_token stop,
                                                         budget::Beneficiaries beneficiaries) {
  if (is_bundle(*bytes)) {
    co_return co_await load_bundle(*native_, std::move(bytes), limits, std::move(stop),
                                   beneficiaries.first());
  }
  if (!bytes->starts_with(kWasmMagic)) {
    co_return fail(ErrorKind::InvalidInput,
                   "is neither a WebAssembly module nor a JavaScript bundle (text in UTF-8)");
  }
  Described described =
      HANGAR_CO_TRY(co_await native_->engine().workers().run([bytes]() -> Result<Described> {
        const auto view = std::as_bytes(std::span(*bytes));
        return Described{.digest = wasm::Digest::of(view),
                         .header = HANGAR_TRY(wasm::read_module_header(view))};
      }));
  const std::optional<std::span<const std::byte>> plugin = wasm::carried_plugin(described.header);
  HANGAR_CO_TRY(plugin ? check_carried(described.header, *plugin)
                       : check_imports(described.header));
  const bool has_entry = wasm::find_export(described.header.exports, "handle_event") != nullptr;
  co_return has_entry
      ? co_await load_handle_event(*native_, std::move(described), std::move(bytes), limits,
                                   std::move(stop), std::move(beneficiaries))
      : co_await load_command(*native_, std::move(described), std::move(bytes), limits,
                              std::move(stop), std::move(beneficiaries));
}

}  // namespace hangar::abi::statemachine
