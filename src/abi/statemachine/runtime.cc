#include "abi/statemachine/runtime.h"

#include "abi/module_kind/module_kind.h"
#include "abi/statemachine/answer.h"
#include "abi/statemachine/internal/programs_native.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "base/utf8.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/module.h"
#include "wasm/module_header.h"
#include "wasm/plugin.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

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
extern const char hangar_machine_runtime_begin[];
extern const char hangar_machine_runtime_end[];
}

namespace hangar::abi::statemachine {

namespace {

constexpr std::string_view kWasmMagic("\0asm", 4);

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

std::string_view bundle_interpreter() {
  return {hangar_machine_runtime_begin,
          static_cast<std::size_t>(hangar_machine_runtime_end - hangar_machine_runtime_begin)};
}

struct Runtime::Native {
  Native(wasm::CodeCache& cache_in, std::filesystem::path image_directory_in,
         ProgramRunner* elsewhere_in)
      : cache(cache_in),
        image_directory(std::move(image_directory_in)),
        elsewhere(elsewhere_in),
        programs(cache.engine()),
        starting_(cache.engine().loop(), 1) {}

  // The state machine runtime, in which bundles run.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::SleepableModule>>> script_module(
      std::stop_token stop) {
    const io::Semaphore::Slot slot = HANGAR_CO_TRY(co_await starting_.acquire(stop));
    if (script_module_ != nullptr) co_return script_module_;
    auto bytes = std::make_shared<const std::string>(bundle_interpreter());
    const wasm::Digest digest = co_await cache.engine().workers().run(
        budget::Consumer::of_host("machine runtime"), [bytes] { return wasm::Digest::of(*bytes); });
    script_module_ = HANGAR_CO_TRY(co_await wasm::SleepableModule::load(
        cache, digest, std::move(bytes), image_directory, std::move(stop)));
    co_return script_module_;
  }

  wasm::CodeCache& cache;
  const std::filesystem::path image_directory;
  ProgramRunner* const elsewhere;  // Null: machines are asked here.
  Programs programs;

 private:
  io::Semaphore starting_;
  std::shared_ptr<const wasm::SleepableModule> script_module_;
};

namespace {

// The machine of a program, wherever it is asked.
class ProgramMachine final : public Machine {
 public:
  ProgramMachine(Runtime::Native& runtime, std::shared_ptr<const Program> program)
      : runtime_(runtime),
        program_(std::move(program)),
        beginning_(std::make_shared<Beginning>(runtime.cache.engine().loop())) {}

  // Where machines are asked in this process.
  [[nodiscard]] io::Task<Result<>> begin(budget::Consumer consumer, std::stop_token stop) {
    return runtime_.programs.begin(*program_, *beginning_, {.consumer = std::move(consumer)},
                                   std::move(stop));
  }

  [[nodiscard]] Shape shape() const override { return program_->shape; }

  [[nodiscard]] std::optional<OnDisk> on_disk() const override {
    switch (program_->shape) {
      case Shape::Bundle:
        return std::nullopt;
      case Shape::HandleEvent:
        return OnDisk{.code = program_->sleepable->code_digest(),
                      .image_bytes = program_->sleepable->image_bytes()};
      case Shape::Command:
        return OnDisk{.code = program_->module_digest};
    }
    return std::nullopt;
  }

  [[nodiscard]] io::Task<Result<>> try_out(std::stop_token stop, Asker asker) override {
    if (runtime_.elsewhere == nullptr || (!is_bundle() && !program_->has_initialize)) {
      co_return Result<>();
    }
    const Answer answer = co_await ask({.request = Request::Begin}, std::move(stop), asker);
    if (!answer.text) co_return std::unexpected(answer.text.error());
    co_return Result<>();
  }

  [[nodiscard]] io::Task<Result<Step>> start(std::string input, std::stop_token stop,
                                             Asker asker) override {
    if (!is_bundle()) HANGAR_CO_TRY(check_json(input, "the input"));
    co_return read_step(co_await ask({.request = Request::Start, .first = std::move(input)},
                                     std::move(stop), std::move(asker)),
                        "");
  }

  [[nodiscard]] io::Task<Result<Step>> step(std::string state, std::string event,
                                            std::stop_token stop, Asker asker) override {
    Question question{.request = Request::Step};
    if (is_bundle()) {
      question.first = state;
    } else {
      HANGAR_CO_TRY(check_json(event, "the event"));
      question.first = HANGAR_CO_TRY(restorable(state));
    }
    question.second = std::move(event);
    co_return read_step(co_await ask(std::move(question), std::move(stop), std::move(asker)),
                        state);
  }

  [[nodiscard]] io::Task<Result<std::string>> definition(std::stop_token stop,
                                                         Asker asker) override {
    if (!is_bundle()) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("{} does not describe its machine: draw the bundle",
                                 program_->shape == Shape::Command ? "a command"
                                                                   : "a module with handle_event"));
    }
    const Answer answer =
        co_await ask({.request = Request::Definition}, std::move(stop), std::move(asker));
    if (!answer.text) co_return std::unexpected(answer.text.error());
    co_return read_definition(*answer.text);
  }

  [[nodiscard]] io::Task<Result<std::vector<Actor>>> actors(std::string state, std::stop_token stop,
                                                            Asker asker) override {
    if (!is_bundle()) co_return std::vector<Actor>();
    const Answer answer = co_await ask({.request = Request::Actors, .first = std::move(state)},
                                       std::move(stop), std::move(asker));
    if (!answer.text) co_return std::unexpected(answer.text.error());
    co_return read_actors(*answer.text);
  }

