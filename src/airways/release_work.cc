#include "airways/release_work.h"

#include "airways/instance.h"
#include "airways/limits.h"
#include "airways/lua_rules.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/readiness.h"
#include "airways/refusals.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/terms.h"
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "io/all.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "recorder/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

kube::Resource endpoint_slice_resource() {
  return {.group = "discovery.k8s.io",
          .version = "v1",
          .plural = "endpointslices",
          .kind = "EndpointSlice",
          .namespaced = true};
}

// The prefix of yoke's errors of both steps.
std::string_view doing(bool dry_run) {
  return dry_run ? "failed to apply resources: dry run" : "failed to apply resources";
}

}  // namespace

ReleaseWork::ReleaseWork(ReleaseParts parts, std::optional<kube::Client> client,
                         const Release& release, Instance& memory, CarryOptions options,
                         std::stop_token stop)
    : parts_(parts),
      client_(std::move(client)),
      release_(release),
      memory_(memory),
      options_(options),
      stop_(std::move(stop)),
      running_script_(parts_.loop, 1) {
  HANGAR_ASSERT(memory_.history.has_value(), "a release is worked on with its history");
}

const kube::Client& ReleaseWork::client() const {
  HANGAR_ASSERT(client_.has_value(), "the client is set before it is used");
  return *client_;
}

io::Task<Result<kube::Resource>> ReleaseWork::find(kube::GroupVersionKind gvk) const {
  Result<kube::Resource> found =
      co_await parts_.view.discovery().find(std::move(gvk), parts_.consumer, stop_);
  if (!found && found.error().kind() == ErrorKind::NotFound) {
    // The kind may be installed later: worth a retry, unlike an invalid document.
    co_return std::unexpected(Error(ErrorKind::Unavailable, found.error().message())
                                  .with_reason(std::string(kKindNotServed)));
  }
  co_return found;
}

io::Task<Result<>> ReleaseWork::prepare(Stages& stages) {
  Scopes scopes = scopes_defined_in(stages);
  for (const kube::GroupVersionKind& gvk : kinds_to_discover(stages)) {
    const Result<kube::Resource> resource = co_await find(gvk);
    if (!resource) {
      co_return std::unexpected(Error(resource.error()).in(while_discovering(gvk, stages)));
    }
    scopes[gvk.group_kind()] = resource->namespaced;
    HANGAR_CO_TRY(co_await parts_.view.watch_children(*resource, stop_));
  }
  co_return prepare_release(stages, release_, scopes);
}

io::Task<Result<Progress>> ReleaseWork::apply(const Stages& stages,
                                              const std::optional<Source>& source) {
  is_recorded_ = false;
  std::vector<Instance::Released>& released = memory_.released;
  if (stages.empty()) released.clear();
  for (std::size_t index = 0; index < stages.size(); ++index) {
    Progress progress = HANGAR_CO_TRY(co_await apply_stage(stages[index], stages, source));
    if (index == 0) released.clear();
    const std::size_t first = released.size();
    for (const json::Value& resource : stages[index]) {
      released.push_back({.ref = ref_of(resource), .gvk = HANGAR_CO_TRY(kube::gvk_of(resource))});
    }
    if (!progress.done) co_return progress;
    if (index + 1 == stages.size()) break;
    // The next stage may need this one, so it begins when this one is ready. The earlier ones were
    // ready a moment ago: with thousands of stages, looking at them again would take minutes.
    const ReleaseReadiness ready = HANGAR_CO_TRY(co_await readiness_from(first));
    if (ready.state == Readiness::State::Failed) {
      co_return fail(ErrorKind::GuestFault, "release did not become ready: " + ready.why);
    }
    if (!ready.is_ready()) {
      co_return Progress{.done = false, .waiting_for = ready.why, .failure = ready.failure};
    }
  }
  std::set<ResourceRef> present;
  for (const Instance::Released& one : released)
    present.insert(one.ref);
  const auto is_gone = [&](const auto& entry) { return !present.contains(entry.first); };
  std::erase_if(memory_.applied, is_gone);
  std::erase_if(memory_.scripted, is_gone);
  co_return Progress{};
}

