#include "airways/instance_controller.h"

#include "abi/flight/evaluation.h"
#include "airways/airway.h"
#include "airways/conditions.h"
#include "airways/identity.h"
#include "airways/instance.h"
#include "airways/lookups.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/patches.h"
#include "airways/plan.h"
#include "airways/platform.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/tracker.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "reconcile/finalizer.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using reconcile::Outcome;

// What a change of an instance must not touch to be nobody's business but ours: our own status
// writes would evaluate it for ever.
json::Value without_status(json::Value value) {
  json::erase_at(value, {"status"});
  json::erase_at(value, {"metadata", "resourceVersion"});
  json::erase_at(value, {"metadata", "generation"});
  json::erase_at(value, {"metadata", "managedFields"});
  return value;
}

// Readiness that depends on something whose changes are not watched (EndpointSlices, custom rules)
// is looked at again after this; yoke's own interval.
constexpr std::chrono::seconds kReadinessRecheck{5};

// When to come back if nothing happens: for what is asked for, or for the next look at drift.
Outcome outcome_until_drift(const Instance& memory, Instant now,
                            std::optional<Duration> look_again_after) {
  Outcome outcome{.requeue_after = look_again_after};
  if (memory.drift_due) {
    const Duration until = std::max(Duration::zero(), Duration(*memory.drift_due - now));
    outcome.requeue_after = std::min(outcome.requeue_after.value_or(Duration::max()), until);
  }
  return outcome;
}

std::string evaluation_failure(const abi::flight::Output& output) {
  const std::string_view text = output.stderr_bytes.empty()
                                    ? std::string_view("(no output captured on stderr)")
                                    : std::string_view(output.stderr_bytes);
  return fmt::format("failed to evaluate flight: failed to instantiate module: {}", text);
}

}  // namespace

// One reconcile's view of its instance.
struct InstanceController::Work {
  kube::ObjectKey key;
  Instance& memory;
  std::shared_ptr<const Binding> binding;
  std::stop_token stop;
  json::Value value;  // The newest state; replaced by the answer to each of our writes.
  Release release;

  json::Value evaluated = {};                // What the flight was given.
  Stages stages = {};                        // What it printed.
  std::optional<json::Value> identity = {};  // Itself, if it printed that.
  std::optional<Verdict> verdict = {};       // What we make of it.
  std::optional<Duration> look_again_after = {};
};

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
      {.resource = kind_}, {.on_delta = [this](const kube::Delta& delta) { on_instance(delta); }});
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

// Whether the spec has changed since: what we would say of it now is of no use, and would be
// refused. That change will have brought this instance into the queue again.
bool InstanceController::is_overtaken(const Work& work) const {
  const kube::ObjectPtr cached = subscription_ ? subscription_->get(work.key) : nullptr;
  return cached && cached->uid() == json::string_at(work.value, {"metadata", "uid"}) &&
         cached->generation() > json::int_at(work.value, {"metadata", "generation"});
}

// Whether a child, or something looked up, is another than our last apply left it.
bool InstanceController::has_news(const Instance& memory, const ResourceRef& ref) const {
  const auto applied = memory.applied.find(ref);
  const kube::ObjectPtr child = platform_.view.child(ref);
  if (applied == memory.applied.end() || !child || child->uid() != applied->second.uid) return true;
  const std::string_view version = child->resource_version();
  return version != applied->second.resource_version &&
         !is_older(version, applied->second.resource_version);
}

