#include "airways/instance_controller.h"

#include "airways/acting.h"
#include "airways/instance.h"
#include "airways/instance_work.h"
#include "airways/plan.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "reconcile/controller.h"

#include <expected>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

using reconcile::Outcome;

InstanceController::InstanceController(const Platform& platform, std::string airway_name,
                                       kube::Resource kind)
    : platform_(platform),
      airway_name_(std::move(airway_name)),
      kind_(std::move(kind)),
      log_(platform.log.named("airways")),
      controller_(platform.loop, platform.metrics, log_,
                  {.name = airway_name_,
                   .concurrency = platform.concurrency,
                   .turnstile = &platform.turnstile},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return reconcile(std::move(key), std::move(stop));
                  }) {}

InstanceController::~InstanceController() = default;

void InstanceController::start() {
  controller_.start();
  subscription_ = platform_.cache.subscribe(
      {.resource = kind_}, {.on_delta = [this](const kube::Delta& delta) { on_instance(delta); },
                            .on_synced = [this] { forget_output(); }});
}

// Of instances that were deleted while no host looked.
void InstanceController::forget_output() {
  std::vector<kube::ObjectKey> keys;
  for (const kube::ObjectPtr& object : subscription_->list())
    keys.push_back(object->key());
  platform_.output.remove_others(std::move(keys), airway_name_);
}

io::Task<void> InstanceController::stop() {
  subscription_.reset();
  co_await controller_.stop();
}

void InstanceController::bind(std::shared_ptr<const Binding> binding) {
  binding_ = std::move(binding);
  for (const auto& [key, memory] : instances_) {
    memory->evaluate = true;
    controller_.enqueue(key);
  }
}

void InstanceController::act_as(const Result<Acting>& acting) {
  if (acting_ && (!acting || (*acting_ && **acting_ == *acting))) return;
  const bool is_first = !acting_;
  acting_ = acting;
  if (is_first) return;
  for (const auto& [key, memory] : instances_) {
    memory->evaluate = true;
    controller_.enqueue(key);
  }
}

Instance& InstanceController::memory_of(const kube::ObjectKey& key) {
  auto& memory = instances_[key];
  if (!memory) memory = std::make_unique<Instance>();
  return *memory;
}

ResourceRef InstanceController::ref_of_key(const kube::ObjectKey& key) const {
  return {.kind = {.group = kind_.group, .kind = kind_.kind},
          .namespace_ = key.namespace_,
          .name = key.name};
}

void InstanceController::on_instance(const kube::Delta& delta) {
  const kube::ObjectKey& key = delta.object->key();
  Instance& memory = memory_of(key);
  if (delta.type == kube::Delta::Type::Modified) {
    // What our own writes were answered with includes it: late news of an earlier one of them.
    const bool is_known =
        memory.latest && memory.latest->uid() == delta.object->uid() &&
        (memory.latest->resource_version() == delta.object->resource_version() ||
         is_older(delta.object->resource_version(), memory.latest->resource_version()));
    if (is_known) return;
    if (without_status(delta.previous->to_value()) == without_status(delta.object->to_value())) {
      return;
    }
  }
  memory.evaluate = true;
  controller_.enqueue(key);
}

void InstanceController::on_child(const kube::ObjectKey& instance, const ResourceRef& child,
                                  const kube::Object& object) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  const Instance& memory = *found->second;
  if (memory.waiting == Waiting::Nothing) {
    const auto applied = memory.applied.find(child);
    const bool is_ours = applied != memory.applied.end() &&
                         applied->second.resource_version == object.resource_version();
    // Ready says how things are now, so it follows them. Not after a failure, whose retry comes in
    // its own time, and not where Ready is the flight's to say.
    if (is_ours || memory.evaluate || memory.flight_owned_ready) return;
  }
  controller_.enqueue(instance);
}

void InstanceController::on_tracked(const kube::ObjectKey& instance, const ResourceRef& resource) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  found->second->changed.insert(resource);
  controller_.enqueue(instance);
}

kube::ObjectPtr InstanceController::newest(const kube::ObjectKey& key,
                                           const Instance& memory) const {
  kube::ObjectPtr cached = subscription_ ? subscription_->get(key) : nullptr;
  if (cached && memory.latest && cached->uid() == memory.latest->uid() &&
      is_older(cached->resource_version(), memory.latest->resource_version())) {
    return memory.latest;
  }
  return cached;
}

io::Task<Result<Outcome>> InstanceController::reconcile(kube::ObjectKey key, std::stop_token stop) {
  Instance& memory = memory_of(key);
  const kube::ObjectPtr object = newest(key, memory);
  if (!object) {
    forget(key);
    co_return Outcome{};
  }
  InstanceWork work(
      {.platform = platform_,
       .airway_name = airway_name_,
       .kind = kind_,
       .memory = memory,
       .binding = binding_,
       .acting = acting_ ? *acting_
                         : fail(ErrorKind::Unavailable, "the Airway has not been looked at yet"),
       .cached = [this, &key] { return subscription_ ? subscription_->get(key) : nullptr; },
       .enqueue = [this, &key] { controller_.enqueue(key); }},
      *object, std::move(stop));
  co_return co_await work.run();
}

void InstanceController::forget(const kube::ObjectKey& key) {
  const ResourceRef self = ref_of_key(key);
  platform_.tracker.forget(self);
  platform_.view.forget(self);
  platform_.output.remove(key, airway_name_);
  instances_.erase(key);
}

}  // namespace hangar::airways
