#include "commands/flight_runner.h"

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "abi/flight/question.h"
#include "airways/flight_modules.h"
#include "airways/ownership.h"
#include "base/consumer.h"
#include "base/limits.h"
#include "base/result.h"
#include "commands/offline_lookups.h"
#include "commands/shown_step.h"
#include "domains/guest_processes.h"
#include "host/config_maps.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/version.h"
#include "io/task.h"
#include "kube/client.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"
#include "signatures/module_verifier.h"
#include "wasm/module.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

io::Task<Result<RanFlight>> FlightRunner::run_module(FlightToRun flight, const kube::Client* client,
                                                     Work work, std::stop_token stop) {
  host::ModuleFiles files = HANGAR_CO_TRY(host::ModuleFiles::open(parts_.config, parts_.log));
  std::optional<host::ConfigMaps> config_maps;
  if (client != nullptr) config_maps.emplace(*client);
  host::ModuleSupply supply(std::move(files), parts_.config, parts_.loop, parts_.workers,
                            parts_.http, config_maps ? &*config_maps : nullptr,
                            host::FileModules::Allowed, parts_.log);
  HANGAR_CO_TRY(supply.code_cache.open());
  const std::unique_ptr<domains::GuestProcesses> guest_processes =
      host::make_guest_processes(parts_.config, std::exchange(zygote_, std::nullopt), supply.engine,
                                 parts_.metrics, parts_.log, domains::TellsOfWalls::No);
  HANGAR_CO_TRY(host::hide_from_guests(parts_.config));
  const abi::flight::Runtime runtime(supply.engine, guest_processes.get());
  modules::Sources sources = supply.sources;
  signatures::ModuleVerifier verifier({.loop = parts_.loop,
                                       .workers = parts_.workers,
                                       .program = parts_.config.compiler,
                                       .directory = parts_.config.module_cache_dir / "verified"});
  if (!flight.keys.empty()) {
    Result<schematics::PublicKeys> loaded = schematics::load_public_keys(flight.keys);
    if (!loaded)
      co_return std::unexpected(std::move(loaded).error().in("failed to load public keys from fs"));
    verifier.use(*std::move(loaded));
    sources.verifier = &verifier;
  }
  airways::FlightModules flight_modules(
      {.sources = std::move(sources), .code_cache = supply.code_cache, .runtime = runtime});
  std::optional<ShownStep> shown(std::in_place, parts_.loop, std::move(flight.show));
  const Result<airways::FlightModule> prepared = co_await flight_modules.prepare(
      {.requester = modules::Requester::cluster_wide(), .module = std::move(flight.module)}, stop,
      [&shown](const std::string& waits_for) { shown->is(waits_for); });
  shown.reset();
  co_await flight_modules.supply().stop();
  RanFlight ran{.module = HANGAR_CO_TRY(prepared)};
  Code code = HANGAR_CO_TRY(co_await flight_modules.load(ran.module, unnamed_consumer(), stop));
  ran.output = HANGAR_CO_TRY(co_await work(runtime, std::move(code)));
  co_return ran;
}

io::Task<Result<RanFlight>> FlightRunner::run(FlightToRun flight, const airways::Release& release,
                                              abi::flight::Lookups& lookups,
                                              const kube::Client* client, std::stop_token stop) {
  abi::flight::Evaluation evaluation{.release = release.name,
                                     .namespace_ = release.namespace_,
                                     .args = std::move(flight.args),
                                     .stdin_bytes = std::move(flight.stdin_bytes),
                                     .host_version = std::string(host::kVersion),
                                     .timeout = flight.timeout};
  if (flight.memory_mib_max > 0) {
    evaluation.memory_bytes_max = flight.memory_mib_max * limits::kMiB;
  }
  const Work work = [&](const abi::flight::Runtime& runtime, Code code) {
    return abi::flight::evaluate(runtime, std::move(code), std::move(evaluation), lookups, stop);
  };
  co_return co_await run_module(std::move(flight), client, work, stop);
}

io::Task<Result<abi::flight::Output>> FlightRunner::ask(modules::Source module,
                                                        std::vector<std::string> args,
                                                        std::stop_token stop) {
  OfflineLookups lookups;
  const Work work = [&](const abi::flight::Runtime& runtime, Code code) {
    return abi::flight::ask(runtime, std::move(code), {.args = std::move(args)}, lookups, stop);
  };
  RanFlight ran =
      HANGAR_CO_TRY(co_await run_module({.module = std::move(module)}, nullptr, work, stop));
  co_return std::move(ran.output);
}

}  // namespace hangar::commands
