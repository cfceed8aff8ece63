#include "workflows/ledger.h"

#include "abi/statemachine/machine.h"
#include "json/fields.h"
#include "workflows/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

namespace hangar::workflows {

namespace {

using json::Fields;

constexpr std::array kOrigins{
    std::pair{Origin::Host, std::string_view("Host")},
    std::pair{Origin::Action, std::string_view("Action")},
    std::pair{Origin::Timer, std::string_view("Timer")},
    std::pair{Origin::Timeout, std::string_view("Timeout")},
    std::pair{Origin::Signal, std::string_view("Signal")},
    std::pair{Origin::Change, std::string_view("Change")},
};

// FNV-1a: detects an accidental edit of a text, not a deliberate forgery.
std::string checksum_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : text) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

// Reading ------------------------------------------------------------------------------------

// The host subtracts the times of a status from the present one, and adds delays to those at which
// something began: 64 bits of nanoseconds overflow with times that are further apart.
constexpr WallTime kTimeMin{};
constexpr WallTime kBeginMax =
    std::chrono::sys_days(std::chrono::January / 1 / std::chrono::year(2200));

Result<std::optional<WallTime>> time_at(const Fields& fields, std::string_view key) {
  const std::string text = HANGAR_TRY(fields.text(key));
  if (text.empty()) return std::optional<WallTime>();
  const Result<WallTime> time = parse_rfc3339(text);
  if (!time) return fields.wrong(key, "a time such as 2026-04-08T12:00:00Z");
  if (*time < kTimeMin) return fields.wrong(key, "1970-01-01T00:00:00Z or later");
  return std::optional(*time);
}

Result<std::optional<WallTime>> begin_at(const Fields& fields, std::string_view key) {
  const std::optional<WallTime> time = HANGAR_TRY(time_at(fields, key));
  if (time && *time >= kBeginMax) return fields.wrong(key, "before 2200-01-01T00:00:00Z");
  return time;
}

Result<WallTime> required(const Fields& fields, std::string_view key,
                          std::optional<WallTime> time) {
  if (!time) return fields.wrong(key, "a time such as 2026-04-08T12:00:00Z");
  return *time;
}

Result<WallTime> required_time(const Fields& fields, std::string_view key) {
  return required(fields, key, HANGAR_TRY(time_at(fields, key)));
}

Result<WallTime> required_begin(const Fields& fields, std::string_view key) {
  return required(fields, key, HANGAR_TRY(begin_at(fields, key)));
}

// Numbers that the host increments.
Result<std::int64_t> count_at(const Fields& fields, std::string_view key) {
  const std::int64_t count = HANGAR_TRY(fields.integer(key));
  if (count < 0) return fields.wrong(key, "0 or more");
  if (count > limits::kWorkflowNumberMax) {
    return fields.wrong(key, fmt::format("at most {}", limits::kWorkflowNumberMax));
  }
  return count;
}

Result<Origin> origin_at(const Fields& fields) {
  const std::string text = HANGAR_TRY(fields.text("origin"));
  if (text.empty()) return Origin::Host;
  const auto found =
      std::ranges::find_if(kOrigins, [&](const auto& one) { return one.second == text; });
  if (found == kOrigins.end())
    return fields.wrong("origin", "Host, Action, Timer, Timeout, Signal or Change");
  return found->first;
}

Result<json::Value> event_at(const Fields& fields) {
  const json::Object* const event = HANGAR_TRY(fields.object("event"));
  if (event == nullptr || type_of(*event).empty()) {
    return fields.wrong("event", "an object with a type");
  }
  return json::Value(*event);
}

Result<PendingAction> parse_action(const Fields& fields) {
  PendingAction action;
  action.id = HANGAR_TRY(fields.integer("id"));
  if (action.id <= 0) return fields.wrong("id", "more than 0");
  action.type = HANGAR_TRY(fields.required_text("type"));
  const json::Object* const params = HANGAR_TRY(fields.object("params"));
  action.params = params == nullptr ? json::Object() : *params;
  action.requested_at = HANGAR_TRY(required_begin(fields, "requestedAt"));
  action.deadline = HANGAR_TRY(time_at(fields, "deadline"));
  action.attempts = static_cast<std::uint32_t>(
      std::min<std::int64_t>(HANGAR_TRY(count_at(fields, "attempts")), 1'000'000));
  action.not_before = HANGAR_TRY(time_at(fields, "notBefore"));
  action.last_error = HANGAR_TRY(fields.text("lastError"));
  action.target = HANGAR_TRY(fields.text("target"));
  action.actor = HANGAR_TRY(fields.text("actor"));
  return action;
}

Result<RunningTimer> parse_timer(const Fields& fields) {
  RunningTimer timer;
  timer.id = HANGAR_TRY(fields.required_text("id"));
  timer.origin = HANGAR_TRY(origin_at(fields));
  timer.due = HANGAR_TRY(required_time(fields, "due"));
  timer.event = HANGAR_TRY(event_at(fields));
  return timer;
}

Result<RunningActor> parse_actor(const Fields& fields) {
  RunningActor actor;
  actor.id = HANGAR_TRY(fields.required_text("id"));
  actor.value = HANGAR_TRY(fields.text("value"));
  actor.status = HANGAR_TRY(fields.text("status"));
  actor.entered_at = HANGAR_TRY(required_begin(fields, "enteredAt"));
  return actor;
}

Result<OwnedResource> parse_resource(const Fields& fields) {
  OwnedResource resource;
  resource.api_version = HANGAR_TRY(fields.required_text("apiVersion"));
  resource.kind = HANGAR_TRY(fields.required_text("kind"));
  resource.namespace_ = HANGAR_TRY(fields.text("namespace"));
  resource.name = HANGAR_TRY(fields.required_text("name"));
  resource.seen = HANGAR_TRY(fields.text("seen"));
  return resource;
}

Result<HistoryEntry> parse_history_entry(const Fields& fields) {
  HistoryEntry entry;
  entry.sequence = HANGAR_TRY(count_at(fields, "sequence"));
  entry.time = HANGAR_TRY(required_time(fields, "time"));
  entry.event = HANGAR_TRY(fields.text("event"));
  entry.origin = HANGAR_TRY(origin_at(fields));
  entry.from = HANGAR_TRY(fields.text("from"));
  entry.to = HANGAR_TRY(fields.text("to"));
  entry.actions = HANGAR_TRY(fields.texts("actions"));
  entry.actors = HANGAR_TRY(fields.texts("actors"));
  return entry;
}

Result<> parse_work(const Fields& status, Ledger& ledger) {
  for (const Fields& item : HANGAR_TRY(status.objects("inbox"))) {
    const Origin origin = HANGAR_TRY(origin_at(item));
    ledger.inbox.push_back({.origin = origin, .body = HANGAR_TRY(event_at(item))});
  }
  for (const Fields& item : HANGAR_TRY(status.objects("outbox"))) {
    ledger.outbox.push_back(HANGAR_TRY(parse_action(item)));
    const std::int64_t id = ledger.outbox.back().id;
    const bool is_ordered =
        ledger.outbox.size() == 1 || ledger.outbox[ledger.outbox.size() - 2].id < id;
    if (!is_ordered || id >= ledger.next_action) {
      return item.wrong("id", "in order, and smaller than status.nextAction");
    }
  }
  for (const Fields& item : HANGAR_TRY(status.objects("timers"))) {
    ledger.timers.push_back(HANGAR_TRY(parse_timer(item)));
  }
  for (const Fields& item : HANGAR_TRY(status.objects("actors"))) {
    ledger.actors.push_back(HANGAR_TRY(parse_actor(item)));
  }
  for (const Fields& item : HANGAR_TRY(status.objects("resources"))) {
    ledger.resources.push_back(HANGAR_TRY(parse_resource(item)));
  }
  for (const Fields& item : HANGAR_TRY(status.objects("history"))) {
    ledger.history.push_back(HANGAR_TRY(parse_history_entry(item)));
  }
  ledger.signals = HANGAR_TRY(status.texts("signals"));
  return {};
}

Result<> parse_state(const Fields& status, Ledger& ledger) {
  ledger.state = HANGAR_TRY(status.text("state"));
  if (!ledger.state.empty()) {
    const Result<json::Value> state = json::parse(ledger.state);
    if (!state || state->is_null()) {
      return status.wrong("state", "the JSON that the machine gave as its state");
    }
    ledger.is_foreign = HANGAR_TRY(status.text("stateChecksum")) != checksum_of(ledger.state);
  }
  ledger.value = HANGAR_TRY(status.text("value"));
  if (status.has("revision")) {
    const Fields revision = HANGAR_TRY(status.required_object("revision"));
    ledger.sha256 = HANGAR_TRY(revision.text("sha256"));
    ledger.resolved = HANGAR_TRY(revision.text("resolved"));
  }
  ledger.run = HANGAR_TRY(status.text("run"));
  ledger.transitions = HANGAR_TRY(count_at(status, "transitions"));
  ledger.next_action = std::max<std::int64_t>(1, HANGAR_TRY(count_at(status, "nextAction")));
  ledger.started_at = HANGAR_TRY(begin_at(status, "startedAt"));
  ledger.entered_at = HANGAR_TRY(begin_at(status, "enteredAt"));
  ledger.finished_at = HANGAR_TRY(time_at(status, "finishedAt"));
  ledger.has_failed = HANGAR_TRY(status.flag("failed"));
  ledger.failure = HANGAR_TRY(status.text("failure"));
  ledger.ignored = HANGAR_TRY(status.text("ignoredSignal"));
  if (status.has("migration")) {
    const Fields migration = HANGAR_TRY(status.required_object("migration"));
    ledger.migration = Migration{.request = HANGAR_TRY(migration.text("request")),
                                 .is_done = HANGAR_TRY(migration.flag("done")),
                                 .message = HANGAR_TRY(migration.text("message"))};
  }
  return {};
}

// The highest id in the history ("CREATE_PVC#3").
std::int64_t last_action(const Ledger& ledger) {
  std::int64_t last = 0;
  for (const HistoryEntry& entry : ledger.history) {
    for (const std::string& action : entry.actions) {
      const std::string_view id = std::string_view(action).substr(action.rfind('#') + 1);
      std::int64_t number = 0;
      std::from_chars(id.data(), id.data() + id.size(), number);
      last = std::max(last, number);
    }
  }
  return last;
}

// States that are possible only if somebody removed a part of the status, or restored an old one.
Result<> check_whole(const Ledger& ledger) {
  const auto missing = [](std::string_view what) {
    return fail(ErrorKind::InvalidInput, fmt::format("status.{}: is missing", what));
  };
  const bool has_past = ledger.transitions > 0 || !ledger.outbox.empty() ||
                        !ledger.history.empty() || ledger.next_action > 1;
  if (!ledger.has_begun()) {
    if (has_past) return missing("state");
    return {};
  }
  // Only a state: the published operator leaves such a status, and hangar takes it over.
  if (ledger.run.empty() && !has_past) return {};
  if (ledger.run.empty() || !ledger.started_at) return missing("run");
  if (ledger.sha256.empty()) return missing("revision.sha256");
  if (const std::int64_t last = last_action(ledger); ledger.next_action <= last) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("status.nextAction: is {}, and there was an action #{} already",
                            ledger.next_action, last));
  }
  return {};
}

