#include "workflows/decision.h"

#include "base/backoff.h"
#include "base/utf8.h"
#include "workflows/limits.h"
#include "workflows/step_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::workflows {

namespace {

using abi::statemachine::Delay;
using abi::statemachine::Step;

// Bound of an error in the outbox; conditions would have room for more, but there may be many
// actions.
constexpr std::size_t kErrorBytesMax = 1024;

constexpr std::string_view kFailure = "FAILURE";
constexpr std::string_view kTimeout = "TIMEOUT";
constexpr std::string_view kWorkflowTimer = "timeout";
constexpr std::string_view kStateTimerPrefix = "timeout:";

// Bound of an actor's value, and of the changes of actors that are recorded with one transition.
constexpr std::size_t kActorValueBytesMax = 256;
constexpr std::size_t kActorChangesMax = 16;

std::string shortened(std::string text, std::size_t bytes_max = kErrorBytesMax) {
  if (text.size() > bytes_max) text.resize(valid_utf8_prefix(text.substr(0, bytes_max)));
  return text;
}

std::string place_of(const RunningActor& actor) {
  return actor.status.empty() ? actor.value : fmt::format("{} ({})", actor.value, actor.status);
}

bool is_same(const OwnedResource& one, const OwnedResource& other) {
  return one.api_version == other.api_version && one.kind == other.kind &&
         one.namespace_ == other.namespace_ && one.name == other.name;
}

// Whether `event` is the one that the end of the delay sends.
bool is_of(const json::Value& event, const Delay& delay) {
  return type_of(event) == delay.event && actor_of(event) == delay.actor;
}

// Whether an action only observes: it is dropped once no actor is left that could receive its
// result.
bool only_looks(std::string_view type) {
  const std::optional<ActionKind> kind = kind_of(type);
  return kind == ActionKind::RunHealthCheck || kind == ActionKind::WaitFor;
}

}  // namespace

Decision::Decision(Ledger written, Rules rules)
    : ledger_(std::move(written)),
      rules_(std::move(rules)),
      written_events_(ledger_.inbox.size()) {}

Owner Decision::owner() const {
  return {.key = rules_.key, .uid = rules_.uid, .run = ledger_.run};
}

Decision::Next Decision::next(WallTime now) {
  if (!ledger_.has_begun()) {
    if (is_stuck_) return Wait{};
    return Start{};
  }
  if (!ledger_.is_finished()) {
    take_due_timers(now);
    if (!ledger_.inbox.empty() && !is_stuck_ && steps_ < limits::kWorkflowStepsMax) return Ask{};
  }
  if (is_dirty_) return Write{};
  for (const PendingAction& action : ledger_.outbox) {
    if (parked_.contains(action.id) || (action.not_before && *action.not_before > now)) continue;
    // Whatever the result is, the next attempt may find the action half done.
    return Execute{.id = action.id, .is_fresh = fresh_.erase(action.id) > 0};
  }
  return Wait{.until = next_due(now)};
}

std::optional<WallTime> Decision::next_due(WallTime now) const {
  std::optional<WallTime> due;
  const auto consider = [&due](WallTime time) { due = due ? std::min(*due, time) : time; };
  for (const PendingAction& action : ledger_.outbox) {
    if (action.not_before && *action.not_before > now) {
      consider(*action.not_before);
    } else if (action.deadline && kind_of(action.type)) {
      consider(*action.deadline);
    }
  }
  // Nothing else makes the host look again at signals and changes that found no room. A stuck
  // machine frees no room.
  if (has_left_out_ && !is_stuck_) consider(now);
  if (ledger_.is_finished()) return due;
  // Timers that are due wait for room in the inbox.
  for (const RunningTimer& timer : ledger_.timers) {
    if (timer.due > now) consider(timer.due);
  }
  if (!ledger_.inbox.empty() && !is_stuck_) consider(now);
  return due;
}

