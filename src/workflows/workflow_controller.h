// Drives each StatefulWorkflow: its machine decides, the host changes the cluster accordingly, and
// its status holds everything that must survive.
//
// The machine receives signals and changes; its decision is written under the resourceVersion that
// it was made for, and only then carried out, as the workflow's ServiceAccount. The result of an
// action is written together with the machine's answer to it. A reconcile (reconciliation.h) that
// has nothing left to do finishes; a change, a signal or a deadline starts the next one. Between
// reconciles the host keeps only the workflow's object in the cache.
//
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "archive/copies.h"
#include "archive/module_archive.h"
#include "base/log.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "modules/module_store.h"
#include "output/namespace_allowances.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"
#include "reconcile/platform.h"
#include "reconcile/recording.h"
#include "recorder/recorder.h"
#include "tenants/policies.h"
#include "workflows/executor.h"
#include "workflows/instruments.h"
#include "workflows/machine_modules.h"
#include "workflows/machine_output.h"
#include "workflows/workflow.h"

#include <cstddef>
#include <map>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::workflows {

class WorkflowController {
 public:
  // All parts outlive this object.
  struct Parts {
    const reconcile::Platform& platform;
    MachineModules& modules;
    modules::ModuleStore& store;  // The store of `modules`.
    tenants::Policies& policies;
    output::NamespaceAllowances& output;     // Bounds what machines print.
    recorder::Recorder* recorder = nullptr;  // Null: nothing is recorded.
  };
  explicit WorkflowController(const Parts& parts);
  WorkflowController(const WorkflowController&) = delete;
  WorkflowController& operator=(const WorkflowController&) = delete;
  ~WorkflowController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return workflows_.is_synced(); }
  // The number of workflows by namespace; only namespaces that have any.
  [[nodiscard]] std::map<std::string, std::size_t> counts() const;

 private:
  using Outcome = reconcile::Outcome;

  // Reconciles all workflows of a namespace again; if the name is empty, all workflows.
  void look_again(const std::string& namespace_name);
  void look_at(const kube::ObjectKey& workflow);
  void on_change(const kube::Delta& delta);
  // An object that the action of a workflow may have made has changed.
  void on_child(const kube::Object& object);
  [[nodiscard]] io::Task<Result<Outcome>> reconcile(kube::ObjectPtr workflow, std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);
  [[nodiscard]] bool is_pinned(const archive::ArchivedModule& module) const;

  const Parts parts_;
  const reconcile::Platform& platform_;
  const Log log_;
  const Instruments instruments_;
  MachineOutput output_;
  reconcile::GuestRecorder recorder_;
  // Since when workflows have been waiting for a module that they do not have yet.
  std::map<kube::ObjectKey, Instant> asking_;
  std::vector<kube::ObjectKey> waiting_for_policies_;  // Reconciled before they were known.
  Watches watches_;
  Executor executor_;
  std::mt19937_64 random_;
  bool keeps_ledgers_ = false;  // As Reconciliation::Parts has it.
  archive::Copies copies_;
  reconcile::CustomResource workflows_;
};

}  // namespace hangar::workflows
