// What long-running guests need besides modules: their contract, their API server, their place on
// disk.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "gateway/gateway.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "operators/operator_modules.h"
#include "wasm/snapshot/snapshot_store.h"

#include <filesystem>
#include <memory>

namespace hangar::host {

// What the host's share of memory allows for the answers that wait for guests. Blocks.
[[nodiscard]] budget::Accounts::Limits answer_memory_limits();

// What is on disk, opened before any thread starts.
struct OperatorFiles {
  // Makes the directories of a resolved configuration. Denied when others may write there.
  [[nodiscard]] static Result<OperatorFiles> open(const Config& config,
                                                  wasm::SnapshotStore::Limits snapshots = {});

  std::unique_ptr<wasm::SnapshotStore> snapshots;
};

struct OperatorParts {
  OperatorParts(OperatorFiles files, const Config& config, io::Loop& loop,
                const kube::Client& client, kube::Cache& cache, kube::Discovery& discovery,
                ModuleSupply& supply, operators::RunOnce run_once, Metrics& metrics,
                const Log& log);

  std::unique_ptr<wasm::SnapshotStore> snapshots;
  abi::kube_runtime::Runtime runtime;
  gateway::Gateway gateway;
  operators::OperatorModules modules;
};

}  // namespace hangar::host