// The machine --------------------------------------------------------------------------------

Result<> Decision::on_started(const Step& step, Revision revision, std::string run, WallTime now) {
  HANGAR_ASSERT(!ledger_.has_begun(), "a workflow begins once");
  HANGAR_TRY(check_step(step, ledger_));
  HANGAR_TRY(check_resources(step));
  ledger_.sha256 = std::move(revision.sha256);
  ledger_.resolved = std::move(revision.resolved);
  ledger_.run = std::move(run);
  ledger_.started_at = now;
  if (rules_.timeout) {
    ledger_.timers.push_back(
        {.id = std::string(kWorkflowTimer),
         .origin = Origin::Timeout,
         .due = now + std::chrono::duration_cast<WallTime::duration>(*rules_.timeout),
         .event = json::Object{{"type", kTimeout},
                               {"message", fmt::format("the workflow took longer than {}",
                                                       to_go_duration(*rules_.timeout))}}});
  }
  enter(step, nullptr, now);
  if (!ledger_.is_finished()) receive(Origin::Host, json::Object{{"type", "PROVISION"}});
  return {};
}

Result<> Decision::on_decided(const Step& step, WallTime now) {
  ++steps_;
  if (!step.is_handled) {
    on_ignored(take_event());
    return {};
  }
  HANGAR_TRY(check_step(step, ledger_));
  HANGAR_TRY(check_resources(step));
  const QueuedEvent event = take_event();
  enter(step, &event, now);
  return {};
}

QueuedEvent Decision::take_event() {
  QueuedEvent event = std::move(ledger_.inbox.front());
  ledger_.inbox.erase(ledger_.inbox.begin());
  if (written_events_ > 0) {
    --written_events_;
    is_dirty_ = true;
  }
  return event;
}

void Decision::on_ignored(QueuedEvent event) {
  const std::string type(type_of(event.body));
  const std::string_view message = json::string_at(event.body, {"message"});
  if (event.origin == Origin::Timeout && type == kTimeout) {
    // Machines that do not handle timeouts handle failures.
    event.body = json::Object{{"type", kFailure}, {"reason", "TimedOut"}, {"message", message}};
    ledger_.inbox.insert(ledger_.inbox.begin(), std::move(event));
    is_dirty_ = true;
    return;
  }
  // The event of an action may have a name that the machine chose (onError).
  const bool is_failure =
      (event.origin == Origin::Action && json::find(event.body, {"reason"}) != nullptr) ||
      (event.origin == Origin::Timeout && type == kFailure);
  if (is_failure) {
    const std::string_view actor = actor_of(event.body);
    ledger_.failure = shortened(actor.empty() ? std::string(message)
                                              : fmt::format("{} (for {})", message, actor));
    is_dirty_ = true;
  }
  if (event.origin == Origin::Signal) {
    ledger_.ignored = type;
    ignored_.push_back(type);
    is_dirty_ = true;
  }
}

void Decision::enter(const Step& step, const QueuedEvent* event, WallTime now) {
  const std::string before = std::exchange(ledger_.value, readable_value(step.value));
  HistoryEntry entry{.sequence = ++ledger_.transitions,
                     .time = now,
                     .event = event == nullptr ? std::string() : std::string(type_of(event->body)),
                     .origin = event == nullptr ? Origin::Host : event->origin,
                     .from = before,
                     .to = ledger_.value};
  ledger_.state = step.state;
  ledger_.is_foreign = false;
  ledger_.failure.clear();
  ledger_.ignored.clear();
  if (before != ledger_.value || event == nullptr) {
    Transition transition{.from = before, .to = ledger_.value, .event = entry.event, .stayed = {}};
    if (ledger_.entered_at) transition.stayed = now - *ledger_.entered_at;
    transitions_.push_back(std::move(transition));
    ledger_.entered_at = now;
  }
  const std::int64_t first_action = ledger_.next_action;
  entry.actors = take_actors(step.actors, now);
  ask_for(step, entry, now);
  stop_actors(step.actors_stopped, first_action);
  set_timers(step, now);
  set_timeouts(before, now);
  if (step.is_final) {
    std::erase_if(ledger_.outbox, [first_action](const PendingAction& action) {
      return action.id < first_action && only_looks(action.type);
    });
    finish(step, event, now);
  }
  ledger_.history.push_back(std::move(entry));
  trim();
  is_dirty_ = true;
}

