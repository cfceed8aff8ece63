// The parts for long-running guests besides modules: their contract, their API server, their
// storage.
#pragma once

#include "abi/kube_runtime/local_guest.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "domains/guest_processes.h"
#include "domains/remote_guests.h"
#include "gateway/gateway.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/fence.h"
#include "operators/carried_operator.h"
#include "operators/operator_modules.h"
#include "operators/outbound.h"
#include "tenants/rules.h"
#include "wasm/snapshot/snapshot_store.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hangar::host {

// The directory of the output of guests. `config` is resolved.
[[nodiscard]] std::filesystem::path log_directory(const Config& config);

// Whose operators a process runs. One user may use all of the space for sleeping guests; of many
// namespaces each has a part (DiskShares).
enum class Users : std::uint8_t { Namespaces, One };

// Directories and files, opened before any thread starts.
struct OperatorFiles {
  // Creates the directories of a resolved configuration. Denied when other users may write there.
  [[nodiscard]] static Result<OperatorFiles> open(const Config& config,
                                                  Users users = Users::Namespaces);
  // The same with the snapshots of a host that this process has replaced in place. Also Corrupt, if
  // they cannot be those of `fleet`; then its file is closed.
  [[nodiscard]] static Result<OperatorFiles> open_again(const Config& config,
                                                        operators::CarriedFleet& fleet);

  std::unique_ptr<wasm::SnapshotStore> snapshots;
};

struct OperatorParts {
  // The TenantPolicies of a namespace, combined; never null.
  using RulesOf = std::function<std::shared_ptr<const tenants::Rules>(const std::string&)>;
  // Without policies, operators reach no server besides the API server.
  [[nodiscard]] static std::shared_ptr<const tenants::Rules> no_policies(
      const std::string& namespace_name);

  // `streams`: see gateway::Gateway::Parts. `guest_processes`: null if guests live in this process.
  // `cache_memory`: for the objects of guests' watches.
  // `fence`: of `client`, for requests to other servers.
  OperatorParts(OperatorFiles files, const Config& config, io::Loop& loop, http::Client& http,
                RulesOf rules_of, const kube::Client& client, const kube::Client& streams,
                kube::Cache& cache, std::shared_ptr<budget::Accounts> cache_memory,
                kube::Discovery& discovery, ModuleSupply& supply,
                domains::GuestProcesses* guest_processes, operators::RunOnce run_once,
                Metrics& metrics, const Log& log, std::shared_ptr<const kube::Fence> fence = {});

  [[nodiscard]] abi::kube_runtime::Guests& guests();

  std::unique_ptr<wasm::SnapshotStore> snapshots;
  abi::kube_runtime::Runtime runtime;
  abi::kube_runtime::LocalGuests local_guests;
  const std::unique_ptr<domains::RemoteGuests> remote_guests;  // Null: no guest processes.
  gateway::Gateway gateway;
  operators::Outbound outbound;
  operators::OperatorModules modules;
};

}  // namespace hangar::host
