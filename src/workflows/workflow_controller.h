// Keeps each StatefulWorkflow going: its machine decides, the cluster is made to follow, and its
// status holds all that must survive.
//
// One reconcile follows one Decision (decision.h): signals and changes are handed to the machine,
// what it decides is written under the resourceVersion that it was decided for, and only then
// carried out, as the workflow's ServiceAccount. What an action came to is written together with
// what the machine makes of it. A reconcile that has nothing left to do ends; a change, a signal or
// a deadline starts the next one. Between reconciles nothing is kept of a workflow but its object
// in the cache.
//
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "workflows/decision.h"
#include "workflows/executor.h"
#include "workflows/machine_modules.h"
#include "workflows/verdict.h"
#include "workflows/watches.h"
#include "workflows/workflow.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>

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
    std::size_t concurrency = 1;
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
  struct Work;
  struct Instruments;
  using Outcome = reconcile::Outcome;

  void on_workflow(const kube::Delta& delta);
  [[nodiscard]] kube::ObjectPtr newest(const kube::ObjectKey& key) const;
  [[nodiscard]] io::Task<Result<Outcome>> reconcile(kube::ObjectKey key, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Outcome>> go_on(Work& work);

  // Each carries out one thing that the Decision asks for.
  [[nodiscard]] io::Task<Result<>> begin(Work& work);
  [[nodiscard]] io::Task<Result<>> decide(Work& work);
  [[nodiscard]] io::Task<Result<>> carry_out(Work& work, Decision::Execute next);
  [[nodiscard]] io::Task<Result<>> write(Work& work);
  [[nodiscard]] io::Task<Result<>> send_status(Work& work, json::Value status);
  [[nodiscard]] io::Task<Result<Outcome>> say_only(Work& work, json::Value status);

  // The machine that the workflow is pinned to, or is to be.
  [[nodiscard]] io::Task<Result<>> need_machine(Work& work);
  [[nodiscard]] Result<> on_module_error(Work& work, const Error& error);
  [[nodiscard]] Result<> on_machine_error(Work& work, const Error& error, std::string_view doing);
  void keep_output(const Work& work, const abi::statemachine::Step& step) const;
  [[nodiscard]] io::Task<Result<>> check_foreign_state(Work& work);
  [[nodiscard]] io::Task<Result<>> migrate(Work& work);

  void take_signals(Work& work);
  [[nodiscard]] io::Task<Result<>> remove_signals(Work& work);
  void skip_action(Work& work);
  [[nodiscard]] io::Task<Result<>> take_changes(Work& work);
  void announce(Work& work);
  void remember(const kube::ObjectKey& key, const json::Value& answer);

  const Host host_;
  const Log log_;
  std::unique_ptr<Instruments> instruments_;
  // The newest state that an answer to our own write showed, until the cache has it too.
  std::map<kube::ObjectKey, kube::ObjectPtr> latest_;
  Watches watches_;
  Executor executor_;
  std::mt19937_64 random_;
  reconcile::Controller controller_;
  std::unique_ptr<kube::Cache::Subscription> subscription_;
};

}  // namespace hangar::workflows