// Writing ------------------------------------------------------------------------------------

void put_text(json::Object& object, std::string_view key, const std::string& text) {
  if (text.empty()) {
    object.erase(key);
  } else {
    object[key] = text;
  }
}

void put_time(json::Object& object, std::string_view key, const std::optional<WallTime>& time) {
  put_text(object, key, time ? to_rfc3339_micro(*time) : std::string());
}

void put_array(json::Object& object, std::string_view key, json::Array array) {
  if (array.empty()) {
    object.erase(key);
  } else {
    object[key] = std::move(array);
  }
}

json::Object to_json(const PendingAction& action) {
  json::Object object{{"id", action.id},
                      {"type", action.type},
                      {"params", action.params},
                      {"requestedAt", to_rfc3339_micro(action.requested_at)}};
  put_time(object, "deadline", action.deadline);
  if (action.attempts > 0) object["attempts"] = action.attempts;
  put_time(object, "notBefore", action.not_before);
  put_text(object, "lastError", action.last_error);
  put_text(object, "target", action.target);
  put_text(object, "actor", action.actor);
  return object;
}

json::Object to_json(const RunningActor& actor) {
  json::Object object{{"id", actor.id}, {"value", actor.value}};
  put_text(object, "status", actor.status);
  object["enteredAt"] = to_rfc3339_micro(actor.entered_at);
  return object;
}

