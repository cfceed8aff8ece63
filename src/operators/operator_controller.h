// Keeps each Operator object's promise: what it describes runs in the fleet, and its status says
// how that goes.
//
// Guarantees:
//   - While a changed Operator is wrong or its module cannot be had, what ran before goes on, and
//     the Stalled or Ready condition says what is wrong.
//   - An Operator in whose namespace the host may not act does not run: its Stalled condition names
//     the remedy. One that ran before is ended.
//   - The same holds for one whose module or service account a TenantPolicy does not allow, and for
//     those beyond the number of Operators that one allows; the condition names the policy.
//   - A new module takes over only once it is there: fetched, verified, compiled. The guest before
//     it has ended then; the new one lists and watches, and so misses nothing.
//   - No reconcile waits for a module: the status says what is awaited, and other Operators are
//     started, changed and deleted meanwhile.
//   - Nothing is left of an Operator that was deleted. It needs no finalizer for that: it owns
//     nothing in the cluster.
// Loop thread only.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "operators/fleet.h"
#include "operators/operator.h"
#include "operators/operator_ages.h"
#include "operators/operator_modules.h"
#include "reconcile/custom_resource.h"
#include "reconcile/dependents.h"
#include "reconcile/platform.h"
#include "tenants/policies.h"
#include "wasm/digest.h"

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::operators {

class OperatorController {
 public:
  // Outlives this.
  struct Parts {
    const reconcile::Platform& platform;
    gateway::Gateway& gateway;
    OperatorModules& modules;
    const abi::kube_runtime::Runtime& runtime;
    wasm::SnapshotStore& snapshots;
    tenants::Policies& policies;
    output::LogWriter& output;
    recorder::Recorder* recorder = nullptr;  // Null: nothing is recorded.
    std::string pod = {};  // As the status says it: where to look for output. Empty: nowhere.
    std::uint64_t memory_budget_bytes = 0;
  };
  explicit OperatorController(const Parts& parts);
  OperatorController(const OperatorController&) = delete;
  OperatorController& operator=(const OperatorController&) = delete;
  ~OperatorController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return operators_.is_synced(); }

  [[nodiscard]] const Fleet& fleet() const { return fleet_; }

  struct Count {
    std::uint64_t all = 0;    // Operators, whether they run or not.
    std::uint64_t awake = 0;  // Running, and in memory.
    std::uint64_t asleep = 0;
  };
  // By namespaces that have any.
  [[nodiscard]] std::map<std::string, Count> counts() const;

 private:
  // What the host remembers of one Operator between reconciles.
  struct Memory {
    std::int64_t generation = 0;         // Of what runs.
    std::string uid;                     // The same.
    std::optional<wasm::Digest> module;  // The same.
    std::optional<Phase> written;        // By the last write of the status.
    modules::Asking asking;              // For the module.
    bool has_sleep_problem = false;      // An Event said so.
    bool waits_for_memory = false;       // The status says so, or is about to.
  };

  [[nodiscard]] io::Task<Result<reconcile::Outcome>> reconcile(kube::ObjectPtr object,
                                                               std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);
  [[nodiscard]] io::Task<Result<>> establish(const json::Value& manifest, Memory& memory,
                                             std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> write_status(const json::Value& manifest, Memory& memory,
                                                const Result<>& established, std::stop_token stop);
  void forget_output();
  void on_operator(const kube::Delta& delta);
  // Looks at all Operators of a namespace again, or at all there are where it is empty.
  void look_again(const std::string& namespace_name);
  // Ends what runs and may not any more. It begins anew once it may.
  [[nodiscard]] io::Task<void> end(const Operator& spec, Memory& memory);
  [[nodiscard]] io::Task<Result<>> check_policies(const Operator& spec, const tenants::Rules& rules,
                                                  Memory& memory);
  // Ends what runs when the host may not act as its service account any more.
  [[nodiscard]] io::Task<Result<>> check_rights(const Operator& spec, Memory& memory,
                                                std::stop_token stop);
  [[nodiscard]] std::optional<OperatorModule> ask_for_module(const Operator& spec,
                                                             const tenants::Rules& rules,
                                                             Memory& memory);
  // It asks for no module any more.
  void leave_module(const kube::ObjectKey& key, Memory& memory);
  // Hears of it when the ConfigMap that the module is in changes.
  void follow_module(const Operator& spec);
  void on_module_changed(const kube::ObjectKey& key);
  void on_change(const RunningOperator& changed);
  void on_failure(const RunningOperator& failed, const Error& error);
  // As an Event, once when it begins and once when it is over; whether it did either.
  bool tell_sleep_problem(const RunningOperator& changed, Memory& memory);
  [[nodiscard]] Duration status_interval() const;

  const Parts parts_;
  const reconcile::Platform& platform_;
  const Log log_;
  Fleet fleet_;
  std::map<kube::ObjectKey, Memory> memory_;
  OperatorAges ages_;
  reconcile::Dependents<kube::ObjectKey> config_maps_;  // Those with modules.
  reconcile::CustomResource operators_;
};

}  // namespace hangar::operators
