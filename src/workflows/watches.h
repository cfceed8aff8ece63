// Which workflow to look at when something in the cluster changes.
//
// Two kinds of watches, both shared by all workflows: the objects that workflows made, by their
// label, one watch a kind; and single objects that a workflow waits for, as long as it does. They
// say only that something happened: what, is asked under the workflow's own rights. Loop thread
// only.
#pragma once

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace hangar::workflows {

class Watches {
 public:
  using OnChange = std::function<void(const kube::ObjectKey& workflow)>;
  Watches(kube::Cache& cache, OnChange on_change)
      : cache_(cache), on_change_(std::move(on_change)) {}
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // From now on, changes of workflows' objects of that kind are told. The subscription stays.
  kube::Cache::Subscription& watch_made(const kube::Resource& resource);

  // A change of the object is told to `workflow`, also that it appears; until release(). Why it
  // cannot be watched, while it cannot; when that begins later, `workflow` is told too.
  std::optional<Error> watch_object(const kube::ObjectKey& workflow, const kube::Resource& resource,
                                    const kube::ObjectKey& object);
  // Lets go of all objects that `workflow` waits for but those that it asked for since begin().
  void begin(const kube::ObjectKey& workflow);
  void release(const kube::ObjectKey& workflow);

 private:
  using ObjectRef = std::pair<kube::Resource, kube::ObjectKey>;
  struct Watched {
    std::unique_ptr<kube::Cache::Subscription> subscription;
    std::set<kube::ObjectKey> holders;  // Workflows.
    bool is_failing = false;            // So the holders were told.
  };
  void tell_holders(const ObjectRef& object);
  void drop(const kube::ObjectKey& workflow, const ObjectRef& object);

  kube::Cache& cache_;
  const OnChange on_change_;
  std::map<kube::Resource, std::unique_ptr<kube::Cache::Subscription>> made_;
  std::map<ObjectRef, Watched> objects_;
  // Of workflows that wait for objects: which, and whether it asked since begin().
  std::map<kube::ObjectKey, std::map<ObjectRef, bool>> held_;
};

}  // namespace hangar::workflows
