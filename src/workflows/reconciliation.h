// One reconcile of one workflow: repeatedly gets the next step from its Decision (decision.h) and
// carries it out, until nothing is left to do.
//
// Lives as long as the reconcile: between two reconciles, a workflow's object in the cache is all
// that the host keeps of it. Loop thread only.
#pragma once

#include "abi/statemachine/machine.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "modules/supply.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"
#include "reconcile/guest_waits.h"
#include "reconcile/platform.h"
#include "tenants/rules.h"
#include "workflows/decision.h"
#include "workflows/executor.h"
#include "workflows/instruments.h"
#include "workflows/ledger.h"
#include "workflows/machine_modules.h"
#include "workflows/machine_output.h"
#include "workflows/reading.h"
#include "workflows/recording.h"
#include "workflows/verdict.h"
#include "workflows/workflow.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::workflows {

class Reconciliation {
 public:
  // All parts outlive this object.
  struct Parts {
    const reconcile::Platform& platform;
    reconcile::CustomResource& shell;  // The shell of workflows.
    MachineModules& modules;
    archive::ModuleArchive& archive;
    // The tenant rules of the workflow's namespace.
    std::shared_ptr<const tenants::Rules> tenant;
    Watches& watches;
    Executor& executor;
    const Instruments& instruments;
    reconcile::GuestRecorder& recorder;  // The recorder of workflows.
    std::mt19937_64& random;
    MachineOutput& output;
    // Set once an answer of the API server has kept a whole ledger.
    bool& keeps_ledgers;
    // Since when the workflow has waited for its module: an earlier lookup may be out of date.
    Instant asked_since;
    std::function<void()> on_module;  // Called when there is news of the module.
    // Called once the status says that the workflow is no longer pinned to that module.
    std::function<void(const std::string& sha256)> on_unpinned;
  };
  // `manifest`: the newest known state of the workflow.
  Reconciliation(Parts parts, json::Value manifest, std::stop_token stop);
  Reconciliation(const Reconciliation&) = delete;
  Reconciliation& operator=(const Reconciliation&) = delete;

  // Call it once. Errors as reconcile::Reconciler has them.
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> run();

  // After run(): it requested a module, and the final answer is still to come.
  [[nodiscard]] bool is_asking() const { return is_asking_; }

 private:
  using Outcome = reconcile::Outcome;
  using Step = abi::statemachine::Step;

  Reconciliation(Parts parts, Reading reading, json::Value&& manifest, std::stop_token stop);

  [[nodiscard]] Result<> check_policies() const;
  // Whether the policies allow the module that the workflow is pinned to, which its spec need not
  // name any more. Denied as tenants::Rules.
  [[nodiscard]] Result<> check_pinned_module() const;
  [[nodiscard]] io::Task<Result<Outcome>> go_on();
  [[nodiscard]] io::Task<Result<>> say_only();

  // reconciliation_machine.cc: the questions to the machine, and the use of its answers.
  [[nodiscard]] io::Task<Result<>> begin();
  [[nodiscard]] io::Task<Result<>> decide();
  [[nodiscard]] io::Task<Result<>> check_foreign_state();
  [[nodiscard]] io::Task<Result<>> migrate();
  // Whether the machine that the workflow is pinned to, or will be pinned to, is available.
  enum class Need : std::uint8_t { Met, Awaited };
  [[nodiscard]] io::Task<Result<Need>> need_machine();
  [[nodiscard]] modules::Supply::Answer ask_for_machine(std::string pinned_sha256,
                                                        std::string_view purpose);
  // Stores a copy of the module as long as the workflow is pinned to it.
  [[nodiscard]] io::Task<Result<>> keep_module(std::string sha256);
  [[nodiscard]] Result<> on_module_error(const Error& error);
  void on_module_awaited(const std::string& doing);
  // `doing`: the question to the machine; begins the message.
  [[nodiscard]] Result<> on_machine_error(const Error& error, std::string_view doing);
  [[nodiscard]] Result<> on_unfit_machine(const Error& error);
  // `step`: null when the machine gave none, or when its step was refused.
  void record_step(const StepRecording::Woken& woken, Instant began,
                   const abi::statemachine::Cost& cost, const Step* step,
                   std::int64_t actions_from);
  // The machine's answer; while the machine waits for memory, the status says so.
  [[nodiscard]] io::Task<Result<Step>> answer_of(io::Task<Result<Step>> step);
  [[nodiscard]] io::Task<void> tell_wait(reconcile::GuestWait wait);
  [[nodiscard]] abi::statemachine::Asker asker(abi::statemachine::Cost* cost) const;
  [[nodiscard]] io::Task<Result<Step>> probe(std::shared_ptr<abi::statemachine::Machine> machine,
                                             std::string sha256);
  void keep_output(const Step& step) const;
  void watch_config_maps();

  // reconciliation.cc: everything else.
  [[nodiscard]] io::Task<Result<>> carry_out(Decision::Execute next);
  void action_failed(const PendingAction& action, std::string_view why, WallTime now);
  void skip_action();
  void take_signals();
  [[nodiscard]] io::Task<Result<>> remove_signals();
  [[nodiscard]] io::Task<Result<>> take_changes();
  [[nodiscard]] io::Task<Result<>> write();
  [[nodiscard]] io::Task<Result<>> refuse_schema(json::Value before);
  [[nodiscard]] io::Task<Result<>> send_status(json::Value status);
  enum class IsDryRun : std::uint8_t { No, Yes };
  // Writes the status, waits for the answer, and records both.
  [[nodiscard]] kube::Client::ValueTask recorded_status(IsDryRun dry_run, StepRecording::Send send);
  void announce();

  const Parts parts_;
  const std::stop_token stop_;
  json::Value manifest_;  // The newest state; replaced by the answer to each of our writes.
  const kube::ObjectKey key_;
  const reconcile::CustomResource::WhileItLives living_;  // For the calls of machines.
  const Workflow workflow_;
  Decision decision_;
  StepRecording recording_;
  // The version of manifest_ if everything in it came with that version; zero: a part came later.
  std::uint64_t signals_version_;
  std::shared_ptr<abi::statemachine::Machine> machine_;
  Decision::Revision revision_;  // The revision of machine_.
  bool is_asking_ = false;
  bool is_quiet_ = false;  // Waits only for its module, too briefly to report it.
  std::optional<archive::ModuleArchive::Hold> hold_;
  std::string unpinned_;  // The digest before a migration, until the migration is written.
  std::optional<Problem> problem_;
  std::optional<Error> retry_;  // The reason to retry although nothing happens.
  // When to look again at the object that an action waits for, or at a module, if no change is
  // reported earlier. Not in the ledger, because looking costs no write.
  std::optional<WallTime> look_again_;
};

}  // namespace hangar::workflows
