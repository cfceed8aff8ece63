// The flight contract: a program reads a custom resource and prints the resources that the custom
// resource stands for. docs/abi/flight.md describes it in full.
//
// A flight is a WASI command. Its arguments are the release's name and further ones. Its
// environment has YOKE_RELEASE, YOKE_NAMESPACE, NAMESPACE, YOKE_VERSION and HANGAR_VERSION. It
// reads its input from stdin, prints resources to stdout, and exits with zero on success. Other
// code interprets the output.
//
// A converter belongs to the same contract: it translates instances between the versions of their
// kind. Its only argument is "converter" and it has no environment. It reads a ConversionReview
// (apiextensions.k8s.io/v1) from stdin and prints the same with a response.
#pragma once

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::flight {

// YOKE_VERSION: the release of yoke whose contract this is (the one that atc v0.19.11 belongs to).
// Published flights compare it as a semantic version, which needs the "v", and refuse hosts that
// are too old for them; hangar's own version would say nothing about the contract.
inline constexpr std::string_view kContractVersion = "v0.20.12";

struct Evaluation {
  std::string release;
  std::string namespace_;
  std::vector<std::string> args;  // After the release's name.
  std::string stdin_bytes;
  std::string host_version;  // HANGAR_VERSION: the version of the host itself.
  // Further variables, as "NAME=value". A variable with a name of the contract is ignored.
  std::vector<std::string> environment = {};
  // Zero: the contract's default of 10 s. Negative: no limit.
  std::chrono::nanoseconds timeout{0};
  // The bound of linear memory; memory grows in whole pages, so the bound is rounded down to pages.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  // On whose behalf it runs: it uses this consumer's share of the workers.
  budget::Consumer consumer = budget::unnamed_consumer();
};

struct Conversion {
  std::string stdin_bytes;
  std::chrono::nanoseconds timeout{0};  // As in Evaluation; so are the others.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  budget::Consumer consumer = budget::unnamed_consumer();
};

// The host functions of flights, made once per engine. Outlives its evaluations; destroyed before
// the engine.
class Runtime {
 public:
  // `elsewhere`: runs the commands outside this process; null: they run here. Outlives this object.
  // `add_functions`: adds imports to those of the contract.
  using AddFunctions = std::function<void(wasm::HostFunctions&)>;
  explicit Runtime(wasm::Engine& engine, CommandRunner* elsewhere = nullptr);
  // With functions that were made before the engine, from its parts.
  struct Functions {
    std::shared_ptr<const wasm::HostFunctions> of_flights;
    std::shared_ptr<const wasm::HostFunctions> of_converters;
  };
  Runtime(wasm::Engine& engine, CommandRunner* elsewhere, Functions functions);
  [[nodiscard]] static Functions make_functions(const wasm::EngineParts& parts,
                                                const AddFunctions& add_functions = {});

  // InvalidInput, with the reason, when `module` cannot be a flight: it imports functions that
  // flights do not get, or exports no _start. Any thread.
  [[nodiscard]] Result<> check(const wasm::Module& module) const;
  // The same for a converter, which may import WASI only.
  [[nodiscard]] Result<> check_converter(const wasm::Module& module) const;

  [[nodiscard]] wasm::Engine& engine() const { return engine_; }
  [[nodiscard]] CommandRunner* elsewhere() const { return elsewhere_; }
  [[nodiscard]] const wasm::HostFunctions& functions() const { return *functions_.of_flights; }
  [[nodiscard]] const wasm::HostFunctions& converter_functions() const {
    return *functions_.of_converters;
  }

 private:
  wasm::Engine& engine_;
  CommandRunner* const elsewhere_;
  Functions functions_;
};

// Runs `module` once. An exit code other than zero is an Output. Errors: InvalidInput as for
// Runtime::check; GuestFault when it trapped, with a backtrace; LimitExceeded when it exceeded its
// time ("module closed with context deadline exceeded: execution timeout (30ms) exceeded") or
// printed too much; Cancelled. `runtime` and `lookups` outlive the task. Loop thread.
[[nodiscard]] io::Task<Result<Output>> evaluate(const Runtime& runtime,
                                                std::shared_ptr<const wasm::Module> module,
                                                Evaluation evaluation, Lookups& lookups,
                                                std::stop_token stop);

// Runs `command` in this process, even where evaluate() would not: for a process to which another
// one has delegated the run. `ask_memory`: as in wasm::RunLimits.
[[nodiscard]] io::Task<Result<Output>> run_here(const Runtime& runtime,
                                                std::shared_ptr<const wasm::Module> module,
                                                Command command, Lookups* lookups,
                                                wasm::AskMemory ask_memory, std::stop_token stop);

// Runs a program that may import WASI only and makes no lookups: converters, and the host's own
// programs. Results and errors as for evaluate(), with check_converter(). `command.role` is
// ignored.
[[nodiscard]] io::Task<Result<Output>> run_without_lookups(
    const Runtime& runtime, std::shared_ptr<const wasm::Module> module, Command command,
    std::stop_token stop);

// Runs a converter once. Results and errors as for evaluate().
[[nodiscard]] io::Task<Result<Output>> convert(const Runtime& runtime,
                                               std::shared_ptr<const wasm::Module> module,
                                               Conversion conversion, std::stop_token stop);

}  // namespace hangar::abi::flight
