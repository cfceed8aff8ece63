// The parts for long-running guests besides modules: their contract, their API server, their
// storage.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "gateway/gateway.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "operators/operator_modules.h"
#include "operators/outbound.h"
#include "tenants/rules.h"
#include "wasm/snapshot/snapshot_store.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hangar::host {

// Limits for the answers that wait for guests, from the host's share of memory. Blocks.
[[nodiscard]] budget::Accounts::Limits answer_memory_limits();

// The same for the objects that watches of guests make the host hold.
[[nodiscard]] budget::Accounts::Limits feed_memory_limits();

// Directories and files, opened before any thread starts.
struct OperatorFiles {
  // Creates the directories of a resolved configuration. Denied when other users may write there.
  [[nodiscard]] static Result<OperatorFiles> open(const Config& config,
                                                  wasm::SnapshotStore::Limits snapshots = {});

  std::unique_ptr<wasm::SnapshotStore> snapshots;
};

struct OperatorParts {
  // The TenantPolicies of a namespace, combined; never null.
  using RulesOf = std::function<std::shared_ptr<const tenants::Rules>(const std::string&)>;
  // Without policies, operators reach no server besides the API server.
  [[nodiscard]] static std::shared_ptr<const tenants::Rules> no_policies(
      const std::string& namespace_name);

  OperatorParts(OperatorFiles files, const Config& config, io::Loop& loop, http::Client& http,
                RulesOf rules_of, const kube::Client& client, kube::Cache& cache,
                kube::Discovery& discovery, ModuleSupply& supply, operators::RunOnce run_once,
                Metrics& metrics, const Log& log);

  std::unique_ptr<wasm::SnapshotStore> snapshots;
  abi::kube_runtime::Runtime runtime;
  gateway::Gateway gateway;
  operators::Outbound outbound;
  operators::OperatorModules modules;
};

}  // namespace hangar::host
