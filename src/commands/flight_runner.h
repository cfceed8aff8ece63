// Runs a flight for a person: fetches, compiles and evaluates it once, without a host.
#pragma once

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/flight_modules.h"
#include "airways/ownership.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "commands/streams.h"
#include "domains/zygote.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/client.h"
#include "modules/supply.h"
#include "wasm/module.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

struct FlightToRun {
  modules::Source module;  // A URL or a file, as in an Airway.
  std::vector<std::string> args = {};
  std::string stdin_bytes = {};
  std::chrono::nanoseconds timeout{0};  // Zero: 10 s.
  std::uint64_t memory_mib_max = 0;     // Zero: the host's default.
  // For schematics::load_public_keys: one of these keys must have signed the module. Empty: no
  // signature is required.
  std::filesystem::path keys = {};
  // Receives the step that a person is waiting for until the module is loaded, and an empty text
  // afterwards.
  Say show = {};
};

struct RanFlight {
  abi::flight::Output output;
  airways::FlightModule module;
};

// Loop thread only.
class FlightRunner {
 public:
  // `config` is resolved. All references must outlive this object.
  struct Parts {
    const host::Config& config;
    io::Loop& loop;
    io::Workers& workers;
    http::Client& http;
    Metrics& metrics;
    const Log& log;
  };
  // `zygote`: from host::start_zygote(), which must be called before a credential is read.
  FlightRunner(const Parts& parts, std::optional<domains::ZygoteProcess> zygote)
      : parts_(parts), zygote_(std::move(zygote)) {}

  // `client`: for modules in ConfigMaps; null: refuse those. Call it once. References must outlive
  // the task. Errors: those of abi::flight::evaluate and airways::FlightModules.
  [[nodiscard]] io::Task<Result<RanFlight>> run(FlightToRun flight, const airways::Release& release,
                                                abi::flight::Lookups& lookups,
                                                const kube::Client* client, std::stop_token stop);
  // Runs a module offline with these arguments, for the metadata that it prints about itself. Call
  // it instead of run().
  [[nodiscard]] io::Task<Result<abi::flight::Output>> ask(modules::Source module,
                                                          std::vector<std::string> args,
                                                          std::stop_token stop);

 private:
  using Code = std::shared_ptr<const wasm::Module>;
  using Work = std::function<io::Task<Result<abi::flight::Output>>(
      const abi::flight::Runtime& runtime, Code code)>;
  // Of the flight, only `module`, `keys` and `show` are used.
  [[nodiscard]] io::Task<Result<RanFlight>> run_module(FlightToRun flight,
                                                       const kube::Client* client, Work work,
                                                       std::stop_token stop);

  const Parts parts_;
  std::optional<domains::ZygoteProcess> zygote_;
};

}  // namespace hangar::commands