json::Object to_json(const RunningTimer& timer) {
  return {{"id", timer.id},
          {"origin", name_of(timer.origin)},
          {"due", to_rfc3339_micro(timer.due)},
          {"event", timer.event}};
}

json::Object to_json(const OwnedResource& resource) {
  json::Object object{{"apiVersion", resource.api_version}, {"kind", resource.kind}};
  put_text(object, "namespace", resource.namespace_);
  object["name"] = resource.name;
  put_text(object, "seen", resource.seen);
  return object;
}

json::Object to_json(const HistoryEntry& entry) {
  json::Object object{{"sequence", entry.sequence},
                      {"time", to_rfc3339_micro(entry.time)},
                      {"event", entry.event},
                      {"origin", name_of(entry.origin)}};
  object["from"] = entry.from;
  object["to"] = entry.to;
  put_array(object, "actions", json::Array(entry.actions.begin(), entry.actions.end()));
  put_array(object, "actors", json::Array(entry.actors.begin(), entry.actors.end()));
  return object;
}

json::Object to_json(const QueuedEvent& event) {
  return {{"origin", name_of(event.origin)}, {"event", event.body}};
}

template <class T>
void put_all(json::Object& object, std::string_view key, const std::vector<T>& items) {
  json::Array array;
  array.reserve(items.size());
  for (const T& item : items)
    array.emplace_back(to_json(item));
  put_array(object, key, std::move(array));
}

