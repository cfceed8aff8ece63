#include "workflows/actions.h"

#include "abi/statemachine/limits.h"
#include "base/number.h"
#include "json/fields.h"
#include "workflows/workflow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hangar::workflows {

namespace {

using json::Fields;
using std::chrono::minutes;

struct Entry {
  std::string_view type;
  ActionKind kind;
  std::string_view event;  // The type of the event that reports its result.
  minutes timeout;
};
constexpr std::array kCatalogue{
    Entry{"CREATE_PVC", ActionKind::CreatePvc, "K8S_RESOURCE_CREATED", minutes(5)},
    Entry{"CREATE_DEPLOYMENT", ActionKind::CreateDeployment, "K8S_RESOURCE_CREATED", minutes(5)},
    Entry{"RUN_HEALTH_CHECK", ActionKind::RunHealthCheck, "HEALTH_CHECK_PASSED", minutes(10)},
    Entry{"DELETE_RESOURCES", ActionKind::DeleteResources, "K8S_RESOURCES_DELETED", minutes(5)},
    Entry{"APPLY", ActionKind::Apply, "K8S_RESOURCE_CREATED", minutes(5)},
    Entry{"PATCH", ActionKind::Patch, "K8S_RESOURCE_PATCHED", minutes(5)},
    Entry{"DELETE", ActionKind::Delete, "K8S_RESOURCE_DELETED", minutes(5)},
    Entry{"WAIT_FOR", ActionKind::WaitFor, "CONDITION_MET", minutes(10)},
    Entry{"RUN_JOB", ActionKind::RunJob, "JOB_SUCCEEDED", minutes(60)},
    Entry{"SEND", ActionKind::Send, "EVENT_SENT", minutes(5)},
    Entry{"EMIT", ActionKind::Emit, "EVENT_EMITTED", minutes(5)},
};

const Entry* find_entry(std::string_view type) {
  const auto found = std::ranges::find(kCatalogue, type, &Entry::type);
  return found == kCatalogue.end() ? nullptr : &*found;
}

// Long enough for people to recognise, and short enough for a label's value with the suffix.
constexpr std::size_t kNamePrefixMax = 40;

// A name that only this action of this run has, however often it is carried out.
std::string generated_name(const Owner& owner, std::int64_t id) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : fmt::format("{}/{}/{}", owner.uid, owner.run, id)) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3ULL;
  }
  std::string prefix = owner.key.name.substr(0, kNamePrefixMax);
  // The name of a Service or a label allows fewer characters than a workflow's name.
  std::ranges::replace(prefix, '.', '-');
  while (prefix.ends_with('-'))
    prefix.pop_back();
  return fmt::format("{}-{:08x}", prefix, static_cast<std::uint32_t>(hash ^ (hash >> 32U)));
}

json::Value text_value(std::string_view text) {
  return json::Value(text);
}

void mark(json::Value& manifest, const Owner& owner, std::int64_t id) {
  json::set_at(manifest, {"metadata", "labels", kUidLabel}, text_value(owner.uid));
  json::set_at(manifest, {"metadata", "annotations", kNameAnnotation},
               text_value(owner.key.to_string()));
  json::set_at(manifest, {"metadata", "annotations", action_annotation(owner)},
               text_value(action_mark(owner, id)));
}

Result<double> number_at(const Fields& fields, const json::Object& object, std::string_view key,
                         double otherwise) {
  const json::Value* const value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return otherwise;
  if (const double* const number = value->if_double()) return *number;
  return static_cast<double>(HANGAR_TRY(fields.integer(key)));
}

Result<std::vector<std::string>> access_modes(const Fields& params) {
  std::vector<std::string> modes = HANGAR_TRY(params.texts("accessModes"));
  if (modes.empty()) modes.emplace_back("ReadWriteOnce");
  return modes;
}

Result<std::string> name_or_generated(const Fields& params, const Owner& owner, std::int64_t id) {
  std::string name = HANGAR_TRY(params.text("name"));
  if (name.empty()) name = generated_name(owner, id);
  return name;
}

