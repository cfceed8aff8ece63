#include "airways/instance_controller.h"

#include "airways/instance.h"
#include "airways/life.h"
#include "airways/live_view.h"
#include "airways/overrides.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/status_only.h"
#include "reconcile/controller.h"
#include "recorder/trace_ids.h"

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::airways {

InstanceController::InstanceController(const Platform& platform, Options options)
    : platform_(platform),
      options_(std::move(options)),
      resource_(options_.kind.qualified_plural()),
      shell_(platform.shared,
             {.kind = options_.kind,
              .name = options_.name,
              .field_manager = std::string(kControllerFieldManager),
              .log = platform.shared.log.named("airways"),
              .concurrency = options_.concurrency,
              .documents = options_.documents,
              .finalizer = std::string(kInstanceFinalizer),
              // InstanceWork sets it together with the owner reference, once there can be a
              // history.
              .finalizer_by = reconcile::FinalizerBy::Feature,
              .reconcile =
                  [this](kube::ObjectPtr instance, std::stop_token stop) {
                    return work_on(std::move(instance), std::move(stop));
                  },
              .finalize =
                  [this](kube::ObjectPtr instance, std::stop_token stop) {
                    return work_on(std::move(instance), std::move(stop));
                  },
              .forget = [this](kube::ObjectKey key) { return forget(std::move(key)); },
              .predicate =
                  [](const kube::Delta& delta) {
                    return !kube::differs_in_status_only(*delta.previous, *delta.object);
                  },
              .on_change =
                  [this](const kube::Delta& delta) {
                    Instance& memory = memory_of(delta.object->key());
                    memory.life.on_changed();
                    note(memory, instance_ref(delta.object->key()), change_of(delta.type),
                         *delta.object);
                  },
              .on_synced = [this] { on_synced(); }}) {}

InstanceController::~InstanceController() = default;

void InstanceController::start() {
  shell_.start();
}

// Removes the output of instances that were deleted while no host ran.
void InstanceController::on_synced() {
  std::vector<kube::ObjectKey> keys;
  for (const kube::ObjectPtr& object : shell_.list())
    keys.push_back(object->key());
  platform_.output.remove_others(std::move(keys), resource_);
  if (options_.on_synced) options_.on_synced();
}

io::Task<void> InstanceController::stop() {
  co_await shell_.stop();
}

void InstanceController::count_in(std::map<std::string, std::uint64_t>& namespaces) const {
  for (const kube::ObjectPtr& object : shell_.list()) {
    if (!object->key().namespace_.empty()) ++namespaces[object->key().namespace_];
  }
}

void InstanceController::evaluate_all(std::string_view why) {
  for (const auto& [key, memory] : instances_) {
    memory->life.on_changed();
    if (platform_.recorder.is_on()) memory->reasons.add(why);
    shell_.enqueue(key);
  }
}

Instance& InstanceController::memory_of(const kube::ObjectKey& key) {
  auto& memory = instances_[key];
  if (!memory) memory = std::make_unique<Instance>();
  return *memory;
}

ResourceRef InstanceController::instance_ref(const kube::ObjectKey& key) const {
  return {.kind = options_.kind.gvk().group_kind(), .namespace_ = key.namespace_, .name = key.name};
}

void InstanceController::note(Instance& memory, const ResourceRef& resource, Change change,
                              const kube::Object& object) const {
  if (!platform_.recorder.is_on()) return;
  if (!platform_.recorder.is_tracing()) return memory.reasons.add(resource, change, object, {});
  const kube::ObjectText text = object.text();
  memory.reasons.add(resource, change, object, recorder::traceparent_in(text.view()));
}

void InstanceController::on_child(const kube::ObjectKey& instance, const ResourceRef& child,
                                  Change change, const kube::Object& object) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  Instance& memory = *found->second;
  const auto applied = memory.applied.find(child);
  const bool is_our_own_write = applied != memory.applied.end() &&
                                applied->second.resource_version == object.resource_version();
  if (!memory.life.on_child(is_our_own_write)) return;
  note(memory, child, change, object);
  shell_.enqueue(instance);
}

void InstanceController::on_tracked(const kube::ObjectKey& instance, const ResourceRef& resource,
                                    Change change, const kube::Object& object) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  Life& life = found->second->life;
  life.on_tracked(resource);
  note(*found->second, resource, change, object);
  if (const Duration wait = life.tracked_in(io::Loop::now()); wait > Duration::zero()) {
    shell_.enqueue_after(instance, wait);
  } else {
    shell_.enqueue(instance);
  }
}

InstanceController::OutcomeTask InstanceController::work_on(kube::ObjectPtr instance,
                                                            std::stop_token stop) {
  Instance& memory = memory_of(instance->key());
  return options_.work(std::move(instance), memory, std::move(stop));
}

io::Task<void> InstanceController::forget(kube::ObjectKey key) {
  const ResourceRef self = instance_ref(key);
  if (options_.forget) options_.forget(key);
  platform_.tracker.forget(self);
  platform_.view.forget(self);
  platform_.output.remove(key, resource_);
  const auto found = instances_.find(key);
  if (found == instances_.end()) co_return;
  std::string approval = std::move(found->second->approval);
  instances_.erase(found);
  // Nobody can use the approval any more. If this fails, it is deleted with the Airway.
  if (!approval.empty()) {
    std::ignore = co_await remove_approval(platform_, std::move(approval), std::stop_token());
  }
}

}  // namespace hangar::airways
