#include "host/operator_parts.h"

#include "host/output_logs.h"
#include "io/file.h"

#include <utility>

namespace hangar::host {

namespace {

// Unlinked files of this process: nothing in here is worth more than the process.
std::filesystem::path snapshot_directory(const Config& config) {
  return config.module_cache_dir / "snapshots";
}

}  // namespace

Result<OperatorFiles> OperatorFiles::open(const Config& config,
                                          wasm::SnapshotStore::Limits snapshots) {
  HANGAR_TRY(io::make_private_directory(log_directory(config)));
  HANGAR_TRY(io::make_private_directory(snapshot_directory(config)));
  OperatorFiles files;
  files.snapshots = HANGAR_TRY(wasm::SnapshotStore::open(snapshot_directory(config), snapshots));
  return files;
}

OperatorParts::OperatorParts(OperatorFiles files, const Config& config, io::Loop& loop,
                             const kube::Client& client, kube::Cache& cache,
                             kube::Discovery& discovery, ModuleSupply& supply,
                             operators::RunOnce run_once, Metrics& metrics, const Log& log)
    : snapshots(std::move(files.snapshots)),
      runtime(supply.engine),
      gateway({.loop = loop,
               .client = client,
               .cache = cache,
               .discovery = discovery,
               .metrics = metrics,
               .log = log.named("gateway")}),
      modules({.sources = supply.sources,
               .code_cache = supply.code_cache,
               .runtime = runtime,
               .image_directory = snapshot_directory(config),
               .run_once = run_once}) {}

}  // namespace hangar::host