Result<json::Value> pvc_manifest(const Fields& params, const Owner& owner, std::int64_t id) {
  const std::string name = HANGAR_TRY(name_or_generated(params, owner, id));
  const std::string size = HANGAR_TRY(params.required_text("size"));
  const std::string storage_class = HANGAR_TRY(params.text("storageClassName"));
  const std::vector<std::string> modes = HANGAR_TRY(access_modes(params));
  json::Object spec{
      {"accessModes", json::Array(modes.begin(), modes.end())},
      {"resources", json::Object{{"requests", json::Object{{"storage", size}}}}},
  };
  if (!storage_class.empty()) spec["storageClassName"] = storage_class;
  return json::Value(json::Object{{"apiVersion", "v1"},
                                  {"kind", "PersistentVolumeClaim"},
                                  {"metadata", json::Object{{"name", name}}},
                                  {"spec", std::move(spec)}});
}

Result<json::Value> deployment_manifest(const Fields& params, const json::Value& raw,
                                        const Owner& owner, std::int64_t id) {
  const std::string name = HANGAR_TRY(name_or_generated(params, owner, id));
  const std::string image = HANGAR_TRY(params.required_text("imageName"));
  const std::int64_t replicas =
      params.has("replicas") ? HANGAR_TRY(params.integer("replicas")) : std::int64_t{1};
  const std::int64_t port = HANGAR_TRY(params.integer("port"));
  const std::string pvc = HANGAR_TRY(params.text("pvcName"));
  const std::string mount = HANGAR_TRY(params.text("mountPath"));
  if (pvc.empty() != mount.empty()) {
    return params.wrong("mountPath", "given together with pvcName");
  }
  json::Object container{{"name", "main"}, {"image", image}};
  if (const json::Array* const env = json::array_at(raw, {"env"})) container["env"] = *env;
  if (const json::Object* const env = json::object_at(raw, {"env"})) {
    json::Array entries;
    for (const auto& entry : *env) {
      entries.emplace_back(json::Object{{"name", entry.key()}, {"value", text_of(entry.value())}});
    }
    container["env"] = std::move(entries);
  }
  if (port != 0) container["ports"] = json::Array{json::Object{{"containerPort", port}}};
  json::Object pod;
  if (!pvc.empty()) {
    container["volumeMounts"] = json::Array{json::Object{{"name", "data"}, {"mountPath", mount}}};
    pod["volumes"] = json::Array{json::Object{
        {"name", "data"}, {"persistentVolumeClaim", json::Object{{"claimName", pvc}}}}};
  }
  pod["containers"] = json::Array{std::move(container)};
  const json::Object labels{{"app.kubernetes.io/name", name}};
  return json::Value(json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", json::Object{{"name", name}, {"labels", labels}}},
      {"spec",
       json::Object{{"replicas", replicas},
                    {"selector", json::Object{{"matchLabels", labels}}},
                    {"template", json::Object{{"metadata", json::Object{{"labels", labels}}},
                                              {"spec", std::move(pod)}}}}}});
}

// APPLY and RUN_JOB: the machine's document, with name and namespace.
Result<json::Value> given_manifest(const Fields& params, const Owner& owner, std::int64_t id) {
  const json::Object* const object = HANGAR_TRY(params.object("manifest"));
  if (object == nullptr) {
    return fail(ErrorKind::InvalidInput, params.name("manifest") + ": is required");
  }
  json::Value manifest(*object);
  if (json::string_at(manifest, {"metadata", "name"}).empty()) {
    json::erase_at(manifest, {"metadata", "generateName"});
    json::set_at(manifest, {"metadata", "name"}, text_value(generated_name(owner, id)));
  }
  if (json::string_at(manifest, {"apiVersion"}).empty() ||
      json::string_at(manifest, {"kind"}).empty()) {
    return params.wrong("manifest", "an object with apiVersion and kind");
  }
  return manifest;
}

Result<json::Value> job_manifest(const Fields& params, const Owner& owner, std::int64_t id) {
  if (params.has("manifest")) {
    json::Value manifest = HANGAR_TRY(given_manifest(params, owner, id));
    if (json::string_at(manifest, {"apiVersion"}) != "batch/v1" ||
        json::string_at(manifest, {"kind"}) != "Job") {
      return params.wrong("manifest", "a Job of batch/v1");
    }
    return manifest;
  }
  const std::string name = HANGAR_TRY(name_or_generated(params, owner, id));
  const std::string image = HANGAR_TRY(params.required_text("image"));
  const std::vector<std::string> command = HANGAR_TRY(params.texts("command"));
  const std::vector<std::string> args = HANGAR_TRY(params.texts("args"));
  const std::int64_t backoff =
      params.has("backoffLimit") ? HANGAR_TRY(params.integer("backoffLimit")) : std::int64_t{0};
  json::Object container{{"name", "main"}, {"image", image}};
  if (!command.empty()) container["command"] = json::Array(command.begin(), command.end());
  if (!args.empty()) container["args"] = json::Array(args.begin(), args.end());
  json::Object pod{{"restartPolicy", "Never"}, {"containers", json::Array{std::move(container)}}};
  return json::Value(
      json::Object{{"apiVersion", "batch/v1"},
                   {"kind", "Job"},
                   {"metadata", json::Object{{"name", name}}},
                   {"spec", json::Object{{"backoffLimit", backoff},
                                         {"template", json::Object{{"spec", std::move(pod)}}}}}});
}