void Decision::ask_for(const Step& step, HistoryEntry& entry, WallTime now) {
  for (const abi::statemachine::Action& wanted : step.actions) {
    PendingAction action{.id = ledger_.next_action++,
                         .type = wanted.type,
                         .params = *json::parse(wanted.params),
                         .requested_at = now,
                         .actor = wanted.actor};
    // Invalid params become the action's failure once it is carried out.
    if (const Result<Duration> timeout = timeout_of(action.type, action.params)) {
      action.deadline = now + std::chrono::duration_cast<WallTime::duration>(*timeout);
    }
    entry.actions.push_back(fmt::format("{}#{}", action.type, action.id));
    fresh_.insert(action.id);
    add_resource(action);
    ledger_.outbox.push_back(std::move(action));
  }
}

std::optional<OwnedResource> Decision::new_resource(const PendingAction& action) const {
  const Result<ActionPlan> plan = plan_action(owner(), action);
  std::optional<OwnedResource> resource = plan ? resource_of(*plan) : std::nullopt;
  const auto is_it = [&resource](const OwnedResource& known) { return is_same(known, *resource); };
  if (resource && std::ranges::any_of(ledger_.resources, is_it)) return std::nullopt;
  return resource;
}

// An existing resource must not be forgotten, or DELETE_RESOURCES would leave it behind.
Result<> Decision::check_resources(const Step& step) const {
  const auto is_there = [](const OwnedResource& resource) { return resource.seen != kSeenDeleted; };
  std::vector<OwnedResource> added;
  for (const abi::statemachine::Action& wanted : step.actions) {
    std::optional<OwnedResource> resource = new_resource(
        {.id = ledger_.next_action, .type = wanted.type, .params = *json::parse(wanted.params)});
    if (!resource) continue;
    const auto is_it = [&resource](const OwnedResource& one) { return is_same(one, *resource); };
    if (std::ranges::none_of(added, is_it)) added.push_back(*std::move(resource));
  }
  const std::size_t count =
      added.size() + static_cast<std::size_t>(std::ranges::count_if(ledger_.resources, is_there));
  if (added.empty() || count <= limits::kWorkflowResourcesMax) return {};
  return fail(ErrorKind::LimitExceeded,
              fmt::format("the step would give the workflow {} objects; the maximum is {}", count,
                          limits::kWorkflowResourcesMax));
}

// Called before the action is carried out, so that DELETE_RESOURCES finds an object that a crash
// left half done.
void Decision::add_resource(const PendingAction& action) {
  std::optional<OwnedResource> resource = new_resource(action);
  if (!resource) return;
  if (ledger_.resources.size() >= limits::kWorkflowResourcesMax) {
    const auto gone = std::ranges::find(ledger_.resources, kSeenDeleted, &OwnedResource::seen);
    if (gone != ledger_.resources.end()) ledger_.resources.erase(gone);
  }
  ledger_.resources.push_back(*std::move(resource));
}