io::Task<Result<Outcome>> InstanceController::reconcile(kube::ObjectKey key, std::stop_token stop) {
  Instance& memory = memory_of(key);
  const kube::ObjectPtr object = newest(key, memory);
  if (!object) {
    forget(key);
    co_return Outcome{};
  }
  json::Value value = object->to_value();
  Release release = release_of(value);
  Work work{.key = std::move(key),
            .memory = memory,
            .binding = binding_,
            .stop = std::move(stop),
            .value = std::move(value),
            .release = std::move(release)};
  if (!memory.history) memory.history.emplace(platform_.client, work.release);

  const bool waited_for_release = memory.waiting == Waiting::Release;
  // A change that arrives while this reconcile runs must bring it back; the real answer is set at
  // the end.
  memory.waiting = Waiting::Release;
  if (object->is_being_deleted()) {
    if (!kube::has_finalizer(work.value, kInstanceFinalizer)) {
      memory.waiting = Waiting::Nothing;
      co_return Outcome{};
    }
    co_return co_await tear_down(work);
  }
  if (!work.binding) {
    memory.waiting = Waiting::Nothing;
    co_return Outcome{};
  }

  const bool is_changed = std::ranges::any_of(
      memory.changed, [&](const ResourceRef& ref) { return has_news(memory, ref); });
  const Instant now = io::Loop::now();
  const bool is_drift_due = memory.drift_due && *memory.drift_due <= now;
  if (memory.evaluate || is_changed || is_drift_due || waited_for_release) {
    memory.evaluate = false;
    memory.changed.clear();
    co_return co_await evaluate(work);
  }
  memory.changed.clear();
  if (memory.flight_owned_ready) {
    // Ready is the flight's to say, and it has nothing new to say before it runs again.
    memory.waiting = Waiting::Nothing;
    co_return outcome_until_drift(memory, now, {});
  }
  // Only how ready the release is can have changed.
  HANGAR_CO_TRY(co_await memory.history->load(work.stop));
  HANGAR_CO_TRY(co_await settle(work));
  HANGAR_CO_TRY(co_await write_status(work, work.verdict));
  co_return outcome_until_drift(memory, now, work.look_again_after);
}

// Finalizer and owner reference, in one write, before anything is made.
io::Task<Result<>> InstanceController::claim(Work& work) {
  std::optional<json::Value> patch = claim_patch(work.value, work.binding->airway);
  if (!patch) co_return Result<>();
  Result<json::Value> answer = co_await platform_.client.patch(
      kind_, work.key, kube::PatchType::Merge, *std::move(patch),
      {.field_manager = std::string(kControllerFieldManager)}, work.stop);
  if (!answer) co_return std::unexpected(std::move(answer).error().in("claim the instance"));
  co_return remember(work, *std::move(answer));
}

// The answer to our own write is newer than what the cache has.
Result<> InstanceController::remember(Work& work, json::Value answer) {
  work.memory.latest = HANGAR_TRY(kube::Object::make(std::move(answer), kind_.gvk()));
  work.value = work.memory.latest->to_value();
  return {};
}

io::Task<Result<Outcome>> InstanceController::evaluate(Work& work) {
  Instance& memory = work.memory;
  const Airway& airway = work.binding->airway;
  HANGAR_CO_TRY(co_await claim(work));
  HANGAR_CO_TRY(co_await memory.history->load(work.stop));

  warn_of_unsupported(work);

  const ResourceRef self = work.release.instance;
  platform_.tracker.begin(self, airway.mode);
  Result<> done = co_await release(work);
  if (done) done = co_await settle(work);
  platform_.tracker.end(self, done ? Tracker::End::Succeeded : Tracker::End::Failed);
  if (done) {
    const std::vector<ResourceRef> tracked = platform_.tracker.tracked(self);
    platform_.view.keep_external(self, tracked);
  }

  std::optional<Error> error;
  if (!done) {
    memory.waiting = Waiting::Nothing;
    error = std::move(done).error();
    if (error->kind() == ErrorKind::Cancelled) co_return std::unexpected(*std::move(error));
    if (error->kind() != ErrorKind::Conflict) work.verdict = failed(error->message());
  }
  Result<> written = co_await write_status(work, work.verdict);
  if (error) {
    memory.evaluate = true;  // A retry runs the flight again.
    co_return std::unexpected(*std::move(error));
  }
  if (!written) {
    memory.evaluate = true;
    co_return std::unexpected(std::move(written).error());
  }

  const Instant now = io::Loop::now();
  memory.drift_due.reset();
  if (airway.fix_drift_interval > Duration::zero()) {
    memory.drift_due = now + airway.fix_drift_interval;
  }
  co_return outcome_until_drift(memory, now, work.look_again_after);
}

