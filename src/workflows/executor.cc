#include "workflows/executor.h"

#include "reconcile/conditions.h"
#include "reconcile/readiness.h"
#include "workflows/crash_points.h"
#include "workflows/limits.h"
#include "workflows/live_object.h"
#include "workflows/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ranges>
#include <string_view>
#include <utility>

namespace hangar::workflows {

namespace {

using Ended = Executor::Ended;
using Failure = Decision::Failure;

Failure final_failure(std::string reason, std::string message) {
  return {.reason = std::move(reason), .message = std::move(message), .is_final = true};
}

bool is_being_deleted(const json::Value& object) {
  return !json::string_at(object, {"metadata", "deletionTimestamp"}).empty();
}

void add_owner_reference(json::Value& manifest, const Owner& owner) {
  json::Array references;
  if (const json::Array* const given = json::array_at(manifest, {"metadata", "ownerReferences"})) {
    references = *given;
  }
  references.emplace_back(json::Object{{"apiVersion", "workflows.example.com/v1"},
                                       {"kind", "StatefulWorkflow"},
                                       {"name", owner.key.name},
                                       {"uid", owner.uid}});
  json::set_at(manifest, {"metadata", "ownerReferences"}, std::move(references));
}

json::Value about(const Assignment& task, json::Value event) {
  json::Object& object = event.as_object();
  object["resourceName"] = task.plan.key.name;
  object["apiVersion"] = task.plan.gvk.api_version();
  object["kind"] = task.plan.gvk.kind;
  return event;
}

Executor::Done done(const Assignment& task) {
  return {.event = about(task, done_event(task.action))};
}

// A write by an action.
reconcile::GuestRecording::Request writes(recorder::Verb verb, const Executor::Place& place) {
  return {
      .verb = verb, .resource = place.resource, .key = place.key, .field_manager = kFieldManager};
}

// How often to poll changes that no watch reports.
constexpr std::chrono::seconds kLookAgain{15};

// `unwatched`: why no watch will report a change.
Executor::Waits waits(const Executor::Place& place, std::string_view unmet,
                      const std::optional<Error>& unwatched) {
  Executor::Waits waits{
      .what = fmt::format("{} {}: {}", place.resource.kind, place.key.to_string(), unmet)};
  if (unwatched) waits.look_again = kLookAgain;
  // Other errors are temporary.
  if (unwatched && unwatched->kind() == ErrorKind::Denied) {
    const kube::Resource& resource = place.resource;
    waits.problem = fmt::format(
        "the host may not watch {}{}{} ({}): it is looked at every {}; give the host that right "
        "(rbac.workflowResources of the chart)",
        resource.plural, resource.group.empty() ? "" : ".", resource.group, unwatched->message(),
        to_go_duration(kLookAgain));
  }
  return waits;
}

// No watch reports a CustomResourceDefinition that appears.
Executor::Waits waits_for_kind(const Error& not_served) {
  return {.what = "its kind is not served",
          .look_again = kLookAgain,
          .problem = fmt::format("{}: it is looked for every {}", not_served.message(),
                                 to_go_duration(kLookAgain))};
}

// Whether the workflow's ledger lists the object as one that it made.
bool is_made_by(const Assignment& task, const Executor::Place& place) {
  return std::ranges::any_of(task.resources, [&place](const OwnedResource& resource) {
    return resource.name == place.key.name && resource.kind == place.resource.kind &&
           resource.namespace_ == place.key.namespace_;
  });
}

}  // namespace

Executor::Asking Executor::acting_for(const Assignment& task) const {
  return {
      .client = client_.as(kube::service_account(task.owner.key.namespace_, task.service_account)),
      .recording = task.recording};
}

io::Task<Result<Ended>> Executor::execute(Assignment task, std::stop_token stop) {
  const std::string account = task.service_account;
  const std::string namespace_ = task.owner.key.namespace_;
  Result<Ended> ended = co_await carry_out(std::move(task), std::move(stop));
  if (ended || ended.error().kind() == ErrorKind::Cancelled) co_return ended;
  const Error& error = ended.error();
  std::string message = error.message();
  if (error.kind() == ErrorKind::Denied) {
    message += fmt::format(
        "; the workflow acts as the ServiceAccount {} of namespace {}: give it that right with a "
        "Role and a RoleBinding",
        account, namespace_);
  }
  co_return Failure{
      .reason = error.reason().empty() ? std::string(name_of(error.kind())) : error.reason(),
      .kind = std::string(name_of(error.kind())),
      .message = std::move(message)};
}

io::Task<Result<Executor::Place>> Executor::find(kube::ObjectKey workflow,
                                                 kube::GroupVersionKind gvk, kube::ObjectKey key,
                                                 std::stop_token stop) {
  kube::Resource resource = HANGAR_CO_TRY(
      co_await discovery_.find(std::move(gvk), consumer_of(workflow), std::move(stop)));
  if (!resource.namespaced) key.namespace_.clear();
  co_return Place{.resource = std::move(resource), .key = std::move(key)};
}

io::Task<Result<std::optional<json::Value>>> Executor::look(Asking asking, Place place,
                                                            std::stop_token stop) {
  Result<json::Value> live = co_await asking.recording.recorded(
      {.verb = recorder::Verb::Get, .resource = place.resource, .key = place.key},
      [&](kube::RequestObserver* observer) {
        return asking.client.observed_by(observer).get(place.resource, place.key, stop);
      });
  if (live) co_return std::optional<json::Value>(*std::move(live));
  if (live.error().kind() == ErrorKind::NotFound) co_return std::optional<json::Value>();
  co_return std::unexpected(std::move(live).error());
}

io::Task<Result<Ended>> Executor::carry_out(Assignment task, std::stop_token stop) {
  if (task.plan.kind == ActionKind::DeleteResources) {
    co_return co_await remove_made(std::move(task), std::move(stop));
  }
  Result<Place> found = co_await find(task.owner.key, task.plan.gvk, task.plan.key, stop);
  if (!found && found.error().kind() == ErrorKind::NotFound &&
      task.plan.kind == ActionKind::WaitFor) {
    co_return waits_for_kind(found.error());
  }
  Place place = HANGAR_CO_TRY(std::move(found));
  switch (task.plan.kind) {
    case ActionKind::CreatePvc:
    case ActionKind::CreateDeployment:
    case ActionKind::Apply:
      co_return co_await apply(std::move(task), std::move(place), std::move(stop));
    case ActionKind::Patch:
      co_return co_await patch(std::move(task), std::move(place), std::move(stop));
    case ActionKind::Delete:
      co_return co_await remove(std::move(task), std::move(place), std::move(stop));
    case ActionKind::RunHealthCheck:
    case ActionKind::WaitFor:
      co_return co_await wait_for(std::move(task), std::move(place), std::move(stop));
    case ActionKind::RunJob:
      co_return co_await run_job(std::move(task), std::move(place), std::move(stop));
    case ActionKind::Send:
      co_return co_await send(std::move(task), std::move(place), std::move(stop));
    case ActionKind::Emit:
      co_return co_await emit(std::move(task), std::move(place), std::move(stop));
    case ActionKind::DeleteResources:
      break;
  }
  co_return fail(ErrorKind::InvalidInput, "unknown action");
}

io::Task<Result<Executor::Clearing>> Executor::clear(const Assignment* task, Place place,
                                                     std::stop_token stop) {
  const Asking asking = acting_for(*task);
  const auto is_in_the_way = [task](const std::optional<json::Value>& live) {
    return live && !has_been_done(*live, task->owner, task->action.id) &&
           (is_being_deleted(*live) ||
            is_earlier_job(*live, task->plan.kind, task->owner, task->action.id));
  };
  std::optional<json::Value> live = HANGAR_CO_TRY(co_await look(asking, place, stop));
  if (!is_in_the_way(live)) co_return Clearing{.live = std::move(live)};

  const std::optional<Error> unwatched = HANGAR_CO_TRY(co_await watch(task, place, stop));
  live = HANGAR_CO_TRY(co_await look(asking, place, stop));
  if (live && !is_being_deleted(*live) &&
      is_earlier_job(*live, task->plan.kind, task->owner, task->action.id)) {
    if (belongs_to_any(*live, task->owner, task->others)) {
      co_return Clearing{
          .waits = waits(place, "an earlier action of that name has not finished", unwatched)};
    }
    // Deletes by uid: a second attempt, after a crash, does not delete the next object of
    // this name.
    pass(CrashPoint::BeforeEffect);
    HANGAR_CO_TRY(co_await remove_uid(
        asking, place, std::string(json::string_at(*live, {"metadata", "uid"})), stop));
    pass(CrashPoint::EffectDone);
    live = HANGAR_CO_TRY(co_await look(asking, place, stop));
  }
  if (is_in_the_way(live)) {
    co_return Clearing{.waits = waits(place, "it is being deleted", unwatched)};
  }
  co_return Clearing{.live = std::move(live)};
}

// The machine chose the name, so an object of that name may belong to another owner: apply() checks
// first.
io::Task<Result<Ended>> Executor::apply(Assignment task, Place place, std::stop_token stop) {
  const Asking asking = acting_for(task);
  const bool is_name_ours = task.plan.kind != ActionKind::Apply &&
                            json::string_at(task.action.params, {"name"}).empty() &&
                            json::find(task.action.params, {"manifest"}) == nullptr;
  bool is_ours = true;
  if (!task.is_fresh || !is_name_ours) {
    const Clearing clearing = HANGAR_CO_TRY(co_await clear(&task, place, stop));
    if (clearing.waits) co_return *clearing.waits;
    const std::optional<json::Value>& live = clearing.live;
    is_ours = !live || is_owned(*live, task.owner);
    if (live && has_been_done(*live, task.owner, task.action.id)) {
      (void)watches_.children(place.resource);
      Executor::Done already = done(task);
      already.seen = json::string_at(*live, {"metadata", "resourceVersion"});
      co_return already;
    }
    if (!is_ours && task.plan.kind != ActionKind::Apply) {
      co_return final_failure(
          "AlreadyExists",
          fmt::format("{} {} exists and is not this workflow's: choose another name",
                      task.plan.gvk.kind, task.plan.key.to_string()));
    }
  }
  json::Value document = std::move(task.plan.document);
  if (place.resource.namespaced) {
    json::set_at(document, {"metadata", "namespace"}, json::Value(place.key.namespace_));
  }
  if (is_ours && place.resource.namespaced && place.key.namespace_ == task.owner.key.namespace_) {
    add_owner_reference(document, task.owner);
  }
  if (!is_ours) {
    // The object keeps its owner: the workflow neither owns nor deletes it.
    json::erase_at(document, {"metadata", "labels", kUidLabel});
    json::erase_at(document, {"metadata", "annotations", kNameAnnotation});
  }
  pass(CrashPoint::BeforeEffect);
  const json::Value answer = HANGAR_CO_TRY(co_await task.recording.recorded(
      writes(recorder::Verb::Patch, place), [&](kube::RequestObserver* observer) {
        return asking.client.observed_by(observer).apply(
            place.resource, std::move(document),
            {.field_manager = std::string(kFieldManager), .force = task.plan.is_forced}, stop);
      }));
  pass(CrashPoint::EffectDone);
  (void)watches_.children(place.resource);
  Executor::Done made = done(task);
  made.seen = json::string_at(answer, {"metadata", "resourceVersion"});
  co_return made;
}

io::Task<Result<Ended>> Executor::patch(Assignment task, Place place, std::stop_token stop) {
  const Asking asking = acting_for(task);
  if (!task.is_fresh) {
    const std::optional<json::Value> live = HANGAR_CO_TRY(co_await look(asking, place, stop));
    if (live && has_been_done(*live, task.owner, task.action.id)) co_return done(task);
  }
  pass(CrashPoint::BeforeEffect);
  HANGAR_CO_TRY(co_await task.recording.recorded(
      writes(recorder::Verb::Patch, place), [&](kube::RequestObserver* observer) {
        return asking.client.observed_by(observer).patch(
            place.resource, place.key, task.plan.patch_type, std::move(task.plan.document),
            {.field_manager = std::string(kFieldManager)}, stop);
      }));
  pass(CrashPoint::EffectDone);
  co_return done(task);
}

// First find out which object it is, then delete that object and no later one of the same name.
io::Task<Result<Ended>> Executor::remove(Assignment task, Place place, std::stop_token stop) {
  const Asking asking = acting_for(task);
  if (task.action.target.empty()) {
    const std::optional<json::Value> live = HANGAR_CO_TRY(co_await look(asking, place, stop));
    if (!live) co_return done(task);
    co_return Pinned{.uid = std::string(json::string_at(*live, {"metadata", "uid"}))};
  }
  pass(CrashPoint::BeforeEffect);
  const Result<> removed = co_await remove_uid(asking, place, task.action.target, stop);
  pass(CrashPoint::EffectDone);
  if (!removed) co_return std::unexpected(removed.error());
  co_return done(task);
}

io::Task<Result<>> Executor::remove_uid(Asking asking, Place place, std::string uid,
                                        std::stop_token stop) {
  const Result<json::Value> removed = co_await asking.recording.recorded(
      {.verb = recorder::Verb::Delete, .resource = place.resource, .key = place.key},
      [&](kube::RequestObserver* observer) {
        return asking.client.observed_by(observer).remove(
            place.resource, place.key,
            {.propagation = kube::Propagation::Background, .uid = std::move(uid)}, stop);
      });
  const bool is_gone = removed || removed.error().kind() == ErrorKind::NotFound ||
                       removed.error().kind() == ErrorKind::Conflict;
  if (!is_gone) co_return std::unexpected(removed.error());
  co_return Result<>();
}

io::Task<Result<>> Executor::remove_one(Asking asking, Owner owner, OwnedResource resource,
                                        std::stop_token stop) {
  Result<Place> place =
      co_await find(owner.key, kube::make_gvk(resource.api_version, resource.kind),
                    {.namespace_ = resource.namespace_, .name = resource.name}, stop);
  // A kind that is no longer served has no objects.
  if (!place && place.error().kind() == ErrorKind::NotFound) co_return Result<>();
  if (!place) co_return std::unexpected(std::move(place).error());
  Result<std::optional<json::Value>> live = co_await look(asking, *place, stop);
  if (!live && live.error().kind() == ErrorKind::Denied) {
    // A workflow that may not read the object may not have made it either: the host checks that.
    const Error denied = live.error();
    live = co_await look({.client = client_, .recording = asking.recording}, *place, stop);
    if (live && *live && is_owned(**live, owner)) co_return std::unexpected(denied);
  }
  if (!live) co_return std::unexpected(std::move(live).error());
  if (!*live || !is_owned(**live, owner)) co_return Result<>();
  co_return co_await remove_uid(std::move(asking), *std::move(place),
                                std::string(json::string_at(**live, {"metadata", "uid"})),
                                std::move(stop));
}

io::Task<Result<Ended>> Executor::remove_made(Assignment task, std::stop_token stop) {
  const Asking asking = acting_for(task);
  pass(CrashPoint::BeforeEffect);
  // The last one made is deleted first. A failure to delete one object does not keep the others.
  std::optional<Error> failure;
  for (const OwnedResource& resource : std::views::reverse(task.resources)) {
    const Result<> removed = co_await remove_one(asking, task.owner, resource, stop);
    if (removed) continue;
    if (removed.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(removed.error());
    if (!failure) failure = removed.error();
  }
  pass(CrashPoint::EffectDone);
  if (failure) co_return std::unexpected(*std::move(failure));
  co_return Done{.event = done_event(task.action)};
}

// Called before the object is read. One watch serves the own objects of all workflows.
io::Task<Result<std::optional<Error>>> Executor::watch(const Assignment* task, Place place,
                                                       std::stop_token stop) {
  if (is_made_by(*task, place)) (void)watches_.children(place.resource);
  const bool is_its_own = HANGAR_CO_TRY(co_await has_made(task, place, stop));
  if (is_its_own) co_return watches_.children(place.resource).last_error();
  co_return watches_.hold(task->owner.key, {.resource = place.resource, .key = place.key})
      .last_error();
}

// The ledger lists what actions were asked to make, also if they may not: the object itself has to
// say that it is the workflow's.
io::Task<Result<bool>> Executor::has_made(const Assignment* task, Place place,
                                          std::stop_token stop) {
  const bool is_watched =
      std::as_const(watches_).children(place.resource.gvk().group_kind()) != nullptr;
  if (!is_watched || !is_made_by(*task, place)) co_return false;
  const Result<> synced = co_await watches_.children(place.resource).wait_synced(stop);
  if (!synced && synced.error().kind() == ErrorKind::Cancelled) {
    co_return std::unexpected(synced.error());
  }
  const kube::ObjectPtr made = synced ? watches_.children(place.resource).get(place.key) : nullptr;
  if (!made) co_return false;
  co_return is_owned(made->to_value(), task->owner);
}

// The machine may name any object, and the host would watch it with its own rights; the time of a
// wake-up alone reveals that the object changed. So the account must be able to read the object
// first, unless the watch for all workflows has it as one that this workflow made.
io::Task<Result<>> Executor::may_watch(const Assignment* task, Place place, std::stop_token stop) {
  const kube::ObjectKey& holder = task->owner.key;
  const bool is_its_own = HANGAR_CO_TRY(co_await has_made(task, place, stop));
  if (is_its_own || watches_.is_held(holder, {.resource = place.resource, .key = place.key})) {
    co_return Result<>();
  }
  const std::size_t held = watches_.held_count(
      [&](const kube::ObjectKey& other) { return other.namespace_ == holder.namespace_; });
  if (held >= limits::kWorkflowWatchesMax) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("the workflows of namespace {} watch {} objects, which is the "
                               "most: let some of them end",
                               holder.namespace_, held));
  }
  HANGAR_CO_TRY(co_await look(acting_for(*task), place, stop));
  co_return Result<>();
}

