#include "workflows/watches.h"

#include "kube/scope.h"
#include "workflows/actions.h"

#include <string>
#include <utility>
#include <vector>

namespace hangar::workflows {

kube::Cache::Subscription& Watches::watch_made(const kube::Resource& resource) {
  auto& subscription = made_[resource];
  if (subscription) return *subscription;
  subscription = cache_.subscribe(
      {.resource = resource, .label_selector = std::string(kUidLabel)},
      {.on_delta = [this](const kube::Delta& delta) {
        const json::Value object = delta.object->to_value();
        const std::string_view workflow = kube::annotation_of(object, kNameAnnotation);
        const std::size_t slash = workflow.find('/');
        if (slash == std::string_view::npos) return;
        on_change_({.namespace_ = std::string(workflow.substr(0, slash)),
                    .name = std::string(workflow.substr(slash + 1))});
      }});
  return *subscription;
}

std::optional<Error> Watches::watch_object(const kube::ObjectKey& workflow,
                                           const kube::Resource& resource,
                                           const kube::ObjectKey& object) {
  const ObjectRef ref{resource, object};
  held_[workflow][ref] = true;
  Watched& watched = objects_[ref];
  watched.holders.insert(workflow);
  if (!watched.subscription) {
    watched.subscription =
        cache_.subscribe({.resource = resource,
                          .namespace_ = object.namespace_,
                          .field_selector = "metadata.name=" + object.name,
                          .detail = kube::Detail::Metadata},
                         {.on_delta = [this, ref](const kube::Delta&) { tell_holders(ref); },
                          .on_failed =
                              [this, ref](const Error&) {
                                const auto found = objects_.find(ref);
                                if (found == objects_.end()) return;
                                // It fails again and again.
                                if (std::exchange(found->second.is_failing, true)) return;
                                tell_holders(ref);
                              }});
  }
  std::optional<Error> error = watched.subscription->last_error();
  watched.is_failing = error.has_value();
  return error;
}

void Watches::tell_holders(const ObjectRef& object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  for (const kube::ObjectKey& holder : found->second.holders)
    on_change_(holder);
}

void Watches::begin(const kube::ObjectKey& workflow) {
  const auto found = held_.find(workflow);
  if (found == held_.end()) return;
  for (auto& [object, is_wanted] : found->second)
    is_wanted = false;
}

void Watches::release(const kube::ObjectKey& workflow) {
  const auto found = held_.find(workflow);
  if (found == held_.end()) return;
  std::vector<ObjectRef> unwanted;
  for (const auto& [object, is_wanted] : found->second) {
    if (!is_wanted) unwanted.push_back(object);
  }
  for (const ObjectRef& object : unwanted)
    found->second.erase(object);
  if (found->second.empty()) held_.erase(found);
  for (const ObjectRef& object : unwanted)
    drop(workflow, object);
}

void Watches::drop(const kube::ObjectKey& workflow, const ObjectRef& object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  found->second.holders.erase(workflow);
  if (found->second.holders.empty()) objects_.erase(found);
}

}  // namespace hangar::workflows
