#include "workflows/workflow_controller.h"

#include "base/random.h"
#include "io/loop.h"
#include "json/value.h"
#include "reconcile/predicates.h"
#include "workflows/actions.h"
#include "workflows/reconciliation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hangar::workflows {

namespace {

// The digest of the module that the workflow is pinned to; empty before it has started.
std::string digest_of(const kube::Object& workflow) {
  return std::string(json::string_at(workflow.to_value(), {"status", "revision", "sha256"}));
}

// The workflow whose action made an object, according to the object.
struct Maker {
  kube::ObjectKey key;
  std::string uid;
};

std::optional<Maker> maker_of(const kube::Object& object) {
  const json::Value value = object.to_value();
  const std::string_view name = kube::annotation_of(value, kNameAnnotation);
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return Maker{.key = {.namespace_ = std::string(name.substr(0, slash)),
                       .name = std::string(name.substr(slash + 1))},
               .uid = std::string(kube::label_of(value, kUidLabel))};
}

}  // namespace

WorkflowController::WorkflowController(const Parts& parts)
    : parts_(parts),
      platform_(parts.platform),
      log_(platform_.log.named("workflows")),
      instruments_(platform_.metrics),
      output_(parts.output, log_),
      recorder_(parts.recorder, recorder::Contract::Workflow),
      // Of a child, only its marks and its version are needed. The object that an action waits for
      // is read by a request of the workflow's account.
      watches_(platform_.cache,
               {.child_selector = std::string(kUidLabel), .child_detail = kube::Detail::Metadata},
               {.on_object =
                    [this](const reconcile::SingleObject&, const kube::Delta*,
                           const std::vector<kube::ObjectKey>& holders) {
                      for (const kube::ObjectKey& workflow : holders)
                        look_at(workflow);
                    },
                .on_child = [this](const kube::GroupKind&,
                                   const kube::Delta& delta) { on_child(*delta.object); },
                .on_children_known = [this](const kube::GroupKind&) { look_again({}); }}),
      executor_(platform_.client, platform_.discovery, watches_),
      random_(random_number()),
      copies_({.platform = platform_,
               .store = parts.store,
               .format = machine_copies(),
               .log = log_,
               .name = "statefulworkflow-modules",
               .is_synced = [this] { return is_synced(); },
               .is_needed = [this](const archive::ArchivedModule& copy) { return is_pinned(copy); },
               .namespaces = [this] { return workflows_.namespaces(); }}),
      workflows_(platform_,
                 {.kind = workflow_resource(),
                  .name = "statefulworkflow",
                  .field_manager = std::string(kFieldManager),
                  .log = log_,
                  .concurrency = platform_.concurrency,
                  .has_stalled = true,
                  .reconcile =
                      [this](kube::ObjectPtr workflow, std::stop_token stop) {
                        return reconcile(std::move(workflow), std::move(stop));
                      },
                  .forget = [this](kube::ObjectKey key) { return forget(std::move(key)); },
                  // Signals are annotations.
                  .predicate = [](const kube::Delta&) { return true; },
                  .on_change = [this](const kube::Delta& delta) { on_change(delta); },
                  .on_synced = [this] { copies_.look_at_all(); }}) {}

WorkflowController::~WorkflowController() = default;

void WorkflowController::start() {
  parts_.modules.use_archive(&copies_.archive());
  copies_.start();
  parts_.policies.listen([this](const std::string& namespace_name) { look_again(namespace_name); });
  workflows_.start();
}

io::Task<void> WorkflowController::stop() {
  co_await workflows_.stop();
  co_await copies_.stop();
  // Work under way in the supply may still read the archive.
  co_await parts_.modules.supply().stop();
  parts_.modules.use_archive(nullptr);
}

std::map<std::string, std::size_t> WorkflowController::counts() const {
  std::map<std::string, std::size_t> counts;
  for (const kube::ObjectPtr& object : workflows_.list())
    ++counts[object->key().namespace_];
  return counts;
}

