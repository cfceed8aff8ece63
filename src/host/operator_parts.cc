#include "host/operator_parts.h"

#include "base/limits.h"
#include "budget/accounts.h"
#include "budget/container_memory.h"
#include "domains/guest_processes.h"
#include "domains/remote_guests.h"
#include "host/disk_shares.h"
#include "host/output_logs.h"
#include "io/file.h"
#include "kube/fence.h"
#include "tenants/rules.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace hangar::host {

namespace {

// Holds unlinked files of this process: snapshots need not outlive it.
std::filesystem::path snapshot_directory(const Config& config) {
  return config.module_cache_dir / "snapshots";
}

// Assured to each namespace: enough for the answers of modest guests, however much other
// namespaces hold.
constexpr std::uint64_t kTenantAssured = limits::kMiB;

}  // namespace

budget::Accounts::Limits answer_memory_limits() {
  // Answers and cached objects get three eighths of the host's share each; the rest is for its own
  // work. Two namespaces fill it, one does not.
  const std::uint64_t own = budget::host_memory_max();
  return {.host_bytes_max = 3 * own / 8,
          .tenant_bytes_max = own / 4,
          .tenant_bytes_assured = kTenantAssured};
}

Result<OperatorFiles> OperatorFiles::open(const Config& config, Users users) {
  HANGAR_TRY(io::make_private_directory(log_directory(config)));
  HANGAR_TRY(io::make_private_directory(snapshot_directory(config)));
  OperatorFiles files;
  const DiskShares shares = disk_shares(config);
  const std::uint64_t of_one = users == Users::One ? shares.snapshots : shares.snapshots_of_one;
  files.snapshots = HANGAR_TRY(
      wasm::SnapshotStore::open(snapshot_directory(config),
                                {.file_bytes_max = shares.snapshots, .tenant_bytes_max = of_one}));
  return files;
}

std::shared_ptr<const tenants::Rules> OperatorParts::no_policies(
    const std::string& /*namespace_name*/) {
  return std::make_shared<const tenants::Rules>();
}

OperatorParts::OperatorParts(OperatorFiles files, const Config& config, io::Loop& loop,
                             http::Client& http, RulesOf rules_of, const kube::Client& client,
                             const kube::Client& streams, kube::Cache& cache,
                             std::shared_ptr<budget::Accounts> cache_memory,
                             kube::Discovery& discovery, ModuleSupply& supply,
                             domains::GuestProcesses* guest_processes, operators::RunOnce run_once,
                             Metrics& metrics, const Log& log,
                             std::shared_ptr<const kube::Fence> fence)
    : snapshots(std::move(files.snapshots)),
      runtime(supply.engine),
      local_guests(runtime, *snapshots),
      remote_guests(guest_processes == nullptr
                        ? nullptr
                        : std::make_unique<domains::RemoteGuests>(*guest_processes, *snapshots)),
      gateway({.loop = loop,
               .client = client,
               .cache = cache,
               .discovery = discovery,
               .metrics = metrics,
               .log = log.named("gateway"),
               .feed_memory = std::move(cache_memory),
               .streams = &streams,
               .rates = &supply.rates}),
      outbound({.loop = loop,
                .client = http,
                .metrics = metrics,
                .rules_of = std::move(rules_of),
                .addresses = config.outbound_addresses,
                .fence = std::move(fence)}),
      modules({.sources = supply.sources,
               .code_cache = supply.code_cache,
               .runtime = runtime,
               .image_directory = snapshot_directory(config),
               .run_once = run_once}) {}

abi::kube_runtime::Guests& OperatorParts::guests() {
  if (remote_guests) return *remote_guests;
  return local_guests;
}

}  // namespace hangar::host