io::Task<Result<Ended>> Executor::wait_for(Assignment task, Place place, std::stop_token stop) {
  HANGAR_CO_TRY(co_await may_watch(&task, place, stop));
  const std::optional<Error> unwatched = HANGAR_CO_TRY(co_await watch(&task, place, stop));
  const std::optional<json::Value> live =
      HANGAR_CO_TRY(co_await look(acting_for(task), place, stop));
  if (task.plan.kind == ActionKind::RunHealthCheck) {
    if (!live) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("there is no Deployment {}", place.key.to_string()));
    }
    const reconcile::Readiness health = reconcile::workload_readiness("Deployment", *live);
    if (!health.is_ready()) co_return waits(place, health.why, unwatched);
    Executor::Done healthy = done(task);
    healthy.event.as_object()["deploymentName"] = task.plan.key.name;
    co_return healthy;
  }
  if (task.plan.wish.is_gone) {
    if (live) co_return waits(place, "it is still there", unwatched);
    co_return done(task);
  }
  if (!live) co_return waits(place, "there is none", unwatched);
  if (const std::string why = unmet(task.plan.wish, *live); !why.empty()) {
    co_return waits(place, why, unwatched);
  }
  co_return done(task);
}

io::Task<Result<Ended>> Executor::run_job(Assignment task, Place place, std::stop_token stop) {
  if (task.action.target.empty()) {
    const Asking asking = acting_for(task);
    Assignment making = task;
    Ended made = HANGAR_CO_TRY(co_await apply(std::move(making), place, stop));
    if (!std::holds_alternative<Done>(made)) co_return made;
    const std::optional<json::Value> job = HANGAR_CO_TRY(co_await look(asking, place, stop));
    if (!job) co_return final_failure("JobDeleted", "the Job was deleted before it finished");
    // Once the uid is known, a Job that is gone is not created again.
    co_return Pinned{.uid = std::string(json::string_at(*job, {"metadata", "uid"}))};
  }
  const std::optional<Error> unwatched = HANGAR_CO_TRY(co_await watch(&task, place, stop));
  const std::optional<json::Value> job =
      HANGAR_CO_TRY(co_await look(acting_for(task), place, stop));
  if (!job || json::string_at(*job, {"metadata", "uid"}) != task.action.target) {
    co_return final_failure("JobDeleted", "the Job was deleted before it finished");
  }
  const reconcile::Readiness readiness = reconcile::job_readiness(*job);
  if (readiness.state == reconcile::Readiness::State::Failed) {
    const json::Value* const condition =
        reconcile::find_condition(*json::find(*job, {"status"}), "Failed");
    co_return final_failure(
        "JobFailed", fmt::format("the Job {} failed: {}", place.key.name,
                                 condition == nullptr ? std::string_view()
                                                      : json::string_at(*condition, {"message"})));
  }
  if (!readiness.is_ready()) co_return waits(place, "it has not finished", unwatched);
  co_return done(task);
}

