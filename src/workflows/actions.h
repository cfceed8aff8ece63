// The actions that a machine may request: each is read and checked once, and translated into a plan
// for the cluster. docs/operating/workflows.md has the catalogue.
//
// An action carries its own policy in its params: `timeout`, `retry`, and `onDone` and `onError`,
// the types of the events that report its result. Pure: no I/O.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "workflows/json_path.h"
#include "workflows/ledger.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

enum class ActionKind : std::uint8_t {
  CreatePvc,
  CreateDeployment,
  RunHealthCheck,
  DeleteResources,
  Apply,
  Patch,
  Delete,
  WaitFor,
  RunJob,
  Send,
  Emit,
};
// Nothing for a type that is not in the catalogue.
[[nodiscard]] std::optional<ActionKind> kind_of(std::string_view type);
// All types, as machines write them.
[[nodiscard]] std::vector<std::string_view> action_types();

// The workflow that an action belongs to.
struct Owner {
  kube::ObjectKey key;
  std::string uid;
  std::string run;
};

// Objects that a workflow makes are labelled with its uid, annotated with its name, and remember
// the last action that changed them.
inline constexpr std::string_view kUidLabel = "workflows.example.com/workflow-uid";
inline constexpr std::string_view kNameAnnotation = "workflows.example.com/workflow";
[[nodiscard]] std::string action_annotation(const Owner& owner);
// "<run>/<id>".
[[nodiscard]] std::string action_mark(const Owner& owner, std::int64_t id);
// Whether `object` shows that this action, or one requested after it, was carried out.
[[nodiscard]] bool has_been_done(const json::Value& object, const Owner& owner, std::int64_t id);

// How many attempts an action has, and when.
struct RetryPolicy {
  std::uint32_t attempts_max = 5;
  Duration initial_interval = std::chrono::seconds(1);
  Duration interval_max = std::chrono::seconds(30);
  double factor = 2;
  double jitter = 0.1;  // Share of the interval, added at random.
  // Names of error kinds and the API server's reasons that no retry repairs.
  std::vector<std::string> non_retryable = {"InvalidInput"};
};
// Reads params.retry. InvalidInput names the field, also an unknown one.
[[nodiscard]] Result<RetryPolicy> retry_policy_of(const json::Value& params);
// How long an action may take, retries included.
[[nodiscard]] Result<Duration> timeout_of(std::string_view type, const json::Value& params);

// The condition of WAIT_FOR: all given parts hold; if none is given, the object exists.
struct Wish {
  std::string condition = {};  // The object has a condition of this type...
  std::string condition_status = "True";
  std::optional<JsonPath> path = {};      // The path matches a value...
  std::optional<std::string> value = {};  // ...that is equal to this one.
  bool is_gone = false;                   // The object does not exist.
};

struct ActionPlan {
  ActionKind kind = ActionKind::Apply;
  RetryPolicy retry = {};
  // The object that the action is about; empty for DELETE_RESOURCES.
  kube::GroupVersionKind gvk = {};
  kube::ObjectKey key = {};  // Set whether or not the kind is namespaced.
  // The object to apply or create; the patch; the event to send.
  json::Value document = {};
  kube::PatchType patch_type = kube::PatchType::Merge;
  bool is_forced = false;  // Takes fields over from other field managers.
  Wish wish = {};
};

// InvalidInput names the fault in the params. Requires that `action.type` is in the catalogue.
[[nodiscard]] Result<ActionPlan> plan_action(const Owner& owner, const PendingAction& action);

// The object that an action creates, if it creates one.
[[nodiscard]] std::optional<OwnedResource> resource_of(const ActionPlan& plan);

// The event that reports an action's result: its default type, and the fields that every machine
// receives.
[[nodiscard]] json::Value done_event(const PendingAction& action);
[[nodiscard]] json::Value failure_event(const PendingAction& action, std::string_view reason,
                                        std::string_view message);

// The annotation that SEND puts on its receiver: ids sort by the time of the request.
[[nodiscard]] std::string signal_id(const Owner& owner, const PendingAction& action);

}  // namespace hangar::workflows
