#include "host/guest_parts.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/config.h"
#include "sandbox/process.h"
#include "wasm/engine.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace hangar::host {

namespace {

// A process for all guests has as many threads as the host. If each namespace has a process, each
// has its own threads, which count for the container's limit of processes: 32 processes with a
// thread for each of 64 cores would have 2,000.
constexpr std::uint32_t kThreadsOfOneOfManyMax = 8;

domains::Isolation isolation_of(const Config& config) {
  return config.guest_isolation.value_or(domains::Isolation::None);
}

std::uint32_t threads_of_each(const Config& config) {
  return isolation_of(config) == domains::Isolation::Namespace
             ? std::min(config.guest_threads, kThreadsOfOneOfManyMax)
             : config.guest_threads;
}

}  // namespace

bool runs_guests(const Config& config) {
  return config.has(Feature::Airways) || config.has(Feature::Flights) ||
         config.has(Feature::Operators) || config.has(Feature::Workflows);
}

Result<std::optional<domains::ZygoteProcess>> start_zygote(const Config& config) {
  std::optional<domains::ZygoteProcess> zygote;
  if (isolation_of(config) != domains::Isolation::None) {
    zygote.emplace(HANGAR_TRY(domains::ZygoteProcess::start(config.guest_program)));
  }
  return zygote;
}

Result<std::optional<domains::ZygoteProcess>> start_host_zygote(const Config& config) {
  if (!runs_guests(config)) return std::nullopt;
  return start_zygote(config);
}

Result<> hide_from_guests(const Config& config) {
  return isolation_of(config) == domains::Isolation::None ? Result<>() : sandbox::hide_memory();
}

std::unique_ptr<domains::GuestProcesses> make_guest_processes(
    const Config& config, std::optional<domains::ZygoteProcess> zygote, wasm::Engine& engine,
    Metrics& metrics, Log log, domains::TellsOfWalls tells) {
  if (!zygote) return nullptr;
  return std::make_unique<domains::GuestProcesses>(
      domains::GuestProcesses::Parts{.engine = engine, .metrics = metrics, .log = std::move(log)},
      domains::GuestProcesses::Options{.program = config.guest_program,
                                       .isolation = isolation_of(config),
                                       .thread_count = threads_of_each(config),
                                       .tells_of_walls = tells},
      std::move(zygote));
}

}  // namespace hangar::host