io::Task<Result<Progress>> ReleaseWork::apply_stage(const Stage& stage, const Stages& stages,
                                                    const std::optional<Source>& source) {
  std::vector<io::Task<Result<LiveFact>>> looks;
  looks.reserve(stage.size());
  for (const json::Value& resource : stage)
    looks.push_back(look_at(&resource));
  std::vector<LiveFact> facts;
  for (Result<LiveFact>& fact : co_await io::all(parts_.loop, std::move(looks))) {
    facts.push_back(HANGAR_CO_TRY(std::move(fact)));
  }
  Result<StagePlan> planned = plan_stage(stage, facts, release_, options_.adoption);
  if (!planned) {
    const bool is_rehearsed = options_.rehearse != Rehearse::Nothing;
    co_return std::unexpected(std::move(planned).error().in(doing(is_rehearsed)));
  }
  const StagePlan plan = *std::move(planned);
  if (!plan.apply.empty()) {
    HANGAR_CO_TRY(co_await send_all(stage, rehearsal_of(plan, options_.rehearse), true));
    // Once: to compare all stages with the record again takes long for a large release.
    if (source && !is_recorded_) {
      HANGAR_CO_TRY(co_await memory_.history->record(stages, *source, io::Loop::wall_now(), stop_));
      is_recorded_ = true;
    }
    HANGAR_CO_TRY(co_await send_all(stage, plan.apply, false));
  }
  if (!plan.terminating.empty()) {
    co_return Progress{
        .done = false,
        .waiting_for = canonical_name(stage[plan.terminating.front()]) + " is still being deleted"};
  }
  co_return Progress{};
}

io::Task<Result<LiveFact>> ReleaseWork::look_at(const json::Value* resource) {
  const ResourceRef ref = ref_of(*resource);
  const auto applied = memory_.applied.find(ref);
  LiveFact fact{.live = parts_.view.child(ref),
                .applied = applied == memory_.applied.end() ? nullptr : &applied->second};
  if (fact.live) co_return fact;
  // Not a known child: it may belong to another owner, or it was created a moment ago.
  const kube::GroupVersionKind gvk = HANGAR_CO_TRY(kube::gvk_of(*resource));
  kube::Resource kind = HANGAR_CO_TRY(co_await find(gvk));
  HANGAR_CO_TRY(co_await parts_.view.watch_children(kind, stop_));
  fact.live =
      HANGAR_CO_TRY(co_await parts_.view.read_as(client(), std::move(kind), ref.key(), stop_));
  co_return fact;
}

io::Task<Result<json::Value>> ReleaseWork::send(const json::Value* resource, bool dry_run) const {
  const kube::GroupVersionKind gvk = HANGAR_CO_TRY(kube::gvk_of(*resource));
  kube::Resource kind = HANGAR_CO_TRY(co_await find(gvk));
  const kube::ApplyOptions options{.field_manager = std::string(kFieldManager),
                                   .force = options_.force_conflicts,
                                   .dry_run = dry_run};
  const kube::ObjectKey key = ref_of(*resource).key();
  const FlightRecording::Request request{.verb = recorder::Verb::Patch,
                                         .resource = kind,
                                         .key = key,
                                         .field_manager = kFieldManager,
                                         .is_dry_run = dry_run};
  Result<json::Value> answer = co_await recorded(request, [&](kube::RequestObserver* observer) {
    return client().observed_by(observer).apply(kind, *resource, options, stop_);
  });
  if (!answer) co_return std::unexpected(std::move(answer).error().in(canonical_name(*resource)));
  co_return answer;
}

io::Task<Result<json::Value>> ReleaseWork::recorded(FlightRecording::Request request,
                                                    FlightRecording::Send send) const {
  if (parts_.recording == nullptr) co_return co_await send(nullptr);
  co_return co_await parts_.recording->recorded(request, std::move(send));
}

io::Task<Result<>> ReleaseWork::send_all(const Stage& stage, const std::vector<ApplyStep>& steps,
                                         bool dry_run) {
  std::optional<Error> error;  // The first one.
  Refusals refusals;
  for (std::size_t first = 0; first < steps.size(); first += limits::kParallelAppliesMax) {
    const std::size_t end = std::min(first + limits::kParallelAppliesMax, steps.size());
    std::vector<io::Task<Result<json::Value>>> sends;
    for (std::size_t index = first; index < end; ++index) {
      const json::Value& desired = stage[steps[index].index];
      // Whatever the answer is, the resource may exist from now on.
      if (!dry_run) memory_.pruned.erase(ref_of(desired));
      sends.push_back(send(&desired, dry_run));
    }
    std::vector<Result<json::Value>> answers = co_await io::all(parts_.loop, std::move(sends));
    for (std::size_t index = first; index < end; ++index) {
      Result<json::Value>& answer = answers[index - first];
      const json::Value& desired = stage[steps[index].index];
      if (!answer) {
        // All messages are collected, so that the user can fix all of them at once.
        refusals.add(answer.error().message());
        if (!error) error = std::move(answer).error();
      } else if (!dry_run) {
        memory_.applied[ref_of(desired)] = applied_of(desired, *answer);
      }
    }
  }
  if (refusals.count() > 1) error = Error(error->kind(), refusals.to_string());
  if (error) co_return std::unexpected(std::move(*error).in(doing(dry_run)));
  co_return Result<>();
}

