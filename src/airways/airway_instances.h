// The instances of one Airway's kind, evaluated by the Airway's terms.
// Loop thread only.
#pragma once

#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/instance.h"
#include "airways/instance_controller.h"
#include "airways/platform.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/object.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

class AirwayInstances {
 public:
  // `kind`: in its storage version.
  AirwayInstances(const Platform& platform, std::string airway_name, kube::Resource kind);
  AirwayInstances(const AirwayInstances&) = delete;
  AirwayInstances& operator=(const AirwayInstances&) = delete;
  ~AirwayInstances();

  void start() { controller_.start(); }
  // Starts no more reconciles, and waits for those that run.
  [[nodiscard]] io::Task<void> stop() { return controller_.stop(); }

  // Evaluates all instances with this binding from now on, including existing ones. Without a
  // binding, no instance is evaluated; the release of a deleted one is still removed.
  void bind(std::shared_ptr<const Binding> binding);

  // Sets the identity whose rights flights use from now on. An error counts only while none was
  // set: then no flight runs.
  void act_as(const Result<Acting>& acting);

  // What the removal of a release also deletes from now on. Applies without a binding, too.
  void prune_as(const PruneOptions& prune) { prune_ = prune; }

  [[nodiscard]] const kube::Resource& kind() const { return controller_.kind(); }
  [[nodiscard]] InstanceController& controller() { return controller_; }
  [[nodiscard]] const InstanceController& controller() const { return controller_; }

 private:
  [[nodiscard]] Result<Actor> actor_of(const kube::ObjectKey& instance) const;
  [[nodiscard]] InstanceController::OutcomeTask work_on(kube::ObjectPtr instance, Instance& memory,
                                                        std::stop_token stop);

  const Platform& platform_;
  const std::string airway_name_;
  std::shared_ptr<const Binding> binding_;  // Null: none yet.
  std::optional<Result<Acting>> acting_;    // std::nullopt: not set yet.
  PruneOptions prune_;
  InstanceController controller_;
};

}  // namespace hangar::airways
