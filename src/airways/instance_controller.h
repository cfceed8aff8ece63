// The instances of one Airway's kind: which of them are to be worked on, and when. What is done
// then is instance_work.h.
//
// Guarantees: one instance is never worked on twice at once, and a change that arrives while it is
// brings it back.
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/instance.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

class InstanceController {
 public:
  // `kind`: the instances, in their storage version.
  InstanceController(const Platform& platform, std::string airway_name, kube::Resource kind);
  InstanceController(const InstanceController&) = delete;
  InstanceController& operator=(const InstanceController&) = delete;
  ~InstanceController();

  void start();
  // Ends running reconciles.
  [[nodiscard]] io::Task<void> stop();

  // From now on instances are evaluated like this; those that exist are evaluated again. Without a
  // binding, instances are only taken down when they are deleted.
  void bind(std::shared_ptr<const Binding> binding);

  // Whose rights flights have from now on. An error about that counts only while nothing else is
  // known: then nothing is done as anybody.
  void act_as(const Result<Acting>& acting);

  [[nodiscard]] const kube::Resource& kind() const { return shell_.kind(); }

  // A child of `instance` changed.
  void on_child(const kube::ObjectKey& instance, const ResourceRef& child,
                const kube::Object& object);
  // Something that `instance` tracks changed; for children, on_child() was told before.
  void on_tracked(const kube::ObjectKey& instance, const ResourceRef& resource);

 private:
  void forget_output();
  [[nodiscard]] Instance& memory_of(const kube::ObjectKey& key);
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> work_on(kube::ObjectPtr instance,
                                                             std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);

  const Platform& platform_;
  const std::string airway_name_;
  std::shared_ptr<const Binding> binding_;  // Null: none yet.
  std::optional<Result<Acting>> acting_;    // Nothing: not said yet.
  std::map<kube::ObjectKey, std::unique_ptr<Instance>> instances_;
  reconcile::CustomResource shell_;
};

}  // namespace hangar::airways
