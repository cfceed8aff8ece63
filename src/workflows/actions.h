// What a machine may ask for: each action, read once and checked, as what it means for the cluster.
// docs/operating/workflows.md has the catalogue.
//
// An action carries its own policy in its params: `timeout`, `retry`, and `onDone` and `onError`,
// the types of the events that it ends in. Pure: no I/O.
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

// Whose action it is.
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
// Whether `object` shows that this action, or one asked for after it, was carried out.
[[nodiscard]] bool has_been_done(const json::Value& object, const Owner& owner, std::int64_t id);

// How often an action is tried, and when.
struct RetryPolicy {
  std::uint32_t attempts_max = 5;
  Duration initial_interval = std::chrono::seconds(1);
  Duration interval_max = std::chrono::seconds(30);
  double factor = 2;
  double jitter = 0.1;  // Of the interval, added at random.
  // Names of error kinds and the API server's reasons that no repetition mends.
  std::vector<std::string> non_retryable = {"InvalidInput"};
};
// In params.retry. InvalidInput naming the field, also one that is not known.
[[nodiscard]] Result<RetryPolicy> retry_policy_of(const json::Value& params);
// How long an action may take, retries included.
[[nodiscard]] Result<Duration> timeout_of(std::string_view type, const json::Value& params);

// What WAIT_FOR waits for: all that is given; with nothing given, that the object is there.
struct Wish {
  std::string condition = {};  // Of that type...
  std::string condition_status = "True";
  std::optional<JsonPath> path = {};      // Leads to something...
  std::optional<std::string> value = {};  // ...that is this.
  bool is_gone = false;                   // There is no such object.
};

struct ActionPlan {
  ActionKind kind = ActionKind::Apply;
  RetryPolicy retry = {};
  // The object that it is about; nothing for DELETE_RESOURCES.
  kube::GroupVersionKind gvk = {};
  kube::ObjectKey key = {};  // Without regard to whether the kind is namespaced.
  // What to apply or create; the patch; the event to send.
  json::Value document = {};
  kube::PatchType patch_type = kube::PatchType::Merge;
  bool is_forced = false;  // Fields that others manage are taken over.
  Wish wish = {};
};

// InvalidInput naming what is wrong with the params. `action.type` is in the catalogue.
[[nodiscard]] Result<ActionPlan> plan_action(const Owner& owner, const PendingAction& action);

// Of actions that make an object: which.
[[nodiscard]] std::optional<OwnedResource> resource_of(const ActionPlan& plan);

// The event that an action ends in: its type by default, and what everybody is told.
[[nodiscard]] json::Value done_event(const PendingAction& action);
[[nodiscard]] json::Value failure_event(const PendingAction& action, std::string_view reason,
                                        std::string_view message);

// The annotation that SEND leaves on its receiver: sorts by the time of asking.
[[nodiscard]] std::string signal_id(const Owner& owner, const PendingAction& action);

}  // namespace hangar::workflows