// Runs the flight and carries out what it printed.
io::Task<Result<>> InstanceController::release(Work& work) {
  const Airway& airway = work.binding->airway;
  const FlightModule& module = work.binding->module;
  work.evaluated = work.value;
  const json::Value input = HANGAR_CO_TRY(flight_input(airway, work.evaluated));
  std::shared_ptr<const wasm::Module> code =
      HANGAR_CO_TRY(co_await platform_.modules.load(module, work.stop));

  abi::flight::Evaluation evaluation{
      .release = work.release.name,
      .namespace_ = work.release.namespace_,
      .stdin_bytes = json::dump(input),
      .version = platform_.version,
      .timeout = airway.timeout.value_or(Duration(-1)),
  };
  if (airway.memory_mib_max > 0) {
    evaluation.memory_bytes_max = airway.memory_mib_max * limits::kMiB;
  }
  ReleaseLookups lookups(std::shared_ptr<const Airway>(work.binding, &airway), work.release,
                         platform_.view, platform_.tracker, work.stop);
  Result<abi::flight::Output> output = co_await abi::flight::evaluate(
      platform_.runtime, std::move(code), std::move(evaluation), lookups, work.stop);
  platform_.evaluations.add();
  if (output) {
    platform_.evaluation_cpu_seconds.observe(
        std::chrono::duration<double>(output->cpu_time).count());
  }
  if (!output) {
    co_return std::unexpected(std::move(output).error().in("failed to evaluate flight"));
  }
  if (output->exit_code != 0) {
    // What it printed is not a release, but it may still say something about itself.
    if (Result<Output> parsed = parse_output(output->stdout_bytes)) {
      work.identity = take_identity(parsed->stages, work.release.instance);
    }
    co_return fail(ErrorKind::GuestFault, evaluation_failure(*output));
  }
  Output parsed = HANGAR_CO_TRY(parse_output(output->stdout_bytes));
  work.stages = std::move(parsed.stages);
  work.identity = take_identity(work.stages, work.release.instance);

  const Source source{.url = airway.flight_url, .checksum = module.sha1};
  ReleaseWork carrying(platform_, work.release, work.memory, airway.prune, work.stop);
  HANGAR_CO_TRY(co_await carrying.prepare(work.stages));
  HANGAR_CO_TRY(check_pinned(work.memory.history->history(), source));
  std::vector<ResourceRef> refs;
  for (const Stage& stage : work.stages) {
    for (const json::Value& resource : stage)
      refs.push_back(airways::ref_of(resource));
  }
  platform_.tracker.releasing(work.release.instance, refs);

  Progress progress = HANGAR_CO_TRY(co_await carrying.apply(work.stages, source));
  Duration patience = limits::kStageReadyMax;
  if (progress.done) {
    // An empty output is a revision too.
    HANGAR_CO_TRY(
        co_await work.memory.history->record(work.stages, source, io::Loop::wall_now(), work.stop));
    progress = HANGAR_CO_TRY(co_await carrying.prune(work.stages));
    patience = limits::kPruneMax;
  }
  if (progress.done) {
    work.memory.waiting_until.reset();
    work.memory.waiting = Waiting::Readiness;  // settle() finds out.
    co_return co_await work.memory.history->activate(io::Loop::wall_now(), airway.history_max,
                                                     work.stop);
  }

  const Instant now = io::Loop::now();
  if (!work.memory.waiting_until) work.memory.waiting_until = now + patience;
  if (*work.memory.waiting_until <= now) {
    work.memory.waiting_until.reset();
    co_return fail(ErrorKind::Unavailable,
                   "release did not become ready within wait period: " + progress.waiting_for);
  }
  work.memory.waiting = Waiting::Release;
  work.look_again_after = std::min<Duration>(*work.memory.waiting_until - now, kReadinessRecheck);
  work.verdict = waiting_for_ready();
  co_return Result<>();
}

// What Ready is to say, when everything is applied.
io::Task<Result<>> InstanceController::settle(Work& work) {
  if (work.memory.waiting == Waiting::Release && work.verdict) co_return Result<>();
  const PruneOptions prune = work.binding->airway.prune;
  ReleaseWork carrying(platform_, work.release, work.memory, prune, work.stop);
  const Readiness readiness = HANGAR_CO_TRY(co_await carrying.readiness());
  switch (readiness.state) {
    case Readiness::State::Ready:
      work.memory.waiting = Waiting::Nothing;
      work.verdict = deployed();
      break;
    case Readiness::State::NotReady:
      work.memory.waiting = Waiting::Readiness;
      work.verdict = waiting_for_ready();
      work.look_again_after = kReadinessRecheck;
      break;
    case Readiness::State::Failed:
      work.memory.waiting = Waiting::Readiness;
      work.verdict = failed("failed to check release readiness: " + readiness.why);
      break;
  }
  co_return Result<>();
}

