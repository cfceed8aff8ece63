#include "host/operator_parts.h"

#include "budget/accounts.h"
#include "domains/guest_processes.h"
#include "domains/remote_guests.h"
#include "host/disk_shares.h"
#include "io/file.h"
#include "kube/fence.h"
#include "tenants/rules.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

// Holds unlinked files of this process: snapshots need not outlive it.
std::filesystem::path snapshot_directory(const Config& config) {
  return config.module_cache_dir / "snapshots";
}

Result<> make_directories(const Config& config) {
  HANGAR_TRY(io::make_private_directory(log_directory(config)));
  return io::make_private_directory(snapshot_directory(config));
}

wasm::SnapshotStore::Limits limits_of(const Config& config, Users users) {
  const DiskShares shares = disk_shares(config);
  return {.file_bytes_max = shares.snapshots,
          .tenant_bytes_max = users == Users::One ? shares.snapshots : shares.snapshots_of_one};
}

}  // namespace

std::filesystem::path log_directory(const Config& config) {
  return config.module_cache_dir / "logs";
}

Result<OperatorFiles> OperatorFiles::open(const Config& config, Users users) {
  HANGAR_TRY(make_directories(config));
  OperatorFiles files;
  files.snapshots =
      HANGAR_TRY(wasm::SnapshotStore::open(snapshot_directory(config), limits_of(config, users)));
  return files;
}

Result<OperatorFiles> OperatorFiles::open_again(const Config& config,
                                                operators::CarriedFleet& fleet) {
  HANGAR_TRY(make_directories(config));
  std::vector<wasm::SnapshotStore::Extent> kept;
  for (const operators::CarriedOperator& carried : fleet.operators) {
    kept.push_back(
        {.offset = carried.guest.snapshot_offset, .size_bytes = carried.guest.snapshot_bytes});
  }
  OperatorFiles files;
  files.snapshots = HANGAR_TRY(wasm::SnapshotStore::open_again(
      snapshot_directory(config), limits_of(config, Users::Namespaces), std::move(fleet.snapshots),
      std::move(kept)));
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