// The receiver accepts an id once, however often it is sent.
io::Task<Result<Ended>> Executor::send(Assignment task, Place place, std::stop_token stop) {
  json::Value event = std::move(task.plan.document);
  event.as_object()["sender"] = task.owner.key.to_string();
  const std::string text = json::dump(event);
  if (text.size() > limits::kWorkflowEventBytesMax) {
    co_return final_failure(
        "TooLarge", fmt::format("an event has at most {} bytes", limits::kWorkflowEventBytesMax));
  }
  const std::string key = std::string(kSignalPrefix) + signal_id(task.owner, task.action);
  json::Object annotations;
  annotations[key] = text;
  pass(CrashPoint::BeforeEffect);
  HANGAR_CO_TRY(co_await task.recording.recorded(
      writes(recorder::Verb::Patch, place), [&](kube::RequestObserver* observer) {
        return acting_for(task).client.observed_by(observer).patch(
            place.resource, place.key, kube::PatchType::Merge,
            json::Object{{"metadata", json::Object{{"annotations", std::move(annotations)}}}},
            {.field_manager = std::string(kFieldManager)}, stop);
      }));
  pass(CrashPoint::EffectDone);
  co_return done(task);
}

io::Task<Result<Ended>> Executor::emit(Assignment task, Place place, std::stop_token stop) {
  pass(CrashPoint::BeforeEffect);
  const Result<json::Value> made = co_await task.recording.recorded(
      writes(recorder::Verb::Create, place), [&](kube::RequestObserver* observer) {
        return acting_for(task).client.observed_by(observer).create(
            place.resource, std::move(task.plan.document),
            {.field_manager = std::string(kFieldManager)}, stop);
      });
  pass(CrashPoint::EffectDone);
  if (!made && kube::reason_of(made.error()) != "AlreadyExists") {
    co_return std::unexpected(made.error());
  }
  co_return Done{.event = done_event(task.action)};
}

}  // namespace hangar::workflows
