#include "commands/build_code.h"

#include "abi/module_kind/module_kind.h"
#include "abi/statemachine/runtime.h"
#include "airways/lua_rules.h"
#include "base/consumer.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/module_fetch.h"
#include "commands/shown_step.h"
#include "commands/streams.h"
#include "commands/temporary_directory.h"
#include "host/config.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/fetcher.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"
#include "schematics/signature.h"
#include "signatures/prebuilt_directory.h"
#include "wasm/code_target.h"
#include "wasm/compiler_process.h"
#include "wasm/digest.h"
#include "wasm/limits.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/snapshot/rewrite.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

struct NamedModule {
  std::string name;
  std::string bytes;
};

class CodeBuilder {
 public:
  CodeBuilder(const host::Config& config, const BuildCodeOptions& options, const Streams& streams,
              const Log& log, schematics::PrivateKey key)
      : config_(config),
        options_(options),
        streams_(streams),
        log_(log),
        key_(std::move(key)),
        target_(options.processor == CodeProcessor::Any ? wasm::CodeTarget::any_machine()
                                                        : wasm::CodeTarget::this_machine()),
        workers_(loop_, 2),
        http_(loop_) {}

  [[nodiscard]] Result<> build() { return io::run_to_end(loop_, build_all()); }

 private:
  [[nodiscard]] io::Task<Result<>> build_all() {
    ShownStep step(loop_, options_.show);
    for (const std::string& module : options_.modules) {
      step.is(fmt::format("fetching {}", module));
      Result<modules::Fetched> fetched =
          co_await fetch_module(config_, loop_, workers_, http_, module, log_);
      if (!fetched) co_return std::unexpected(std::move(fetched).error().in(module));
      HANGAR_CO_TRY(co_await build_one({.name = module, .bytes = std::move(fetched->wasm)}, step));
    }
    if (options_.with_interpreters) {
      HANGAR_CO_TRY(
          co_await build_one({.name = "the interpreter of JavaScript",
                              .bytes = std::string(abi::statemachine::bundle_interpreter())},
                             step));
      std::string lua = HANGAR_CO_TRY(airways::lua_interpreter());
      HANGAR_CO_TRY(
          co_await build_one({.name = "the interpreter of Lua", .bytes = std::move(lua)}, step));
    }
    co_return Result<>{};
  }

  [[nodiscard]] io::Task<Result<>> build_one(NamedModule module, ShownStep& step) {
    step.is(fmt::format("compiling {}", module.name));
    Result<> built = co_await compile_forms(module.bytes);
    if (!built) built = std::unexpected(std::move(built).error().in(module.name));
    co_return built;
  }

  // Hosts compile another form of a module whose instances sleep. Of a program that may be meant as
  // a flight or as a machine, both are compiled.
  [[nodiscard]] io::Task<Result<>> compile_forms(const std::string& bytes) {
    const wasm::ModuleHeader header =
        HANGAR_CO_TRY(wasm::read_module_header(std::as_bytes(std::span(bytes))));
    const abi::ModuleKind kind = abi::kind_of(header.imports, header.exports);
    std::optional<std::string> sleepable;
    if (kind != abi::ModuleKind::Flight) sleepable = HANGAR_CO_TRY(wasm::rewritten_form(bytes));
    if (sleepable) HANGAR_CO_TRY(co_await compile(*sleepable));
    if (sleepable && kind == abi::ModuleKind::Operator) co_return Result<>{};
    co_return co_await compile(bytes);
  }

  [[nodiscard]] io::Task<Result<>> compile(std::string_view bytes) {
    const wasm::Digest digest = wasm::Digest::of(bytes);
    const std::unique_ptr<TemporaryDirectory> work = HANGAR_CO_TRY(TemporaryDirectory::make());
    wasm::PrivateFile input = HANGAR_CO_TRY(wasm::PrivateFile::open(work->path()));
    HANGAR_CO_TRY(input.write(0, std::as_bytes(std::span(bytes))));
    const fs::path made = work->path() / "code";
    HANGAR_CO_TRY(
        co_await wasm::compile(loop_, workers_, unnamed_consumer(),
                               {.program = config_.compiler,
                                .input = std::move(input),
                                .output = made,
                                .memory_bytes = limits::kCompileMemoryBytesMax,
                                .is_for_any_machine = options_.processor == CodeProcessor::Any,
                                .deadline = limits::kCompileMax},
                               std::stop_token()));
    co_return keep(digest, made);
  }

  // The signature is written last: until then a host takes the older code or none.
  [[nodiscard]] Result<> keep(const wasm::Digest& digest, const fs::path& made) const {
    const signatures::PrebuiltFiles files =
        signatures::PrebuiltFiles::of(options_.output, digest, target_);
    const std::string code = HANGAR_TRY(io::read_file(made, limits::kCompiledBytesMax));
    const std::string signature =
        HANGAR_TRY(schematics::sign_code({.module_sha256 = digest.to_hex(),
                                          .engine = target_.engine,
                                          .processor = target_.processor,
                                          .code_sha256 = sha256_hex(code)},
                                         key_));
    HANGAR_TRY(io::write_file(files.code, code));
    HANGAR_TRY(io::write_file(files.signature, signature));
    streams_.out(files.code.string() + "\n");
    return {};
  }

  const host::Config& config_;
  const BuildCodeOptions& options_;
  const Streams& streams_;
  const Log& log_;
  const schematics::PrivateKey key_;
  const wasm::CodeTarget target_;
  io::Loop loop_;
  io::Workers workers_;
  http::Client http_;
};

}  // namespace

Result<Finished> build_code(const host::Config& config, const BuildCodeOptions& options,
                            const Streams& streams, const Log& log) {
  if (options.modules.empty() && !options.with_interpreters) {
    return invalid("name a module, or give --interpreters");
  }
  const host::Config resolved = HANGAR_TRY(host::resolve(config));
  if (resolved.compiler.empty()) {
    return fail(ErrorKind::NotFound, "hangar-compile is missing: install it beside this program");
  }
  schematics::PrivateKey key = HANGAR_TRY(schematics::load_private_key(options.key));
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{}: {}", options.output.string(), error.message()));
  }
  HANGAR_TRY(CodeBuilder(resolved, options, streams, log, std::move(key)).build());
  return Finished{};
}

}  // namespace hangar::commands
