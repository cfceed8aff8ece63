#include "workflows/workflow_controller.h"

#include "base/log.h"
#include "json/value.h"
#include "reconcile/predicates.h"
#include "workflows/reconciliation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hangar::workflows {

namespace {

// How often copies of modules are looked for that nobody needs, besides those of workflows that are
// seen to go.
constexpr std::chrono::hours kTidying{1};

// Of the module that the workflow is pinned to; empty before it has begun.
std::string digest_of(const kube::Object& workflow) {
  return std::string(json::string_at(workflow.to_value(), {"status", "revision", "sha256"}));
}

}  // namespace

WorkflowController::WorkflowController(const Host& host)
    : host_(host),
      log_(host.log.named("workflows")),
      instruments_(host.metrics),
      watches_(host.cache,
               [this](const kube::ObjectKey& workflow) {
                 asking_.erase(workflow);  // It may be its module that has changed.
                 controller_.enqueue(workflow);
               }),
      executor_(host.client, host.discovery, watches_),
      random_(std::random_device()()),
      archive_({.loop = host.loop,
                .workers = host.workers,
                .client = host.client,
                .store = host.store,
                .format = machine_copies()}),
      controller_(host.loop, host.metrics, log_,
                  {.name = "statefulworkflow",
                   .concurrency = host.concurrency,
                   .turnstile = &host_.turnstile},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return reconcile(std::move(key), std::move(stop));
                  }),
      tidier_(host.loop, host.metrics, log_, {.name = "statefulworkflow-modules"},
              [this](kube::ObjectKey copy, std::stop_token stop) {
                return tidy(std::move(copy), std::move(stop));
              }) {}

WorkflowController::~WorkflowController() = default;

void WorkflowController::start() {
  host_.modules.use_archive(&archive_);
  controller_.start();
  tidier_.start();
  subscription_ =
      host_.cache.subscribe({.resource = workflow_resource()},
                            {.on_delta = [this](const kube::Delta& delta) { on_workflow(delta); },
                             .on_synced = [this] { tidier_.enqueue({}); }});
}

io::Task<void> WorkflowController::stop() {
  subscription_.reset();
  co_await controller_.stop();
  co_await tidier_.stop();
  // What is under way there may still read it.
  co_await host_.modules.supply().stop();
  host_.modules.use_archive(nullptr);
}

void WorkflowController::on_workflow(const kube::Delta& delta) {
  const kube::ObjectKey& key = delta.object->key();
  look_for_copies(key.namespace_);
  if (delta.type == kube::Delta::Type::Deleted) {
    if (std::string sha256 = digest_of(*delta.object); !sha256.empty()) {
      tidier_.enqueue({.namespace_ = key.namespace_, .name = std::move(sha256)});
    }
  }
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
  const bool is_same_spec = delta.type == kube::Delta::Type::Modified &&
                            delta.object->generation() == delta.previous->generation();
  if (!is_same_spec) asking_.erase(key);
  controller_.enqueue(key);
}

void WorkflowController::look_for_copies(const std::string& namespace_) {
  if (looked_in_ && looked_in_->insert(namespace_).second) {
    tidier_.enqueue({.namespace_ = namespace_});
  }
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
    leave_modules(key);
    if (!object) latest_.erase(key);
    co_return Outcome{};
  }
  const auto asking = asking_.find(key);
  const Instant asked_since = asking == asking_.end() ? io::Loop::now() : asking->second;
  Reconciliation reconciliation(
      {.client = host_.client,
       .modules = host_.modules,
       .archive = archive_,
       .acting = host_.acting,
       .events = host_.events,
       .watches = watches_,
       .executor = executor_,
       .instruments = instruments_,
       .random = random_,
       .log = log_,
       .keeps_ledgers = keeps_ledgers_,
       .asked_since = asked_since,
       .on_module = [this, key] { controller_.enqueue(key); },
       .on_answer = [this, &key](const json::Value& answer) { remember(key, answer); },
       .on_unpinned =
           [this, &key](const std::string& sha256) {
             tidier_.enqueue({.namespace_ = key.namespace_, .name = sha256});
           }},
      object->to_value(), std::move(stop));
  Result<Outcome> outcome = co_await reconciliation.run();
  if (reconciliation.is_asking()) {
    asking_.insert_or_assign(key, asked_since);
  } else {
    asking_.erase(key);
  }
  watches_.release(key);
  co_return outcome;
}

void WorkflowController::leave_modules(const kube::ObjectKey& key) {
  asking_.erase(key);
  for (const std::string_view purpose : {"run", "migrate"})
    host_.modules.supply().leave(fmt::format("{} {}", key.to_string(), purpose));
}

bool WorkflowController::is_pinned(const archive::ArchivedModule& module) const {
  // The cache may still have a workflow as it was before the migration that makes us ask.
  return std::ranges::any_of(subscription_->list(module.namespace_),
                             [&](const kube::ObjectPtr& cached) {
                               const kube::ObjectPtr workflow = newest(cached->key());
                               return workflow && digest_of(*workflow) == module.sha256;
                             });
}

io::Task<Result<reconcile::Outcome>> WorkflowController::tidy(kube::ObjectKey copy,
                                                              std::stop_token stop) {
  if (!is_synced()) co_return Outcome{};  // Once it is, all copies are looked at.
  if (!copy.name.empty()) {
    const archive::ArchivedModule module{.namespace_ = copy.namespace_, .sha256 = copy.name};
    HANGAR_CO_TRY(co_await archive_.remove_unless(
        module, [this, &module] { return !is_synced() || is_pinned(module); }, std::move(stop)));
    co_return Outcome{};
  }
  Result<std::vector<archive::ArchivedModule>> copies =
      co_await archive_.list(copy.namespace_, std::move(stop));
  if (!copies && copies.error().kind() == ErrorKind::Denied) {
    // A host that may act in some namespaces only looks in those that have workflows. Without the
    // right there, too, there are no copies: a workflow that needs one says so.
    if (!copy.namespace_.empty()) co_return Outcome{};
    looked_in_.emplace();
    for (const kube::ObjectPtr& workflow : subscription_->list())
      look_for_copies(workflow->key().namespace_);
    co_return Outcome{.requeue_after = kTidying};
  }
  if (!copies) co_return std::unexpected(std::move(copies).error());
  for (archive::ArchivedModule& module : *copies) {
    tidier_.enqueue({.namespace_ = std::move(module.namespace_), .name = std::move(module.sha256)});
  }
  // Of one namespace: that it is looked at again is the business of the look at all of them.
  if (!copy.namespace_.empty()) co_return Outcome{};
  co_return Outcome{.requeue_after = kTidying};
}

}  // namespace hangar::workflows