io::Task<Result<Progress>> ReleaseWork::prune(const Stages& wanted) {
  return prune(memory_.history->inventory(), wanted);
}

io::Task<Result<Progress>> ReleaseWork::prune(const Stages& previous, const Stages& wanted) {
  const auto groups = plan_prune(previous, wanted, options_.prune);
  for (const std::vector<PruneStep>& group : groups) {
    std::vector<io::Task<Result<Progress>>> steps;
    for (const PruneStep& step : group) {
      const bool is_done = memory_.pruned.contains(step.ref) && !parts_.view.seen(step.ref);
      if (!is_done) steps.push_back(prune_one(step));
    }
    Progress all;
    for (Result<Progress>& one : co_await io::all(parts_.loop, std::move(steps))) {
      Progress progress = HANGAR_CO_TRY(std::move(one));
      if (!progress.done) all = std::move(progress);
    }
    // This group may depend on the next ones, so those stay until it is gone.
    if (!all.done) co_return all;
  }
  memory_.pruned.clear();
  co_return Progress{};
}

io::Task<Result<Progress>> ReleaseWork::prune_one(PruneStep step) {
  Result<kube::Resource> kind =
      co_await parts_.view.discovery().find(step.gvk, parts_.consumer, stop_);
  if (!kind) {
    // The objects of a kind that is gone are gone, too.
    if (kind.error().kind() == ErrorKind::NotFound) co_return Progress{};
    co_return std::unexpected(std::move(kind).error());
  }
  HANGAR_CO_TRY(co_await parts_.view.watch_children(*kind, stop_));
  const kube::ObjectPtr live =
      HANGAR_CO_TRY(co_await parts_.view.read(*kind, step.ref.key(), stop_));
  const std::optional<json::Value> value = live ? std::optional(live->to_value()) : std::nullopt;
  const kube::ObjectKey key = step.ref.key();
  const Progress waiting{.done = false, .waiting_for = step.ref.to_string() + " is being deleted"};
  switch (prune_action(step, value ? &*value : nullptr, release_)) {
    case PruneAction::Leave:
      memory_.pruned.insert(step.ref);
      co_return Progress{};
    case PruneAction::Wait:
      co_return waiting;
    case PruneAction::Orphan: {
      if (const auto patch = orphan_patch(*value, release_)) {
        HANGAR_CO_TRY(co_await recorded({.verb = recorder::Verb::Patch,
                                         .resource = *kind,
                                         .key = key,
                                         .field_manager = kFieldManager},
                                        [&](kube::RequestObserver* observer) {
                                          return client().observed_by(observer).patch(
                                              *kind, key, kube::PatchType::Merge, *patch,
                                              {.field_manager = std::string(kFieldManager)}, stop_);
                                        }));
      }
      memory_.pruned.insert(step.ref);
      co_return Progress{};
    }
    case PruneAction::Delete:
      break;
  }
  const Result<json::Value> removed = co_await recorded(
      {.verb = recorder::Verb::Delete, .resource = *kind, .key = key},
      [&](kube::RequestObserver* observer) {
        return client().observed_by(observer).remove(
            *kind, key,
            {.propagation = kube::Propagation::Foreground, .uid = std::string(live->uid())}, stop_);
      });
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(Error(removed.error()).in("delete " + step.ref.to_string()));
  }
  memory_.applied.erase(step.ref);
  co_return waiting;
}

io::Task<Result<ReleaseReadiness>> ReleaseWork::readiness() {
  return readiness_from(0);
}