Result<Wish> parse_wish(const Fields& params) {
  Wish wish;
  const std::string condition = HANGAR_TRY(params.text("condition"));
  const std::size_t equals = condition.find('=');
  wish.condition = condition.substr(0, equals);
  if (equals != std::string::npos) wish.condition_status = condition.substr(equals + 1);
  const std::string path = HANGAR_TRY(params.text("jsonPath"));
  if (!path.empty()) {
    Result<JsonPath> parsed = JsonPath::parse(path);
    if (!parsed) return std::unexpected(std::move(parsed).error().in(params.name("jsonPath")));
    wish.path = *std::move(parsed);
  }
  if (params.has("value")) {
    if (!wish.path) return params.wrong("value", "given together with jsonPath");
    wish.value = HANGAR_TRY(params.text("value"));
  }
  wish.is_gone = HANGAR_TRY(params.flag("deleted"));
  return wish;
}

Result<> plan_target(const Fields& params, const Owner& owner, ActionPlan& plan) {
  plan.gvk = kube::make_gvk(HANGAR_TRY(params.required_text("apiVersion")),
                            HANGAR_TRY(params.required_text("kind")));
  plan.key.name = HANGAR_TRY(params.required_text("name"));
  plan.key.namespace_ = HANGAR_TRY(params.text("namespace"));
  if (plan.key.namespace_.empty()) plan.key.namespace_ = owner.key.namespace_;
  return {};
}

// Plans actions that create objects for the workflow.
Result<> plan_object(Result<json::Value> manifest, const Owner& owner, std::int64_t id,
                     ActionPlan& plan) {
  plan.document = HANGAR_TRY(std::move(manifest));
  plan.gvk = HANGAR_TRY(kube::gvk_of(plan.document));
  plan.key = kube::key_of(plan.document);
  if (plan.key.namespace_.empty()) plan.key.namespace_ = owner.key.namespace_;
  mark(plan.document, owner, id);
  return {};
}

Result<> plan_patch(const Fields& params, const json::Value& raw, ActionPlan& plan) {
  const std::string type = HANGAR_TRY(params.text("patchType"));
  if (type == "strategic") {
    plan.patch_type = kube::PatchType::Strategic;
  } else if (!type.empty() && type != "merge") {
    return params.wrong("patchType", "merge or strategic");
  }
  const json::Object* const patch = json::object_at(raw, {"patch"});
  if (patch == nullptr) return params.wrong("patch", "an object");
  plan.document = *patch;
  return {};
}

Result<> plan_send(const Fields& params, const json::Value& raw, const Owner& owner,
                   ActionPlan& plan) {
  plan.gvk = workflow_resource().gvk();
  plan.key.name = HANGAR_TRY(params.required_text("workflow"));
  plan.key.namespace_ = HANGAR_TRY(params.text("namespace"));
  if (plan.key.namespace_.empty()) plan.key.namespace_ = owner.key.namespace_;
  const json::Value* const event = json::find(raw, {"event"});
  if (event != nullptr && event->is_string() && !event->get_string().empty()) {
    plan.document = json::Object{{"type", event->get_string()}};
  } else if (event != nullptr && !type_of(*event).empty()) {
    plan.document = *event;
  } else {
    return params.wrong("event", "an object with a type, or only the type");
  }
  return {};
}

Result<> plan_emit(const Fields& params, const Owner& owner, const PendingAction& action,
                   ActionPlan& plan) {
  const std::string reason = HANGAR_TRY(params.required_text("reason"));
  const std::string message = HANGAR_TRY(params.text("message"));
  std::string type = HANGAR_TRY(params.text("type"));
  if (type.empty()) type = "Normal";
  if (type != "Normal" && type != "Warning") return params.wrong("type", "Normal or Warning");
  const std::string time = to_rfc3339(action.requested_at);
  plan.gvk = {.group = "", .version = "v1", .kind = "Event"};
  plan.key = {.namespace_ = owner.key.namespace_, .name = generated_name(owner, action.id)};
  plan.document = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", json::Object{{"name", plan.key.name}, {"namespace", plan.key.namespace_}}},
      {"involvedObject", json::Object{{"apiVersion", "workflows.example.com/v1"},
                                      {"kind", "StatefulWorkflow"},
                                      {"namespace", owner.key.namespace_},
                                      {"name", owner.key.name},
                                      {"uid", owner.uid}}},
      {"type", type},
      {"reason", reason},
      {"message", message},
      {"source", json::Object{{"component", "hangar-workflows"}}},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1},
  };
  return {};
}

}  // namespace

