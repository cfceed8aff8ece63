// Decides which instances of one kind are worked on, and when. The owner of this object provides
// their terms and modules (airway_instances.h, flight_controller.h); instance_work.h does the work.
//
// Guarantees: an instance is never worked on twice at the same time, and a change that arrives
// meanwhile queues it again.
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "airways/instance.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::airways {

class InstanceController {
 public:
  using OutcomeTask = reconcile::CustomResource::OutcomeTask;
  struct Options {
    kube::Resource kind;  // In their storage version.
    std::string name;     // The controller's name in logs and metrics.
    std::size_t concurrency = 1;
    // CustomResource::Options::documents. InstanceWork holds its newest state, and the one that the
    // flight got.
    std::uint64_t documents = 2;
    // Works on an instance that exists, or that is being deleted and has the finalizer. `memory`
    // lives until the task ends.
    std::function<OutcomeTask(kube::ObjectPtr instance, Instance& memory, std::stop_token stop)>
        work;
    // An instance is gone. Called for every key without an object.
    std::function<void(const kube::ObjectKey& key)> forget = {};
    // All instances are known.
    std::function<void()> on_synced = {};
  };
  InstanceController(const Platform& platform, Options options);
  InstanceController(const InstanceController&) = delete;
  InstanceController& operator=(const InstanceController&) = delete;
  ~InstanceController();

  void start();
  // Starts no more reconciles, and waits for those that run.
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] bool is_synced() const { return shell_.is_synced(); }
  // Adds the number of instances of each namespace.
  void count_in(std::map<std::string, std::uint64_t>& namespaces) const;

  // `why`: as Reasons::add has it.
  void evaluate_all(std::string_view why);

  [[nodiscard]] const kube::Resource& kind() const { return shell_.kind(); }
  [[nodiscard]] reconcile::CustomResource& shell() { return shell_; }

  // A child of `instance` changed.
  void on_child(const kube::ObjectKey& instance, const ResourceRef& child, Change change,
                const kube::Object& object);
  // A resource that `instance` tracks changed. For a child, on_child() was called before.
  void on_tracked(const kube::ObjectKey& instance, const ResourceRef& resource, Change change,
                  const kube::Object& object);

 private:
  void on_synced();
  [[nodiscard]] ResourceRef instance_ref(const kube::ObjectKey& key) const;
  [[nodiscard]] Instance& memory_of(const kube::ObjectKey& key);
  // Remembers a change for the record of the instance's next run.
  void note(Instance& memory, const ResourceRef& resource, Change change,
            const kube::Object& object) const;
  [[nodiscard]] OutcomeTask work_on(kube::ObjectPtr instance, std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);

  const Platform& platform_;
  const Options options_;
  const std::string resource_;  // The name under which their output is kept.
  std::map<kube::ObjectKey, std::unique_ptr<Instance>> instances_;
  reconcile::CustomResource shell_;
};

}  // namespace hangar::airways
