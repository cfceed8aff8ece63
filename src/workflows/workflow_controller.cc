#include "workflows/workflow_controller.h"

#include "base/log.h"
#include "reconcile/predicates.h"
#include "workflows/reconciliation.h"

#include <utility>

namespace hangar::workflows {

WorkflowController::WorkflowController(const Host& host)
    : host_(host),
      log_(host.log.named("workflows")),
      instruments_(host.metrics),
      watches_(host.cache,
               [this](const kube::ObjectKey& workflow) { controller_.enqueue(workflow); }),
      executor_(host.client, host.discovery, watches_),
      random_(std::random_device()()),
      controller_(host.loop, host.metrics, log_,
                  {.name = "statefulworkflow",
                   .concurrency = host.concurrency,
                   .turnstile = &host_.turnstile},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return reconcile(std::move(key), std::move(stop));
                  }) {}

WorkflowController::~WorkflowController() = default;

void WorkflowController::start() {
  controller_.start();
  subscription_ =
      host_.cache.subscribe({.resource = workflow_resource()},
                            {.on_delta = [this](const kube::Delta& delta) { on_workflow(delta); }});
}

io::Task<void> WorkflowController::stop() {
  subscription_.reset();
  co_await controller_.stop();
}

void WorkflowController::on_workflow(const kube::Delta& delta) {
  const kube::ObjectKey& key = delta.object->key();
  if (const auto found = latest_.find(key); found != latest_.end()) {
    const kube::Object& latest = *found->second;
    const bool is_same_object = latest.uid() == delta.object->uid();
    // The answer to our own write told this, or more, before.
    if (is_same_object && delta.type == kube::Delta::Type::Modified &&
        reconcile::is_older(delta.object->resource_version(), latest.resource_version())) {
      return;
    }
    const bool is_ours = is_same_object && delta.type == kube::Delta::Type::Modified &&
                         delta.object->resource_version() == latest.resource_version();
    latest_.erase(found);
    if (is_ours) return;
  }
  controller_.enqueue(key);
}

kube::ObjectPtr WorkflowController::newest(const kube::ObjectKey& key) const {
  kube::ObjectPtr cached = subscription_ ? subscription_->get(key) : nullptr;
  const auto found = latest_.find(key);
  if (cached && found != latest_.end() && cached->uid() == found->second->uid() &&
      reconcile::is_older(cached->resource_version(), found->second->resource_version())) {
    return found->second;
  }
  return cached;
}

void WorkflowController::remember(const kube::ObjectKey& key, const json::Value& answer) {
  Result<kube::ObjectPtr> object = kube::Object::make(answer, workflow_resource().gvk());
  if (!object) return;
  const kube::ObjectPtr cached = subscription_ ? subscription_->get(key) : nullptr;
  // The watch may be faster than the answer.
  const bool is_known =
      !cached || cached->uid() != (*object)->uid() ||
      !reconcile::is_older(cached->resource_version(), (*object)->resource_version());
  if (is_known) {
    latest_.erase(key);
  } else {
    latest_[key] = *std::move(object);
  }
}

io::Task<Result<reconcile::Outcome>> WorkflowController::reconcile(kube::ObjectKey key,
                                                                   std::stop_token stop) {
  const kube::ObjectPtr object = newest(key);
  watches_.begin(key);
  if (!object || object->is_being_deleted()) {
    watches_.release(key);
    if (!object) latest_.erase(key);
    co_return Outcome{};
  }
  Reconciliation reconciliation(
      {.client = host_.client,
       .modules = host_.modules,
       .events = host_.events,
       .watches = watches_,
       .executor = executor_,
       .instruments = instruments_,
       .random = random_,
       .log = log_,
       .on_answer = [this, &key](const json::Value& answer) { remember(key, answer); }},
      object->to_value(), std::move(stop));
  Result<Outcome> outcome = co_await reconciliation.run();
  watches_.release(key);
  co_return outcome;
}

}  // namespace hangar::workflows
