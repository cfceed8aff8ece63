// Keeps each StatefulWorkflow going: its machine decides, the cluster is made to follow, and its
// status holds all that must survive.
//
// Signals and changes are handed to the machine, what it decides is written under the
// resourceVersion that it was decided for, and only then carried out, as the workflow's
// ServiceAccount. What an action came to is written together with what the machine makes of it. A
// reconcile (reconciliation.h) that has nothing left to do ends; a change, a signal or a deadline
// starts the next one. Between reconciles nothing is kept of a workflow but its object in the
// cache.
//
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "archive/module_archive.h"
#include "base/log.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "modules/module_store.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"
#include "reconcile/platform.h"
#include "reconcile/recording.h"
#include "recorder/recorder.h"
#include "tenants/policies.h"
#include "workflows/executor.h"
#include "workflows/instruments.h"
#include "workflows/machine_modules.h"
#include "workflows/workflow.h"

#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>

namespace hangar::workflows {

class WorkflowController {
 public:
  // Outlives this.
  struct Parts {
    const reconcile::Platform& platform;
    MachineModules& modules;
    modules::ModuleStore& store;  // That of `modules`.
    tenants::Policies& policies;
    recorder::Recorder* recorder = nullptr;  // Null: nothing is recorded.
  };
  explicit WorkflowController(const Parts& parts);
  WorkflowController(const WorkflowController&) = delete;
  WorkflowController& operator=(const WorkflowController&) = delete;
  ~WorkflowController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return workflows_.is_synced(); }
  // How many there are, by namespaces that have any.
  [[nodiscard]] std::map<std::string, std::size_t> counts() const;

 private:
  using Outcome = reconcile::Outcome;

  // Looks at all workflows of a namespace again, or at all there are where it is empty.
  void look_again(const std::string& namespace_name);
  void look_at(const kube::ObjectKey& workflow);
  void on_change(const kube::Delta& delta);
  [[nodiscard]] io::Task<Result<Outcome>> reconcile(kube::ObjectPtr workflow, std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);
  void look_for_copies(const std::string& namespace_);
  // Deletes a copy of a module that no workflow needs; without a name: looks
  // for such copies in that namespace, or in all of them.
  [[nodiscard]] io::Task<Result<Outcome>> tidy(kube::ObjectKey copy, std::stop_token stop);
  [[nodiscard]] bool is_pinned(const archive::ArchivedModule& module) const;

  const Parts parts_;
  const reconcile::Platform& platform_;
  const Log log_;
  const Instruments instruments_;
  reconcile::GuestRecorder recorder_;
  // Since when workflows ask for a module that they have not got yet.
  std::map<kube::ObjectKey, Instant> asking_;
  Watches watches_;
  Executor executor_;
  std::mt19937_64 random_;
  bool keeps_ledgers_ = false;  // As Reconciliation::Parts has it.
  archive::ModuleArchive archive_;
  reconcile::CustomResource workflows_;
  // Where copies were looked for since the last look at all; none: one look sees the whole cluster.
  std::optional<std::set<std::string>> looked_in_;
  reconcile::Controller tidier_;  // Of archive_: by namespace and digest.
};

}  // namespace hangar::workflows
