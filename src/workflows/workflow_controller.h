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
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "modules/module_store.h"
#include "reconcile/acting_rights.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "workflows/executor.h"
#include "workflows/instruments.h"
#include "workflows/machine_modules.h"
#include "workflows/watches.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stop_token>

namespace hangar::workflows {

class WorkflowController {
 public:
  // What the host shares with every feature; outlives this.
  struct Host {
    io::Loop& loop;
    const kube::Client& client;
    kube::Cache& cache;
    kube::Discovery& discovery;
    MachineModules& modules;
    io::Workers& workers;
    modules::ModuleStore& store;  // That of `modules`.
    std::size_t concurrency = 1;
    reconcile::ActingRights& acting;
    reconcile::EventRecorder& events;
    reconcile::Turnstile& turnstile;
    Metrics& metrics;
    Log log;
  };
  explicit WorkflowController(const Host& host);
  WorkflowController(const WorkflowController&) = delete;
  WorkflowController& operator=(const WorkflowController&) = delete;
  ~WorkflowController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  // The workflows are known: the first list is there.
  [[nodiscard]] bool is_synced() const { return subscription_ && subscription_->is_synced(); }

 private:
  using Outcome = reconcile::Outcome;

  void on_workflow(const kube::Delta& delta);
  [[nodiscard]] kube::ObjectPtr newest(const kube::ObjectKey& key) const;
  void remember(const kube::ObjectKey& key, const json::Value& answer);
  void leave_modules(const kube::ObjectKey& key);
  [[nodiscard]] io::Task<Result<Outcome>> reconcile(kube::ObjectKey key, std::stop_token stop);
  void look_for_copies(const std::string& namespace_);
  // Deletes a copy of a module that no workflow needs; without a name: looks
  // for such copies in that namespace, or in all of them.
  [[nodiscard]] io::Task<Result<Outcome>> tidy(kube::ObjectKey copy, std::stop_token stop);
  [[nodiscard]] bool is_pinned(const archive::ArchivedModule& module) const;

  const Host host_;
  const Log log_;
  const Instruments instruments_;
  // The newest state that an answer to our own write showed, until the cache has it too.
  std::map<kube::ObjectKey, kube::ObjectPtr> latest_;
  // Since when workflows ask for a module that they have not got yet.
  std::map<kube::ObjectKey, Instant> asking_;
  Watches watches_;
  Executor executor_;
  std::mt19937_64 random_;
  bool keeps_ledgers_ = false;  // As Reconciliation::Parts has it.
  archive::ModuleArchive archive_;
  reconcile::Controller controller_;
  // Where copies were looked for since the last look at all; none: one look sees the whole cluster.
  std::optional<std::set<std::string>> looked_in_;
  reconcile::Controller tidier_;  // Of archive_: by namespace and digest.
  std::unique_ptr<kube::Cache::Subscription> subscription_;
};

}  // namespace hangar::workflows