bool Decision::is_being_deleted(const OwnedResource& resource) {
  return std::ranges::any_of(ledger_.outbox, [&](const PendingAction& action) {
    const std::optional<ActionKind> kind = kind_of(action.type);
    if (kind != ActionKind::Delete && kind != ActionKind::RunJob) return false;
    const auto [found, is_new] = deleting_.try_emplace(action.id);
    std::optional<OwnedResource>& target = found->second;
    if (is_new) {
      // Planned once: a plan copies the manifest, and hundreds of objects may go at the same time.
      if (const Result<ActionPlan> plan = plan_action(owner(), action)) {
        target = OwnedResource{.api_version = plan->gvk.api_version(),
                               .kind = plan->gvk.kind,
                               .namespace_ = {},
                               .name = plan->key.name,
                               .seen = {}};
      }
    }
    return target && target->api_version == resource.api_version && target->kind == resource.kind &&
           target->name == resource.name;
  });
}

std::vector<std::string> Decision::take_actors(const std::vector<abi::statemachine::Actor>& actors,
                                               WallTime now) {
  std::vector<std::string> changes;
  const std::vector<RunningActor> before = std::exchange(ledger_.actors, {});
  for (const abi::statemachine::Actor& actor : actors) {
    RunningActor running{.id = actor.id,
                         .value = shortened(readable_value(actor.value), kActorValueBytesMax),
                         .status = shortened(actor.status, kActorValueBytesMax),
                         .entered_at = now};
    const auto known = std::ranges::find(before, running.id, &RunningActor::id);
    if (known == before.end()) {
      changes.push_back(fmt::format("{} began in {}", running.id, place_of(running)));
    } else if (place_of(*known) != place_of(running)) {
      changes.push_back(
          fmt::format("{}: {} -> {}", running.id, place_of(*known), place_of(running)));
    } else {
      running.entered_at = known->entered_at;
    }
    ledger_.actors.push_back(std::move(running));
  }
  for (const RunningActor& actor : before) {
    if (std::ranges::find(ledger_.actors, actor.id, &RunningActor::id) == ledger_.actors.end()) {
      changes.push_back(fmt::format("{} ended in {}", actor.id, place_of(actor)));
    }
  }
  if (changes.size() > kActorChangesMax) {
    changes.back() = fmt::format("and {} more", changes.size() - kActorChangesMax + 1);
    changes.erase(changes.begin() + (kActorChangesMax - 1), changes.end() - 1);
  }
  return changes;
}

void Decision::stop_actors(const std::vector<std::string>& actors, std::int64_t first_action) {
  for (const std::string& actor : actors) {
    std::erase_if(ledger_.outbox, [&](const PendingAction& action) {
      return action.actor == actor && action.id < first_action && only_looks(action.type);
    });
    std::erase_if(ledger_.timers, [prefix = actor + ":"](const RunningTimer& timer) {
      return timer.origin == Origin::Timer && timer.id.starts_with(prefix);
    });
  }
}

void Decision::set_timers(const Step& step, WallTime now) {
  const auto cancel = [this](std::string_view id) {
    std::erase_if(ledger_.timers, [id](const RunningTimer& timer) {
      return timer.origin == Origin::Timer && timer.id == id;
    });
  };
  for (const std::string& id : step.timers_cancelled)
    cancel(id);
  for (const abi::statemachine::Timer& timer : step.timers_started) {
    if (timer.replaces) cancel(timer.id);
    ledger_.timers.push_back({.id = timer.id,
                              .origin = Origin::Timer,
                              .due = now + std::chrono::duration_cast<WallTime::duration>(
                                               std::max(timer.delay, Duration::zero())),
                              .event = *json::parse(timer.event)});
  }
}

