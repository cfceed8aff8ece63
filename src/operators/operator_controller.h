// Reconciles Operators: runs what each object describes in the fleet, and writes its status.
//
// Guarantees:
//   - While a changed Operator is invalid or its module cannot be fetched, the earlier guest
//     continues, and the Stalled or Ready condition gives the reason.
//   - An Operator does not run in a namespace where the host may not act: its Stalled condition
//     names the remedy. If it ran before, it is stopped.
//   - The same holds for an Operator whose module or service account a TenantPolicy does not allow,
//     and for Operators beyond the number that a policy allows; the condition names the policy. An
//     earlier guest that a policy does not allow is stopped, too, and an Event names the policy.
//   - A new module takes over only when it has been fetched, verified and compiled. The earlier
//     guest has ended by then; the new one lists and watches, and so misses nothing.
//   - No reconcile waits for a module: the status names what is awaited, and meanwhile other
//     Operators are started, changed and deleted.
//   - Nothing is left of a deleted Operator. It owns nothing in the cluster, so it needs no
//     finalizer. Webhook configurations that it named stay as they are.
// Loop thread only.
#pragma once

#include "admission/webhooks.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/pressure_watch.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "operators/carried_operator.h"
#include "operators/fleet.h"
#include "operators/operator.h"
#include "operators/operator_ages.h"
#include "operators/operator_modules.h"
#include "operators/operator_reviews.h"
#include "operators/outbound.h"
#include "operators/webhook_configurations.h"
#include "reconcile/custom_resource.h"
#include "reconcile/dependents.h"
#include "reconcile/platform.h"
#include "tenants/policies.h"
#include "wasm/digest.h"
#include "wasm/snapshot/snapshot_store.h"

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::operators {

class OperatorController {
 public:
  // All of it outlives this.
  struct Parts {
    const reconcile::Platform& platform;
    gateway::Gateway& gateway;
    Outbound& outbound;
    OperatorModules& modules;
    wasm::Engine& engine;  // See RunningOperator::Parts.
    budget::PressureWatch& pressure;
    abi::kube_runtime::Guests& guests;
    wasm::SnapshotStore* snapshots = nullptr;  // See Fleet::Parts.
    tenants::Policies& policies;
    admission::Webhooks& webhooks;
    output::LogWriter& output;
    recorder::Recorder* recorder = nullptr;  // Null: nothing is recorded.
    std::string pod = {};  // The status names it as the place of the output. Empty: none.
    std::uint64_t memory_budget_bytes = 0;
    budget::Accounts::Limits answers = {};  // See Fleet::Parts.
    // Sleeping operators of the host that this process has replaced. Each is taken over when its
    // object is established, if it fits.
    CarriedFleet carried = {};
  };
  explicit OperatorController(Parts parts);
  OperatorController(const OperatorController&) = delete;
  OperatorController& operator=(const OperatorController&) = delete;
  ~OperatorController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  // Before stop(): as Fleet::carry(), with those that have not been taken over yet.
  [[nodiscard]] io::Task<CarriedFleet> carry(Duration within);
  [[nodiscard]] bool is_synced() const { return operators_.is_synced(); }

  [[nodiscard]] const Fleet& fleet() const { return fleet_; }

  struct Count {
    std::uint64_t all = 0;    // All Operators, running or not.
    std::uint64_t awake = 0;  // Running, and in memory.
    std::uint64_t asleep = 0;
  };
  // By namespace; only namespaces that have any.
  [[nodiscard]] std::map<std::string, Count> counts() const;

 private:
  // The host's memory of one Operator between reconciles.
  struct Memory {
    std::int64_t generation = 0;         // Of the running guest.
    std::string uid;                     // The same.
    std::optional<wasm::Digest> module;  // The same.
    std::optional<Phase> written;        // By the last write of the status.
    Instant written_at;                  // The same.
    // When figures of the status are written that have changed since; nothing: none have.
    std::optional<Instant> figures_due;
    modules::Asking asking;          // For the module.
    bool has_sleep_problem = false;  // An Event has reported one.
    bool are_webhooks_read = false;
    std::string webhook_problem;  // The one that an Event has reported last; empty: none.
    std::string record_problem;   // The same.
  };

  [[nodiscard]] io::Task<Result<reconcile::Outcome>> reconcile(kube::ObjectPtr object,
                                                               std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);
  [[nodiscard]] io::Task<Result<>> establish(const json::Value& manifest, Memory& memory,
                                             std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> write_status(const json::Value& manifest, Memory& memory,
                                                const Result<>& established, std::stop_token stop);
  void on_synced();
  void on_operator(const kube::Delta& delta);
  // Enqueues all Operators of a namespace; an empty name: all.
  void look_again(const std::string& namespace_name);
  // Runs an operator: takes it over from the host before this one if it can.
  [[nodiscard]] io::Task<void> begin(Operator spec, OperatorModule module);
  void tell_started_anew(const kube::ObjectKey& key, const std::string& why);
  // What the host before this one has left of the operator is not needed.
  void drop_carried(const kube::ObjectKey& key);
  [[nodiscard]] io::Task<void> stop_reconciling();
  // Ends an operator that may no longer run. It starts anew once it may.
  [[nodiscard]] io::Task<void> end(const Operator& spec, Memory& memory);
  [[nodiscard]] io::Task<Result<>> check_policies(const Operator& spec, const tenants::Rules& rules,
                                                  Memory& memory);
  // Ends the guest of an earlier spec if the policies do not allow it. `named`: the source that the
  // present spec names.
  [[nodiscard]] io::Task<void> end_refused(kube::ObjectKey key, modules::Source named,
                                           const tenants::Rules& rules, Memory& memory);
  // Ends the operator if the host may no longer act as its service account.
  [[nodiscard]] io::Task<Result<>> check_rights(const Operator& spec, Memory& memory,
                                                std::stop_token stop);
  [[nodiscard]] std::optional<OperatorModule> ask_for_module(const Operator& spec,
                                                             const tenants::Rules& rules,
                                                             Memory& memory);
  // The operator no longer asks for a module.
  void leave_module(const kube::ObjectKey& key, Memory& memory);
  // Watches the ConfigMap that holds the module.
  void follow_module(const Operator& spec);
  void on_module_changed(const kube::ObjectKey& key);
  void on_change(const RunningOperator& changed);
  void on_failure(const RunningOperator& failed, const Error& error);
  void tell_webhook_problem(const kube::ObjectKey& key, Memory& memory);
  // Nothing: bodies of the operator are recorded, or it does not ask for that.
  [[nodiscard]] std::optional<Error> record_problem(const std::string& namespace_name,
                                                    Recording asked) const;
  void tell_record_problem(const Operator& spec, Memory& memory);
  void on_bound(const RunningOperator& refused, const std::string& message);
  // OperatorReviews::Knowledge.
  [[nodiscard]] bool may_answer_later(const kube::ObjectKey& key) const;
  [[nodiscard]] bool are_webhooks_read(const kube::ObjectKey& key) const;
  // Writes one Event when the problem begins and one when it ends. Returns whether it wrote one.
  bool tell_sleep_problem(const RunningOperator& changed, Memory& memory);
  [[nodiscard]] Duration status_interval() const;

  Parts parts_;  // Without what was carried.
  const reconcile::Platform& platform_;
  const Log log_;
  Fleet fleet_;
  std::map<kube::ObjectKey, Memory> memory_;
  std::vector<kube::ObjectKey> waiting_for_policies_;  // Reconciled before they were known.
  // Of the host before this one: operators that are not taken over yet, and why others start anew.
  std::map<kube::ObjectKey, CarriedOperator> carried_;
  std::map<kube::ObjectKey, std::string> left_;
  Counter& taken_over_;
  Counter& started_anew_;
  OperatorAges ages_;
  WebhookConfigurations webhooks_;
  OperatorReviews reviews_;
  reconcile::Dependents<kube::ObjectKey> config_maps_;  // Those that hold modules.
  reconcile::CustomResource operators_;
};

}  // namespace hangar::operators