io::Task<Result<ReleaseReadiness>> ReleaseWork::readiness_from(std::size_t first) {
  scripts_time_ = {};
  std::vector<io::Task<Result<Readiness>>> looks;
  for (std::size_t index = first; index < memory_.released.size(); ++index)
    looks.push_back(readiness_of_one(memory_.released[index]));
  ReleaseReadiness worst;
  std::vector<Result<Readiness>> answers = co_await io::all(parts_.loop, std::move(looks));
  for (std::size_t index = 0; index < answers.size(); ++index) {
    Readiness readiness = HANGAR_CO_TRY(std::move(answers[index]));
    Instance::Released& one = memory_.released[first + index];
    one.is_ready = readiness.is_ready();
    if (!is_worse(readiness, worst)) continue;
    worst.failure =
        fmt::format("failed to get readiness for {}: {}",
                    canonical_name(one.gvk, one.ref.namespace_, one.ref.name), readiness.why);
    worst.why = fmt::format("{}: {}", one.ref.to_string(), readiness.why);
    worst.state = readiness.state;
  }
  co_return worst;
}

io::Task<Result<Readiness>> ReleaseWork::readiness_of_one(Instance::Released one) {
  const ResourceRef& ref = one.ref;
  const kube::ObjectPtr live =
      HANGAR_CO_TRY(co_await parts_.view.look_at_child(one.gvk, ref, stop_));
  const auto applied = memory_.applied.find(ref);
  Readiness result{.state = Readiness::State::NotReady, .why = "it is not seen in the cluster yet"};
  if (!live) co_return result;
  if (is_from_before(*live, applied == memory_.applied.end() ? nullptr : &applied->second)) {
    co_return result;
  }

  const json::Value value = live->to_value();
  ReadinessFacts facts{.has_endpoint_slice = memory_.services_with_endpoints.contains(live->uid()),
                       .custom = &parts_.custom_readiness};
  if (!facts.has_endpoint_slice && needs_endpoint_slices(value)) {
    kube::ListOptions options{.namespace_ = ref.namespace_,
                              .label_selector = "kubernetes.io/service-name=" + ref.name,
                              // From the server's cache: a slice that it lacks is looked for again
                              // soon.
                              .resource_version = "0"};
    const kube::List slices = HANGAR_CO_TRY(
        co_await parts_.client.list(endpoint_slice_resource(), std::move(options), stop_));
    facts.has_endpoint_slice = !slices.items.empty();
    // Only until one is found: slices come and go with the pods, which does not make the Service
    // less ready.
    if (facts.has_endpoint_slice) memory_.services_with_endpoints.emplace(live->uid());
  }
  if (std::shared_ptr<const LuaScript> script = deciding_script(value, parts_.custom_readiness)) {
    facts.scripted =
        HANGAR_CO_TRY(co_await scripted_readiness(std::move(script), ref, live, value));
  }
  co_return readiness_of(value, facts);
}

io::Task<Result<Readiness>> ReleaseWork::scripted_readiness(std::shared_ptr<const LuaScript> script,
                                                            ResourceRef ref, kube::ObjectPtr live,
                                                            const json::Value& value) {
  HANGAR_ASSERT(parts_.lua != nullptr, "rules in Lua come with what runs them");
  const auto is_known = [&](const Instance::Scripted& known) {
    return known.script == script->digest && known.uid == live->uid() &&
           known.resource_version == live->resource_version();
  };
  if (const auto known = memory_.scripted.find(ref);
      known != memory_.scripted.end() && is_known(known->second)) {
    co_return known->second.readiness;
  }
  const io::Semaphore::Slot slot = HANGAR_CO_TRY(co_await running_script_.acquire(stop_));
  if (scripts_time_ >= limits::kLuaRulesTimeMax) {
    co_return Readiness{
        .state = Readiness::State::Failed,
        .why =
            fmt::format("readiness rule {} of ConfigMap {} was not run: the rules in Lua of this "
                        "release have taken more than {}",
                        script->name, script->source, to_go_duration(limits::kLuaRulesTimeMax))};
  }
  HANGAR_CO_TRY(co_await parts_.lua->prepare(stop_));  // Does not count as the scripts' time.
  const Instant began = io::Loop::now();
  Result<LuaVerdict> verdict = co_await parts_.lua->judge(script, value, parts_.consumer, stop_);
  scripts_time_ += io::Loop::now() - began;
  if (!verdict) co_return std::unexpected(std::move(verdict).error().in(ref.to_string()));
  // Scripts see nothing but the resource, so the answer changes with it only.
  if (verdict->is_cut) {
    memory_.scripted.erase(ref);
  } else {
    memory_.scripted.insert_or_assign(
        ref, Instance::Scripted{.script = script->digest,
                                .uid = std::string(live->uid()),
                                .resource_version = std::string(live->resource_version()),
                                .readiness = verdict->readiness});
  }
  co_return std::move(verdict->readiness);
}

}  // namespace hangar::airways