void Decision::set_timeouts(std::string_view before, WallTime now) {
  // Sets: a machine may be in thousands of states, all with timeouts, and this is the loop's
  // thread.
  const std::vector<std::string> present = active_states(ledger_.value);
  const std::set<std::string, std::less<>> entered(present.begin(), present.end());
  const std::vector<std::string> previous = active_states(before);
  const std::set<std::string, std::less<>> left(previous.begin(), previous.end());
  std::erase_if(ledger_.timers, [&](const RunningTimer& timer) {
    return timer.origin == Origin::Timeout && timer.id.starts_with(kStateTimerPrefix) &&
           !entered.contains(std::string_view(timer.id).substr(kStateTimerPrefix.size()));
  });
  for (const std::string& state : present) {
    const auto timeout = rules_.state_timeouts.find(state);
    if (timeout == rules_.state_timeouts.end() || left.contains(state)) continue;
    ledger_.timers.push_back(
        {.id = std::string(kStateTimerPrefix) + state,
         .origin = Origin::Timeout,
         .due = now + std::chrono::duration_cast<WallTime::duration>(timeout->second),
         .event = json::Object{{"type", kTimeout},
                               {"state", state},
                               {"message", fmt::format("the state {} took longer than {}", state,
                                                       to_go_duration(timeout->second))}}});
  }
}

void Decision::finish(const Step& step, const QueuedEvent* event, WallTime now) {
  ledger_.finished_at = now;
  ledger_.has_failed = event != nullptr && type_of(event->body) == kFailure;
  if (ledger_.has_failed) {
    ledger_.failure = shortened(std::string(json::string_at(event->body, {"message"})));
  }
  if (step.output) ledger_.output = *json::parse(*step.output);
  ledger_.timers.clear();
  ledger_.actors.clear();
  ledger_.inbox.clear();
  written_events_ = 0;
}

void Decision::trim() {
  std::vector<HistoryEntry>& history = ledger_.history;
  const auto size = [](const HistoryEntry& entry) {
    std::size_t bytes = 160 + entry.event.size() + entry.from.size() + entry.to.size();
    for (const std::string& action : entry.actions)
      bytes += action.size() + 4;
    for (const std::string& actor : entry.actors)
      bytes += actor.size() + 4;
    return bytes;
  };
  std::size_t bytes = 0;
  std::size_t keep = 0;
  while (keep < history.size() && keep < rules_.history_max) {
    bytes += size(history[history.size() - 1 - keep]);
    if (bytes > limits::kWorkflowHistoryBytesMax) break;
    ++keep;
  }
  history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(keep));
}

void Decision::on_written() {
  is_dirty_ = false;
  written_events_ = ledger_.inbox.size();
}

// Events -------------------------------------------------------------------------------------

void Decision::receive(Origin origin, json::Value event, std::uint64_t source) {
  ledger_.inbox.push_back({.origin = origin, .body = std::move(event), .source = source});
  // A change that the machine ignores is not worth a write.
  if (origin != Origin::Change) is_dirty_ = true;
}

bool Decision::has_room_for(const json::Value& event) const {
  if (ledger_.inbox.empty()) return true;
  if (ledger_.inbox.size() >= limits::kWorkflowInboxMax) return false;
  std::size_t bytes = json::dump(event).size();
  for (const QueuedEvent& queued : ledger_.inbox) {
    if (queued.body_bytes == 0) queued.body_bytes = json::dump(queued.body).size();
    bytes += queued.body_bytes;
  }
  return bytes <= limits::kWorkflowInboxBytesMax;
}

void Decision::take_due_timers(WallTime now) {
  while (true) {
    // The timer that is due first; of those due at the same time, the one that was started first.
    const auto first = std::ranges::min_element(ledger_.timers, {}, &RunningTimer::due);
    if (first == ledger_.timers.end() || first->due > now || !has_room_for(first->event)) return;
    RunningTimer timer = std::move(*first);
    ledger_.timers.erase(first);
    receive(timer.origin, std::move(timer.event), number_of_timer(timer.id));
  }
}

bool Decision::on_signal(std::string id, json::Value event, std::uint64_t version) {
  if (std::ranges::find(ledger_.signals, id) != ledger_.signals.end()) return false;
  // Signals after one that found no room wait, too, so that they keep their order. A finished
  // workflow keeps no events, so it has room for all.
  if (!ledger_.is_finished() && (has_left_out_ || !has_room_for(event))) {
    has_left_out_ = true;
    return false;
  }
  refuse_signal(std::move(id));
  if (!ledger_.is_finished()) receive(Origin::Signal, std::move(event), version);
  return true;
}