std::optional<ActionKind> kind_of(std::string_view type) {
  const Entry* const entry = find_entry(type);
  return entry == nullptr ? std::nullopt : std::optional(entry->kind);
}

std::vector<std::string_view> action_types() {
  std::vector<std::string_view> types;
  types.reserve(kCatalogue.size());
  for (const Entry& entry : kCatalogue)
    types.push_back(entry.type);
  return types;
}

std::string action_annotation(const Owner& owner) {
  return "action.workflows.example.com/" + owner.uid;
}

std::string action_mark(const Owner& owner, std::int64_t id) {
  return fmt::format("{}/{}", owner.run, id);
}

bool has_been_done(const json::Value& object, const Owner& owner, std::int64_t id) {
  const std::string_view mark = kube::annotation_of(object, action_annotation(owner));
  const std::size_t slash = mark.find('/');
  if (slash == std::string_view::npos || mark.substr(0, slash) != owner.run) return false;
  const auto done = parse_number<std::int64_t>(mark.substr(slash + 1));
  return done && *done >= id;
}

Result<RetryPolicy> retry_policy_of(const json::Value& params) {
  RetryPolicy policy;
  const json::Value* const member = json::find(params, {"retry"});
  if (member == nullptr || member->is_null()) return policy;
  if (!member->is_object()) {
    return fail(ErrorKind::InvalidInput, "params.retry: must be an object");
  }
  const json::Object& object = member->get_object();
  const Fields retry(object, "params.retry");
  // A misspelled member would silently become a default.
  constexpr std::array<std::string_view, 6> kMembers{"attempts", "initialInterval", "maxInterval",
                                                     "factor",   "jitter",          "nonRetryable"};
  for (const auto& entry : object) {
    if (std::ranges::find(kMembers, std::string_view(entry.key())) != kMembers.end()) continue;
    return fail(ErrorKind::InvalidInput,
                fmt::format("{}: is not known; known are {}", retry.name(entry.key()),
                            fmt::join(kMembers, ", ")));
  }
  constexpr std::int64_t kAttemptsMax = 1000;
  if (retry.has("attempts")) {
    const std::int64_t attempts = HANGAR_TRY(retry.integer("attempts"));
    if (attempts < 1 || attempts > kAttemptsMax) return retry.wrong("attempts", "1 to 1000");
    policy.attempts_max = static_cast<std::uint32_t>(attempts);
  }
  const auto interval = [&](std::string_view key, Duration otherwise) -> Result<Duration> {
    if (!retry.has(key)) return otherwise;
    const Duration duration = HANGAR_TRY(retry.duration(key));
    if (duration < Duration::zero() || duration > Duration(limits::kWorkflowDelayMax)) {
      return retry.wrong(key, "a duration such as 10s");
    }
    return duration;
  };
  policy.initial_interval = HANGAR_TRY(interval("initialInterval", policy.initial_interval));
  policy.interval_max = HANGAR_TRY(interval("maxInterval", policy.interval_max));
  policy.factor = HANGAR_TRY(number_at(retry, object, "factor", policy.factor));
  if (!(policy.factor >= 1 && policy.factor <= 100)) return retry.wrong("factor", "1 to 100");
  policy.jitter = HANGAR_TRY(number_at(retry, object, "jitter", policy.jitter));
  if (!(policy.jitter >= 0 && policy.jitter <= 1)) return retry.wrong("jitter", "0 to 1");
  if (retry.has("nonRetryable")) policy.non_retryable = HANGAR_TRY(retry.texts("nonRetryable"));
  return policy;
}

Result<Duration> timeout_of(std::string_view type, const json::Value& params) {
  const Entry* const entry = find_entry(type);
  const Duration otherwise = entry == nullptr ? minutes(5) : entry->timeout;
  if (!params.is_object()) return otherwise;
  const Fields fields(params.get_object(), "params");
  if (!fields.has("timeout")) return otherwise;
  const Duration timeout = HANGAR_TRY(fields.duration("timeout"));
  if (timeout <= Duration::zero() || timeout > Duration(limits::kWorkflowDelayMax)) {
    return fields.wrong("timeout", "a duration such as 10m, more than 0");
  }
  return timeout;
}