void collect_states(const json::Value& value, const std::string& above,
                    std::vector<std::string>& paths) {
  const auto below = [&](std::string_view name) {
    return above.empty() ? std::string(name) : fmt::format("{}.{}", above, name);
  };
  if (value.is_string()) paths.push_back(below(value.get_string()));
  if (!value.is_object()) return;
  for (const auto& member : value.get_object()) {
    // Not a reference into `paths`, which grows below.
    const std::string path = below(member.key());
    paths.push_back(path);
    collect_states(member.value(), path, paths);
  }
}

// Without the paths themselves: a long name of a state is part of the path of each state below it.
std::uint64_t path_bytes(const json::Value& value, std::uint64_t above) {
  if (value.is_string()) return above + value.get_string().size();
  std::uint64_t bytes = 0;
  if (const json::Object* const members = value.if_object()) {
    for (const auto& member : *members) {
      const std::uint64_t path = above + member.key().size() + 1;
      bytes += path + path_bytes(member.value(), path);
    }
  }
  return bytes;
}

// A readable value as the machine gave it; null if it cannot be read.
json::Value value_of(std::string_view readable) {
  if (!readable.starts_with('{')) return json::Value(readable);
  return json::parse(readable).value_or(json::Value());
}

}  // namespace

std::string_view name_of(Origin origin) {
  const auto found =
      std::ranges::find_if(kOrigins, [&](const auto& one) { return one.first == origin; });
  return found == kOrigins.end() ? std::string_view("Host") : found->second;
}

std::string_view type_of(const json::Value& event) {
  return json::string_at(event, {"type"});
}

std::string_view actor_of(const json::Value& event) {
  return json::string_at(event, {abi::statemachine::kActorMember});
}

std::uint64_t number_of_timer(std::string_view id) {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 32U;
  return kFirst + std::hash<std::string_view>()(id) % kFirst;
}