void Decision::refuse_signal(std::string id) {
  ledger_.signals.push_back(std::move(id));
  if (ledger_.signals.size() > limits::kWorkflowSignalsRemembered) {
    ledger_.signals.erase(ledger_.signals.begin());
  }
  is_dirty_ = true;
}

void Decision::on_change(std::size_t resource, std::string seen, json::Value event) {
  HANGAR_ASSERT(resource < ledger_.resources.size(), "it is one of the ledger's resources");
  if (ledger_.is_finished()) return;
  // The deletion action notifies the machine when it finishes.
  if (seen == kSeenDeleted && is_being_deleted(ledger_.resources[resource])) return;
  if (!has_room_for(event)) {
    has_left_out_ = true;
    return;
  }
  ledger_.resources[resource].seen = std::move(seen);
  receive(Origin::Change, std::move(event));
}

void Decision::on_made(const json::Value& event, std::string seen) {
  for (OwnedResource& resource : ledger_.resources) {
    if (resource.name == json::string_at(event, {"resourceName"}) &&
        resource.kind == json::string_at(event, {"kind"}) &&
        resource.api_version == json::string_at(event, {"apiVersion"})) {
      resource.seen = std::move(seen);
      return;
    }
  }
}

// Actions ------------------------------------------------------------------------------------

void Decision::acknowledge(std::int64_t id, json::Value event) {
  const PendingAction* const ended = ledger_.find_action(id);
  if (ended != nullptr && !ended->actor.empty()) {
    event.as_object()[abi::statemachine::kActorMember] = ended->actor;
  }
  std::erase_if(ledger_.outbox, [id](const PendingAction& action) { return action.id == id; });
  is_dirty_ = true;
  if (!ledger_.is_finished()) receive(Origin::Action, std::move(event));
}

void Decision::on_done(std::int64_t id, json::Value event) {
  const PendingAction* const action = ledger_.find_action(id);
  if (action != nullptr && kind_of(action->type) == ActionKind::Delete) {
    on_made(event, std::string(kSeenDeleted));
  }
  acknowledge(id, std::move(event));
}

bool Decision::on_waiting(std::int64_t id, std::string_view what, WallTime now,
                          std::string_view problem) {
  PendingAction* const action = ledger_.find_action(id);
  if (action == nullptr) return true;
  if (!action->deadline || now < *action->deadline) {
    std::string told = shortened(std::string(problem));
    // A problem that has passed is no longer reported; the reason of a failed attempt still is.
    if (told != action->last_error && (!told.empty() || action->attempts == 0)) {
      action->last_error = std::move(told);
      is_dirty_ = true;
    }
    parked_.insert(id);
    return true;
  }
  const Duration waited =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - action->requested_at);
  std::string message =
      fmt::format("{} timed out after {}: {}", action->type, to_go_duration(waited), what);
  if (!action->last_error.empty()) message += "; before that: " + action->last_error;
  (void)on_failed(id, {.reason = "TimedOut", .message = std::move(message), .is_final = true}, {},
                  0, now);
  return false;
}

void Decision::on_pinned(std::int64_t id, std::string target) {
  if (PendingAction* const action = ledger_.find_action(id)) {
    action->target = std::move(target);
    is_dirty_ = true;
  }
}