Result<ActionPlan> plan_action(const Owner& owner, const PendingAction& action) {
  const std::optional<ActionKind> kind = kind_of(action.type);
  if (!kind) return fail(ErrorKind::InvalidInput, "unknown action " + action.type);
  if (!action.params.is_object()) {
    return fail(ErrorKind::InvalidInput, "params: must be an object");
  }
  ActionPlan plan{.kind = *kind, .retry = HANGAR_TRY(retry_policy_of(action.params))};
  const Duration timeout = HANGAR_TRY(timeout_of(action.type, action.params));
  (void)timeout;  // Already used for the action's deadline.
  const json::Value& raw = action.params;
  const Fields params(raw.get_object(), "params");
  switch (*kind) {
    case ActionKind::CreatePvc:
      HANGAR_TRY(plan_object(pvc_manifest(params, owner, action.id), owner, action.id, plan));
      break;
    case ActionKind::CreateDeployment:
      HANGAR_TRY(
          plan_object(deployment_manifest(params, raw, owner, action.id), owner, action.id, plan));
      break;
    case ActionKind::RunHealthCheck:
      plan.gvk = {.group = "apps", .version = "v1", .kind = "Deployment"};
      plan.key = {.namespace_ = owner.key.namespace_,
                  .name = HANGAR_TRY(params.required_text("deploymentName"))};
      break;
    case ActionKind::DeleteResources:
      break;
    case ActionKind::Apply:
      HANGAR_TRY(plan_object(given_manifest(params, owner, action.id), owner, action.id, plan));
      plan.is_forced = HANGAR_TRY(params.flag("force"));
      break;
    case ActionKind::Patch:
      HANGAR_TRY(plan_target(params, owner, plan));
      HANGAR_TRY(plan_patch(params, raw, plan));
      json::set_at(plan.document, {"metadata", "annotations", action_annotation(owner)},
                   text_value(action_mark(owner, action.id)));
      break;
    case ActionKind::Delete:
      HANGAR_TRY(plan_target(params, owner, plan));
      break;
    case ActionKind::WaitFor:
      HANGAR_TRY(plan_target(params, owner, plan));
      plan.wish = HANGAR_TRY(parse_wish(params));
      break;
    case ActionKind::RunJob:
      HANGAR_TRY(plan_object(job_manifest(params, owner, action.id), owner, action.id, plan));
      break;
    case ActionKind::Send:
      HANGAR_TRY(plan_send(params, raw, owner, plan));
      break;
    case ActionKind::Emit:
      HANGAR_TRY(plan_emit(params, owner, action, plan));
      break;
  }
  return plan;
}

std::optional<OwnedResource> resource_of(const ActionPlan& plan) {
  switch (plan.kind) {
    case ActionKind::CreatePvc:
    case ActionKind::CreateDeployment:
    case ActionKind::Apply:
    case ActionKind::RunJob:
      return OwnedResource{.api_version = plan.gvk.api_version(),
                           .kind = plan.gvk.kind,
                           .namespace_ = plan.key.namespace_,
                           .name = plan.key.name};
    default:
      return std::nullopt;
  }
}

json::Value done_event(const PendingAction& action) {
  const std::string_view wanted = json::string_at(action.params, {"onDone"});
  const Entry* const entry = find_entry(action.type);
  const std::string_view otherwise = entry == nullptr ? "ACTION_DONE" : entry->event;
  return json::Object{{"type", wanted.empty() ? otherwise : wanted},
                      {"action", action.type},
                      {"actionId", action.id}};
}

json::Value failure_event(const PendingAction& action, std::string_view reason,
                          std::string_view message) {
  const std::string_view wanted = json::string_at(action.params, {"onError"});
  return json::Object{{"type", wanted.empty() ? std::string_view("FAILURE") : wanted},
                      {"message", message},
                      {"reason", reason},
                      {"action", action.type},
                      {"actionId", action.id},
                      {"attempts", action.attempts}};
}

std::string signal_id(const Owner& owner, const PendingAction& action) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(action.requested_at.time_since_epoch());
  return fmt::format("{:016}.{:06}.{}", micros.count(), action.id, owner.uid);
}

}  // namespace hangar::workflows
