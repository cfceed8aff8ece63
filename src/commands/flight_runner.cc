#include "commands/flight_runner.h"

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/flight_modules.h"
#include "airways/ownership.h"
#include "base/limits.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "host/config_maps.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/version.h"
#include "io/task.h"
#include "kube/client.h"
#include "modules/requester.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::commands {

io::Task<Result<RanFlight>> FlightRunner::run(FlightToRun flight, const airways::Release& release,
                                              abi::flight::Lookups& lookups,
                                              const kube::Client* client, std::stop_token stop) {
  host::ModuleFiles files = HANGAR_CO_TRY(host::ModuleFiles::open(parts_.config, parts_.log));
  std::optional<host::ConfigMaps> config_maps;
  if (client != nullptr) config_maps.emplace(*client);
  host::ModuleSupply supply(std::move(files), parts_.config, parts_.loop, parts_.workers,
                            parts_.http, config_maps ? &*config_maps : nullptr,
                            host::FileModules::Allowed, parts_.log);
  HANGAR_CO_TRY(supply.code_cache.open());
  const std::unique_ptr<domains::GuestProcesses> guest_processes =
      host::make_guest_processes(parts_.config, std::exchange(zygote_, std::nullopt), supply.engine,
                                 parts_.metrics, parts_.log);
  HANGAR_CO_TRY(host::hide_from_guests(parts_.config));
  const abi::flight::Runtime runtime(supply.engine, guest_processes.get());
  airways::FlightModules flight_modules(
      {.sources = supply.sources, .code_cache = supply.code_cache, .runtime = runtime});
  const Result<airways::FlightModule> prepared = co_await flight_modules.prepare(
      modules::Requester::cluster_wide(), std::move(flight.module), stop);
  co_await flight_modules.supply().stop();
  RanFlight ran{.module = HANGAR_CO_TRY(prepared)};
  std::shared_ptr<const wasm::Module> code =
      HANGAR_CO_TRY(co_await flight_modules.load(ran.module, stop));

  abi::flight::Evaluation evaluation{.release = release.name,
                                     .namespace_ = release.namespace_,
                                     .args = std::move(flight.args),
                                     .stdin_bytes = std::move(flight.stdin_bytes),
                                     .host_version = std::string(host::kVersion),
                                     .timeout = flight.timeout};
  if (flight.memory_mib_max > 0) {
    evaluation.memory_bytes_max = flight.memory_mib_max * limits::kMiB;
  }
  ran.output = HANGAR_CO_TRY(co_await abi::flight::evaluate(runtime, std::move(code),
                                                            std::move(evaluation), lookups, stop));
  co_return ran;
}

}  // namespace hangar::commands