bool Decision::on_failed(std::int64_t id, const Failure& failure, const RetryPolicy& policy,
                         double jitter, WallTime now) {
  PendingAction* const action = ledger_.find_action(id);
  if (action == nullptr) return false;
  ++action->attempts;
  action->last_error = shortened(failure.message);
  is_dirty_ = true;

  const ExponentialBackoff backoff{
      .min = policy.initial_interval, .max = policy.interval_max, .factor = policy.factor};
  const auto delay = std::chrono::duration_cast<WallTime::duration>(
      with_jitter(backoff.delay(action->attempts - 1), policy.jitter, jitter));
  const bool is_retryable = action->attempts < policy.attempts_max && !failure.is_final &&
                            std::ranges::none_of(
                                policy.non_retryable,
                                [&](const std::string& word) {
                                  return word == failure.reason || word == failure.kind;
                                }) &&
                            (!action->deadline || now + delay < *action->deadline);
  if (is_retryable) {
    action->not_before = now + delay;
    return true;
  }
  acknowledge(id, failure_event(*action, failure.reason, action->last_error));
  return false;
}

void Decision::abandon_before(std::int64_t id) {
  if (std::erase_if(ledger_.outbox, [id](const PendingAction& action) { return action.id < id; }) >
      0) {
    is_dirty_ = true;
  }
}

void Decision::drop_resources() {
  ledger_.resources.clear();
  is_dirty_ = true;
}

// The module ---------------------------------------------------------------------------------

void Decision::on_migrated(Migration migration, std::optional<Revision> revision) {
  ledger_.migration = std::move(migration);
  if (revision) {
    ledger_.sha256 = std::move(revision->sha256);
    ledger_.resolved = std::move(revision->resolved);
  }
  is_dirty_ = true;
}

void Decision::adopt(Revision revision, std::string_view value,
                     const std::vector<abi::statemachine::Actor>& actors, std::string run,
                     WallTime now) {
  ledger_.is_foreign = false;
  (void)take_actors(actors, now);
  if (!value.empty()) ledger_.value = readable_value(value);
  if (ledger_.run.empty()) {
    ledger_.run = std::move(run);
    ledger_.started_at = now;
    ledger_.entered_at = now;
    ledger_.sha256 = std::move(revision.sha256);
    ledger_.resolved = std::move(revision.resolved);
  }
  is_dirty_ = true;
}

std::vector<Delay> Decision::missing_delays(const std::vector<Delay>& delays) const {
  std::vector<Delay> missing;
  for (const Delay& delay : delays) {
    const bool is_running = std::ranges::any_of(ledger_.timers, [&](const RunningTimer& timer) {
      return timer.origin == Origin::Timer && is_of(timer.event, delay);
    });
    const bool is_over = std::ranges::any_of(
        ledger_.inbox, [&](const QueuedEvent& event) { return is_of(event.body, delay); });
    if (!is_running && !is_over) missing.push_back(delay);
  }
  return missing;
}

void Decision::take_delays(const std::vector<Delay>& delays, WallTime since) {
  if (ledger_.is_finished()) return;
  const auto is_strange = [&delays](const RunningTimer& timer) {
    return timer.origin == Origin::Timer &&
           type_of(timer.event).starts_with(abi::statemachine::kDelayPrefix) &&
           std::ranges::none_of(delays,
                                [&](const Delay& delay) { return is_of(timer.event, delay); });
  };
  if (std::erase_if(ledger_.timers, is_strange) > 0) is_dirty_ = true;
  for (const Delay& delay : missing_delays(delays)) {
    if (!delay.duration) continue;
    json::Object event{{"type", delay.event}};
    std::string id = delay.event;
    WallTime entered_at = since;
    if (!delay.actor.empty()) {
      event[abi::statemachine::kActorMember] = delay.actor;
      id = fmt::format("{}:{}", delay.actor, delay.event);
      const auto actor = std::ranges::find(ledger_.actors, delay.actor, &RunningActor::id);
      if (actor != ledger_.actors.end()) entered_at = actor->entered_at;
    }
    ledger_.timers.push_back(
        {.id = std::move(id),
         .origin = Origin::Timer,
         .due = entered_at + std::chrono::duration_cast<WallTime::duration>(*delay.duration),
         .event = std::move(event)});
    is_dirty_ = true;
  }
}

}  // namespace hangar::workflows
