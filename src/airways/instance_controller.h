// Evaluates every instance of one Airway's kind and makes the cluster as its flight says.
//
// Expected flow of one reconcile: finalizer and owner reference, run of the flight, plan, record of
// the revision, apply stage by stage, prune, activation of the revision, readiness, status.
//
// Guarantees:
//   - One instance is never evaluated twice at once.
//   - Nothing is applied that the revision history does not name; nothing is deleted that another
//     release owns. Being killed at any point loses nothing: the next reconcile finds what was made
//     through the history.
//   - A reconcile that has to wait for the cluster (a stage's readiness, a deletion) ends; the
//     change that it waits for starts the next one.
// Assumptions: one host leads. Loop thread only.
#pragma once

#include "airways/airway.h"
#include "airways/flight_modules.h"
#include "airways/identity.h"
#include "airways/instance.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "base/log.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "reconcile/controller.h"

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

// An Airway whose flight can run.
struct Binding {
  Airway airway;
  FlightModule module;
};

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

  [[nodiscard]] const kube::Resource& kind() const { return kind_; }

  // A child of `instance` changed.
  void on_child(const kube::ObjectKey& instance, const ResourceRef& child,
                const kube::Object& object);
  // Something that `instance` tracks changed; for children, on_child() was told before.
  void on_tracked(const kube::ObjectKey& instance, const ResourceRef& resource);

 private:
  struct Work;

  void on_instance(const kube::Delta& delta);
  [[nodiscard]] Instance& memory_of(const kube::ObjectKey& key);
  [[nodiscard]] bool is_overtaken(const Work& work) const;
  [[nodiscard]] kube::ObjectPtr newest(const kube::ObjectKey& key, const Instance& memory) const;
  [[nodiscard]] bool has_news(const Instance& memory, const ResourceRef& ref) const;
  [[nodiscard]] ResourceRef ref_of_key(const kube::ObjectKey& key) const;

  [[nodiscard]] io::Task<Result<reconcile::Outcome>> reconcile(kube::ObjectKey key,
                                                               std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> claim(Work& work);
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> evaluate(Work& work);
  [[nodiscard]] io::Task<Result<>> release(Work& work);
  [[nodiscard]] io::Task<Result<>> settle(Work& work);
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> tear_down(Work& work);
  [[nodiscard]] io::Task<Result<>> write_status(Work& work, std::optional<Verdict> verdict);
  [[nodiscard]] Result<> remember(Work& work, json::Value answer);
  void announce(Work& work, const Verdict& verdict);
  void warn_of_unsupported(Work& work);
  void forget(const kube::ObjectKey& key);

  const Platform& platform_;
  const std::string airway_name_;
  const kube::Resource kind_;
  const Log log_;
  std::shared_ptr<const Binding> binding_;  // Null: none yet.
  std::map<kube::ObjectKey, std::unique_ptr<Instance>> instances_;
  reconcile::Controller controller_;
  std::unique_ptr<kube::Cache::Subscription> subscription_;
};

}  // namespace hangar::airways
