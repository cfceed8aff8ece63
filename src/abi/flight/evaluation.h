// The flight contract: a program that reads a custom resource and prints the resources it stands
// for. docs/abi/flight.md has it in full.
//
// A flight is a WASI command. Its arguments are the release's name and what follows; its
// environment has YOKE_RELEASE, YOKE_NAMESPACE, NAMESPACE, YOKE_VERSION and HANGAR_VERSION; it
// reads its input from stdin, prints resources to stdout, and exits with zero when they are good.
// What the output means is decided elsewhere.
//
// A converter belongs to the same contract: it translates instances between the versions of their
// kind. Its only argument is "converter" and it has no environment; it reads a ConversionReview
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
  std::string host_version;  // HANGAR_VERSION: what the host calls itself.
  // Zero: the contract's default of 10 s. Negative: none.
  std::chrono::nanoseconds timeout{0};
  // Of linear memory; rounded down to whole pages by what can be grown.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  // For whom: whose share of the workers it uses.
  budget::Consumer consumer = budget::unnamed_consumer();
};

struct Conversion {
  std::string stdin_bytes;
  std::chrono::nanoseconds timeout{0};  // As of Evaluation; as are the others.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  budget::Consumer consumer = budget::unnamed_consumer();
};

// What flights get from the host, made once per engine. Outlives its evaluations; gone before the
// engine.
class Runtime {
 public:
  // `elsewhere`: where they run in place of this process; null: here. Outlives this.
  // `add_functions`: what flights may import beside the contract.
  using AddFunctions = std::function<void(wasm::HostFunctions&)>;
  explicit Runtime(wasm::Engine& engine, CommandRunner* elsewhere = nullptr,
                   const AddFunctions& add_functions = {});

  // InvalidInput, naming what is wrong, when `module` cannot be a flight: it imports what flights
  // do not get, or exports no _start. Any thread.
  [[nodiscard]] Result<> check(const wasm::Module& module) const;
  // The same for a converter, which gets WASI and nothing else.
  [[nodiscard]] Result<> check_converter(const wasm::Module& module) const;

  [[nodiscard]] wasm::Engine& engine() const { return engine_; }
  [[nodiscard]] CommandRunner* elsewhere() const { return elsewhere_; }
  [[nodiscard]] const wasm::HostFunctions& functions() const { return functions_; }
  [[nodiscard]] const wasm::HostFunctions& converter_functions() const {
    return converter_functions_;
  }

 private:
  wasm::Engine& engine_;
  CommandRunner* const elsewhere_;
  wasm::HostFunctions functions_;
  wasm::HostFunctions converter_functions_;
};

// Runs `module` once. An exit code other than zero is an Output. Errors: InvalidInput as
// Runtime::check; GuestFault when it trapped, with a backtrace; LimitExceeded when its time was
// over
// ("module closed with context deadline exceeded: execution timeout (30ms) exceeded") or it printed
// too much; Cancelled. `runtime` and `lookups` live until the task ends. Loop thread.
[[nodiscard]] io::Task<Result<Output>> evaluate(const Runtime& runtime,
                                                std::shared_ptr<const wasm::Module> module,
                                                Evaluation evaluation, Lookups& lookups,
                                                std::stop_token stop);

// Runs `command` in this process, wherever evaluate() would. For who has been given it by another
// process; `ask_memory` as wasm::RunLimits has it.
[[nodiscard]] io::Task<Result<Output>> run_here(const Runtime& runtime,
                                                std::shared_ptr<const wasm::Module> module,
                                                Command command, Lookups* lookups,
                                                wasm::AskMemory ask_memory, std::stop_token stop);

// Runs a converter once. Results and errors as of evaluate().
[[nodiscard]] io::Task<Result<Output>> convert(const Runtime& runtime,
                                               std::shared_ptr<const wasm::Module> module,
                                               Conversion conversion, std::stop_token stop);

}  // namespace hangar::abi::flight