io::Task<Result<Outcome>> InstanceController::tear_down(Work& work) {
  Instance& memory = work.memory;
  if (memory.last_reason != kReasonTerminating) {
    // For people only: what counts is below.
    std::ignore = co_await write_status(work, being_removed());
  }
  HANGAR_CO_TRY(co_await memory.history->load(work.stop));
  const PruneOptions prune = work.binding ? work.binding->airway.prune : PruneOptions{};
  ReleaseWork carrying(platform_, work.release, memory, prune, work.stop);
  const Progress progress = HANGAR_CO_TRY(co_await carrying.prune({}));
  if (!progress.done) co_return Outcome{.requeue_after = kReadinessRecheck};
  HANGAR_CO_TRY(co_await memory.history->erase(work.stop));

  const Result<json::Value> removed = co_await reconcile::remove_finalizer(
      platform_.client, kind_, work.value, std::string(kInstanceFinalizer),
      std::string(kControllerFieldManager), work.stop);
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(removed.error());
  }
  memory.waiting = Waiting::Nothing;
  co_return Outcome{};
}

io::Task<Result<>> InstanceController::write_status(Work& work, std::optional<Verdict> verdict) {
  if (verdict) announce(work, *verdict);
  const json::Value& evaluated = work.evaluated.is_null() ? work.value : work.evaluated;
  StatusUpdate update = next_status({.live = work.value,
                                     .evaluated = evaluated,
                                     .identity = work.identity ? &*work.identity : nullptr,
                                     .verdict = verdict,
                                     .flight_owned_ready = work.memory.flight_owned_ready},
                                    io::Loop::wall_now());
  work.memory.flight_owned_ready = update.flight_owns_ready;
  if (!update.changed || update.outdated || is_overtaken(work)) co_return Result<>();

  json::Value patch = status_patch(work.value, std::move(update.status));
  Result<json::Value> answer = co_await platform_.client.patch(
      kind_, work.key, kube::PatchType::Json, std::move(patch),
      {.field_manager = std::string(kControllerFieldManager), .subresource = "status"}, work.stop);
  if (answer) {
    if (without_status(*answer) != without_status(work.value)) {
      // Somebody wrote to its metadata meanwhile; that event will look like news we know.
      work.memory.evaluate = true;
      controller_.enqueue(work.key);
    }
    co_return remember(work, *std::move(answer));
  }
  if (answer.error().kind() == ErrorKind::NotFound) co_return Result<>();
  if (answer.error().kind() == ErrorKind::InvalidInput) {
    // Either the generation moved on, and its event is under way, or the flight's status is not
    // what the schema allows.
    const json::Value live =
        HANGAR_CO_TRY(co_await platform_.client.get(kind_, work.key, work.stop));
    if (json::int_at(live, {"metadata", "generation"}) !=
        json::int_at(work.value, {"metadata", "generation"})) {
      co_return Result<>();
    }
    if (work.identity) {
      work.identity.reset();
      work.value = live;
      const std::string why = "the flight's status is not accepted: " + answer.error().message();
      HANGAR_CO_TRY(co_await write_status(work, failed(why)));
    }
  }
  co_return std::unexpected(std::move(answer).error().in("update the status"));
}

// An Event when what we say of Ready changes: for `kubectl describe`.
void InstanceController::announce(Work& work, const Verdict& verdict) {
  const std::string before = std::exchange(work.memory.last_reason, verdict.reason);
  if (verdict.reason == before) return;
  const bool is_error = verdict.reason == kReasonError;
  if (!is_error && verdict.reason != kReasonReady) return;
  if (is_error) {
    platform_.events.record(
        work.value, {.type = reconcile::EventType::Warning,
                     .reason = "FlightFailed",
                     .message = fmt::format("airway {}: {}", airway_name_, verdict.message)});
  } else {
    platform_.events.record(work.value, {.reason = "Deployed", .message = verdict.message});
  }
}

// Once for each set of wishes that cannot be met.
void InstanceController::warn_of_unsupported(Work& work) {
  std::vector<std::string> sentences = unsupported_of_instance(work.value);
  if (sentences == work.memory.unsupported) return;
  for (const std::string& sentence : sentences) {
    platform_.events.record(
        work.value,
        {.type = reconcile::EventType::Warning, .reason = "Unsupported", .message = sentence});
  }
  work.memory.unsupported = std::move(sentences);
}

void InstanceController::forget(const kube::ObjectKey& key) {
  const ResourceRef self = ref_of_key(key);
  platform_.tracker.forget(self);
  platform_.view.forget(self);
  instances_.erase(key);
}

}  // namespace hangar::airways
