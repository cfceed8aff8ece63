// The instances of one kind: which of them are to be worked on, and when. What each of them is
// evaluated with is the business of those who made the kind (airway_instances.h); what is done then
// is instance_work.h.
//
// Guarantees: one instance is never worked on twice at once, and a change that arrives while it is
// brings it back.
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "airways/instance.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::airways {

class InstanceController {
 public:
  using OutcomeTask = reconcile::CustomResource::OutcomeTask;
  struct Options {
    kube::Resource kind;  // In their storage version.
    std::string name;     // Of the controller, in logs and metrics.
    std::size_t concurrency = 1;
    // Works on one that exists, or on one that is to go and has the finalizer. `memory` lives until
    // the task has ended.
    std::function<OutcomeTask(kube::ObjectPtr instance, Instance& memory, std::stop_token stop)>
        work;
    // One is gone. Called for every key without an object.
    std::function<void(const kube::ObjectKey& key)> forget = {};
  };
  InstanceController(const Platform& platform, Options options);
  InstanceController(const InstanceController&) = delete;
  InstanceController& operator=(const InstanceController&) = delete;
  ~InstanceController();

  void start();
  // Ends running reconciles.
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] bool is_synced() const { return shell_.is_synced(); }

  // All of them are evaluated again.
  void evaluate_all();

  [[nodiscard]] const kube::Resource& kind() const { return shell_.kind(); }
  [[nodiscard]] reconcile::CustomResource& shell() { return shell_; }

  // A child of `instance` changed.
  void on_child(const kube::ObjectKey& instance, const ResourceRef& child,
                const kube::Object& object);
  // Something that `instance` tracks changed; for children, on_child() was told before.
  void on_tracked(const kube::ObjectKey& instance, const ResourceRef& resource);

 private:
  void forget_output();
  [[nodiscard]] Instance& memory_of(const kube::ObjectKey& key);
  [[nodiscard]] OutcomeTask work_on(kube::ObjectPtr instance, std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);

  const Platform& platform_;
  const Options options_;
  const std::string resource_;  // As which their output is kept.
  std::map<kube::ObjectKey, std::unique_ptr<Instance>> instances_;
  reconcile::CustomResource shell_;
};

}  // namespace hangar::airways