PendingAction* Ledger::find_action(std::int64_t id) {
  const auto found = std::ranges::find(outbox, id, &PendingAction::id);
  return found == outbox.end() ? nullptr : &*found;
}

Result<Ledger> parse_ledger(const json::Value* status) {
  Ledger ledger;
  if (status == nullptr || status->is_null()) return ledger;
  if (!status->is_object()) return fail(ErrorKind::InvalidInput, "status: must be an object");
  const Fields fields(status->get_object(), "status");
  HANGAR_TRY(parse_state(fields, ledger));
  HANGAR_TRY(parse_work(fields, ledger));
  if (const json::Value* const output = json::find(*status, {"output"})) ledger.output = *output;
  HANGAR_TRY(check_whole(ledger));
  return ledger;
}

void put_ledger(json::Value& status, const Ledger& ledger) {
  if (!status.is_object()) status.emplace_object();
  json::Object& object = status.get_object();
  put_text(object, "state", ledger.state);
  // The old checksum of a foreign state stays: the machine has not confirmed yet that it knows it.
  if (!ledger.is_foreign) {
    put_text(object, "stateChecksum", ledger.has_begun() ? checksum_of(ledger.state) : "");
  }
  put_text(object, "value", ledger.value);
  if (ledger.sha256.empty()) {
    object.erase("revision");
  } else {
    object["revision"] = json::Object{{"sha256", ledger.sha256}, {"resolved", ledger.resolved}};
  }
  put_text(object, "run", ledger.run);
  if (ledger.has_begun()) {
    object["transitions"] = ledger.transitions;
    object["nextAction"] = ledger.next_action;
  }
  put_all(object, "inbox", ledger.inbox);
  put_all(object, "outbox", ledger.outbox);
  put_all(object, "timers", ledger.timers);
  put_all(object, "actors", ledger.actors);
  put_all(object, "resources", ledger.resources);
  put_all(object, "history", ledger.history);
  put_array(object, "signals", json::Array(ledger.signals.begin(), ledger.signals.end()));
  put_time(object, "startedAt", ledger.started_at);
  put_time(object, "enteredAt", ledger.entered_at);
  put_time(object, "finishedAt", ledger.finished_at);
  if (ledger.has_failed) object["failed"] = true;
  if (ledger.output) object["output"] = *ledger.output;
  put_text(object, "failure", ledger.failure);
  put_text(object, "ignoredSignal", ledger.ignored);
  if (ledger.migration) {
    object["migration"] = json::Object{{"request", ledger.migration->request},
                                       {"done", ledger.migration->is_done},
                                       {"message", ledger.migration->message}};
  }
}

bool is_kept_in(const json::Value& manifest, const Ledger& ledger) {
  if (json::string_at(manifest, {"status", "run"}) != ledger.run) return false;
  // A schema from before actors drops the actor: the result of an action would go to another one.
  const json::Array* const outbox = json::array_at(manifest, {"status", "outbox"});
  return std::ranges::all_of(ledger.outbox, [outbox](const PendingAction& action) {
    const auto is_kept = [&action](const json::Value& kept) {
      return json::int_at(kept, {"id"}) == action.id &&
             json::string_at(kept, {"actor"}) == action.actor;
    };
    return action.actor.empty() || (outbox != nullptr && std::ranges::any_of(*outbox, is_kept));
  });
}

std::string readable_value(std::string_view value_json) {
  const Result<json::Value> value = json::parse(value_json);
  return value && value->is_string() ? std::string(value->get_string()) : std::string(value_json);
}

std::string value_json(std::string_view readable) {
  if (readable.empty() || readable.starts_with('{')) return std::string(readable);
  return json::dump(json::Value(readable));
}

std::uint64_t state_path_bytes(std::string_view readable) {
  return path_bytes(value_of(readable), 0);
}

std::vector<std::string> active_states(std::string_view readable) {
  std::vector<std::string> paths;
  if (readable.empty()) return paths;
  const json::Value value = value_of(readable);
  if (path_bytes(value, 0) <= limits::kWorkflowPathBytesMax) collect_states(value, "", paths);
  return paths;
}

}  // namespace hangar::workflows