void WorkflowController::look_again(const std::string& namespace_name) {
  // The list below is empty while the objects are first being told, some of which may have been
  // reconciled in vain already.
  for (kube::ObjectKey& key : std::exchange(waiting_for_policies_, {}))
    workflows_.enqueue(std::move(key));
  for (const kube::ObjectPtr& object : workflows_.list(namespace_name))
    workflows_.enqueue(object->key());
}

// The workflow's module may have changed.
void WorkflowController::look_at(const kube::ObjectKey& workflow) {
  asking_.erase(workflow);
  workflows_.enqueue(workflow);
}

// Anyone may label an object with the name of a workflow in another namespace. Only those who may
// read that workflow, or an object that it made, know its uid.
void WorkflowController::on_child(const kube::Object& object) {
  const std::optional<Maker> maker = maker_of(object);
  if (!maker) return;
  const kube::ObjectPtr workflow = workflows_.newest(maker->key);
  if (workflow && workflow->uid() == maker->uid) look_at(maker->key);
}

void WorkflowController::on_change(const kube::Delta& delta) {
  const kube::ObjectKey& key = delta.object->key();
  copies_.look_in(key.namespace_);
  if (delta.type == kube::Delta::Type::Deleted) {
    copies_.look_at({.namespace_ = key.namespace_, .sha256 = digest_of(*delta.object)});
  }
  if (reconcile::generation_changed(delta)) asking_.erase(key);
}

io::Task<Result<reconcile::Outcome>> WorkflowController::reconcile(kube::ObjectPtr workflow,
                                                                   std::stop_token stop) {
  // All workflows are reconciled again once the policies are known.
  if (!parts_.policies.is_settled()) {
    waiting_for_policies_.push_back(workflow->key());
    co_return Outcome{};
  }
  const kube::ObjectKey key = workflow->key();
  watches_.begin(key);
  const auto asking = asking_.find(key);
  const Instant asked_since = asking == asking_.end() ? io::Loop::now() : asking->second;
  Reconciliation reconciliation(
      {.platform = platform_,
       .shell = workflows_,
       .modules = parts_.modules,
       .archive = copies_.archive(),
       .tenant = parts_.policies.rules_of(key.namespace_),
       .watches = watches_,
       .executor = executor_,
       .instruments = instruments_,
       .recorder = recorder_,
       .random = random_,
       .output = output_,
       .keeps_ledgers = keeps_ledgers_,
       .asked_since = asked_since,
       .on_module = [this, key] { workflows_.enqueue(key); },
       .on_unpinned =
           [this, &key](const std::string& sha256) {
             copies_.look_at({.namespace_ = key.namespace_, .sha256 = sha256});
           }},
      workflow->to_value(), std::move(stop));
  Result<Outcome> outcome = co_await reconciliation.run();
  if (reconciliation.is_asking()) {
    asking_.insert_or_assign(key, asked_since);
  } else {
    asking_.erase(key);
  }
  watches_.end(key);
  co_return outcome;
}

io::Task<void> WorkflowController::forget(kube::ObjectKey key) {
  watches_.release(key);
  asking_.erase(key);
  for (const std::string_view purpose : {"run", "migrate"})
    parts_.modules.supply().leave(fmt::format("{} {}", key.to_string(), purpose));
  co_return;
}

bool WorkflowController::is_pinned(const archive::ArchivedModule& module) const {
  // Reads the newest state: the cache may still have a workflow as it was before the migration that
  // caused this question. Tenants decide how many workflows there are, so only those that have the
  // digest somewhere in their text are parsed.
  return std::ranges::any_of(
      workflows_.list(module.namespace_), [&](const kube::ObjectPtr& workflow) {
        if (workflow->is_bare()) return true;  // Its status, which is not known here, may need it.
        const kube::ObjectText text = workflow->text();
        return text.view().contains(module.sha256) && digest_of(*workflow) == module.sha256;
      });
}

}  // namespace hangar::workflows