 private:
  [[nodiscard]] bool is_bundle() const { return program_->shape == Shape::Bundle; }

  static Result<Step> read_step(Answer answer, const std::string& before) {
    if (!answer.text) return std::unexpected(std::move(answer.text).error());
    Step step = HANGAR_TRY(read_answer(*answer.text, before));
    step.log = std::move(answer.log);
    return step;
  }

  io::Task<Answer> ask(Question question, std::stop_token stop, Asker asker) {
    Answer answer =
        runtime_.elsewhere == nullptr
            ? co_await runtime_.programs.ask(program_, beginning_, std::move(question),
                                             {.consumer = std::move(asker.consumer)},
                                             std::move(stop))
            : co_await runtime_.elsewhere->ask(program_, std::move(question),
                                               std::move(asker.consumer), std::move(stop));
    if (asker.cost != nullptr) *asker.cost = answer.cost;
    co_return answer;
  }

  Runtime::Native& runtime_;
  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<Beginning> beginning_;
};

// A module before it is compiled.
struct Described {
  wasm::Digest digest;
  wasm::ModuleHeader header;
};

io::Task<Result<std::shared_ptr<const Program>>> load_bundle(
    Runtime::Native& runtime, std::shared_ptr<const std::string> text, MachineLimits limits,
    std::stop_token stop) {
  if (text->size() > limits::kMachineBundleBytesMax) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("the bundle has {} bytes, the most is {}", text->size(),
                               limits::kMachineBundleBytesMax));
  }
  co_return std::make_shared<const Program>(
      Program{.shape = Shape::Bundle,
              .sleepable = HANGAR_CO_TRY(co_await runtime.script_module(std::move(stop))),
              .bundle = std::move(text),
              .limits = limits});
}

io::Task<Result<std::shared_ptr<const Program>>> load_module(
    Runtime::Native& runtime, std::shared_ptr<const std::string> bytes, MachineLimits limits,
    std::stop_token stop, budget::Beneficiaries beneficiaries) {
  const Described described = HANGAR_CO_TRY(co_await runtime.cache.engine().workers().run_for_any(
      beneficiaries.all(), [bytes]() -> Result<Described> {
        const auto view = std::as_bytes(std::span(*bytes));
        return Described{.digest = wasm::Digest::of(view),
                         .header = HANGAR_TRY(wasm::read_module_header(view))};
      }));
  const std::optional<std::span<const std::byte>> plugin = wasm::carried_plugin(described.header);
  HANGAR_CO_TRY(plugin ? check_carried(described.header, *plugin)
                       : check_imports(described.header));
  Program program{.limits = limits};
  if (wasm::find_export(described.header.exports, "handle_event") != nullptr) {
    program.shape = Shape::HandleEvent;
    HANGAR_CO_TRY(find_entries_of_handle_event(described.header.exports, program));
    program.sleepable = HANGAR_CO_TRY(co_await wasm::SleepableModule::load(
        runtime.cache, described.digest, std::move(bytes), runtime.image_directory, std::move(stop),
        std::move(beneficiaries)));
  } else {
    program.shape = Shape::Command;
    HANGAR_CO_TRY(find_entry_of_command(described.header, program));
    program.module_digest = described.digest;
    program.module = HANGAR_CO_TRY(
        co_await runtime.cache.load(described.digest, std::move(bytes), std::move(stop),
                                    wasm::Module::Allocation::Pooled, std::move(beneficiaries)));
  }
  co_return std::make_shared<const Program>(std::move(program));
}

}  // namespace

Runtime::Runtime(wasm::CodeCache& cache, std::filesystem::path image_directory,
                 ProgramRunner* elsewhere)
    : native_(std::make_unique<Native>(cache, std::move(image_directory), elsewhere)) {}

Runtime::~Runtime() = default;

io::Task<Result<std::shared_ptr<Machine>>> Runtime::load(std::shared_ptr<const std::string> bytes,
                                                         MachineLimits limits, std::stop_token stop,
                                                         budget::Beneficiaries beneficiaries) {
  const bool is_script = is_bundle(*bytes);
  if (!is_script && !bytes->starts_with(kWasmMagic)) {
    co_return fail(ErrorKind::InvalidInput,
                   "is neither a WebAssembly module nor a JavaScript bundle (text in UTF-8)");
  }
  std::shared_ptr<const Program> program = HANGAR_CO_TRY(
      is_script ? co_await load_bundle(*native_, std::move(bytes), limits, stop)
                : co_await load_module(*native_, std::move(bytes), limits, stop, beneficiaries));
  auto machine = std::make_shared<ProgramMachine>(*native_, std::move(program));
  // If machines are asked elsewhere, the runner there makes the beginning.
  if (native_->elsewhere == nullptr) {
    HANGAR_CO_TRY(co_await machine->begin(beneficiaries.first(), std::move(stop)));
  }
  co_return std::shared_ptr<Machine>(std::move(machine));
}

std::size_t Runtime::free_kept() {
  return native_->programs.free_instances();
}

io::Task<Result<std::shared_ptr<const void>>> Runtime::charge(
    std::shared_ptr<const Machine> machine, budget::Consumer consumer) {
  const std::optional<Machine::OnDisk> on_disk = machine->on_disk();
  if (!on_disk) co_return nullptr;
  co_return co_await native_->cache.charge(on_disk->code, on_disk->image_bytes,
                                           std::move(consumer));
}

}  // namespace hangar::abi::statemachine
