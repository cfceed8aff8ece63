#include "nodes/node_view.h"

#include "base/number.h"
#include "base/result.h"
#include "base/utf8.h"
#include "reconcile/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace hangar::nodes {

namespace {

// Bound of a container's last message in an annotation and a condition: a line or two.
constexpr std::size_t kProblemBytesMax = 512;

// A node may write its own annotations, and the host increments these numbers.
constexpr std::int64_t kNumberMax = 1'000'000'000;

std::int64_t number_of(std::string_view text) {
  return std::clamp<std::int64_t>(parse_number<std::int64_t>(text).value_or(0), 0, kNumberMax);
}

WallTime time_of(std::string_view text) {
  const Result<WallTime> time = parse_rfc3339(text);
  // The difference of the present and a time centuries ago does not fit into 64 bits.
  return time && *time >= WallTime() ? *time : WallTime();
}

NodeState state_of(const json::Value& node) {
  NodeState state;
  const std::string_view phase = kube::annotation_of(node, kPhaseAnnotation);
  const auto* const found =
      std::ranges::find(kPhases, phase, [](Phase one) { return name_of(one); });
  if (found != kPhases.end()) state.phase = *found;
  if (kube::annotation_of(node, kActionAnnotation) == name_of(Action::Uninstall)) {
    state.action = Action::Uninstall;
  }
  state.attempt = number_of(kube::annotation_of(node, kAttemptAnnotation));
  state.failures = number_of(kube::annotation_of(node, kFailuresAnnotation));
  state.since = time_of(kube::annotation_of(node, kSinceAnnotation));
  state.version = kube::annotation_of(node, kVersionAnnotation);
  state.target = kube::annotation_of(node, kTargetAnnotation);
  state.last_error = kube::annotation_of(node, kErrorAnnotation);
  return state;
}

Wish wish_of(std::string_view annotation) {
  if (annotation == "true") return Wish::Yes;
  return annotation == "false" ? Wish::No : Wish::Unsaid;
}

// One line that fits an annotation.
std::string line_of(std::string_view text) {
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  text = utf8_end(text, kProblemBytesMax);  // The end of the output names the cause.
  std::string line(text.substr(0, valid_utf8_prefix(text)));
  std::ranges::replace_if(
      line, [](char one) { return static_cast<unsigned char>(one) < 0x20; }, ' ');
  return line;
}

std::string waiting_problem(const json::Value& container) {
  const std::string_view reason = json::string_at(container, {"state", "waiting", "reason"});
  const std::string_view image = json::string_at(container, {"image"});
  // The kubelet pulls for ever, and alternates between these reasons and changing messages.
  if (reason == "ErrImagePull" || reason == "ImagePullBackOff") {
    return fmt::format("the image {} cannot be pulled", image);
  }
  if (reason == "InvalidImageName") return fmt::format("{} is not the name of an image", image);
  if (reason == "ErrImageNeverPull" || reason == "CreateContainerConfigError" ||
      reason == "CreateContainerError" || reason == "RunContainerError") {
    return line_of(
        fmt::format("{}: {}", reason, json::string_at(container, {"state", "waiting", "message"})));
  }
  return {};
}

std::string ended_problem(const json::Value& container) {
  const json::Object* const ended = json::object_at(container, {"state", "terminated"});
  if (ended == nullptr) return {};
  const std::int64_t code = json::int_at(container, {"state", "terminated", "exitCode"});
  if (code == 0) return {};
  const std::string_view message = json::string_at(container, {"state", "terminated", "message"});
  return message.empty() ? fmt::format("exit code {}", code)
                         : fmt::format("exit code {}: {}", code, line_of(message));
}

}  // namespace

kube::Resource node_resource() {
  return {.version = "v1", .plural = "nodes", .kind = "Node"};
}

kube::Resource job_resource() {
  return {.group = "batch", .version = "v1", .plural = "jobs", .kind = "Job", .namespaced = true};
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::None:
      return "None";
    case Phase::Installing:
      return "Installing";
    case Phase::Verifying:
      return "Verifying";
    case Phase::Provisioned:
      return "Provisioned";
    case Phase::Uninstalling:
      return "Uninstalling";
    case Phase::Failed:
      break;
  }
  return "Failed";
}

NodeView node_view(const json::Value& node) {
  NodeView view;
  view.name = json::string_at(node, {"metadata", "name"});
  view.uid = json::string_at(node, {"metadata", "uid"});
  view.resource_version = json::string_at(node, {"metadata", "resourceVersion"});
  view.wish = wish_of(kube::annotation_of(node, kWishAnnotation));
  view.is_skipped = kube::annotation_of(node, kSkipAnnotation) == "true";
  view.is_retry_asked = kube::annotation_of(node, kRetryAnnotation) == "true";
  const std::string_view system = kube::label_of(node, "kubernetes.io/os");
  view.is_linux = system.empty() || system == "linux";
  view.is_being_deleted = json::find(node, {"metadata", "deletionTimestamp"}) != nullptr;
  const std::string_view published = kube::label_of(node, kPublishedLabel);
  view.has_published_label = published == label_value(view.name);
  view.has_foreign_label = !published.empty() && !view.has_published_label;
  view.has_provisioned_label = kube::label_of(node, kProvisionedLabel) == "true";
  const json::Value* const status = json::find(node, {"status"});
  if (status != nullptr) {
    if (const json::Value* ready = reconcile::find_condition(*status, "Ready")) {
      view.is_ready = json::string_at(*ready, {"status"}) == "True";
    }
    if (const json::Value* ours = reconcile::find_condition(*status, kConditionType)) {
      view.condition_reason = json::string_at(*ours, {"reason"});
      view.condition_message = json::string_at(*ours, {"message"});
    }
  }
  view.state = state_of(node);
  return view;
}

bool is_same_to_us(const NodeView& left, const NodeView& right) {
  NodeView copy = left;
  copy.resource_version = right.resource_version;
  return copy == right;
}

bool is_in_same_state(const NodeView& left, const NodeView& right) {
  return left.uid == right.uid && left.state == right.state;
}

JobView job_view(const json::Value& job) {
  JobView view;
  view.name = json::string_at(job, {"metadata", "name"});
  view.uid = json::string_at(job, {"metadata", "uid"});
  for (const kube::OwnerReference& owner : kube::owners_of(job)) {
    if (owner.kind != "Node") continue;
    view.node = owner.name;
    view.node_uid = owner.uid;
  }
  const std::string_view action = kube::label_of(job, kJobActionLabel);
  for (const Action one : {Action::Install, Action::Uninstall, Action::Probe}) {
    if (action == name_of(one)) view.action = one;
  }
  view.attempt = number_of(kube::label_of(job, kJobAttemptLabel));
  view.is_being_deleted = json::find(job, {"metadata", "deletionTimestamp"}) != nullptr;
  const json::Value* const status = json::find(job, {"status"});
  if (status == nullptr) return view;
  for (const auto& [type, state] :
       {std::pair("Complete", JobState::Succeeded), std::pair("Failed", JobState::Failed)}) {
    const json::Value* const condition = reconcile::find_condition(*status, type);
    if (condition == nullptr || json::string_at(*condition, {"status"}) != "True") continue;
    view.state = state;
    view.finished_at = time_of(json::string_at(*condition, {"lastTransitionTime"}));
    if (state == JobState::Failed) {
      view.is_out_of_time = json::string_at(*condition, {"reason"}) == "DeadlineExceeded";
      view.problem = line_of(json::string_at(*condition, {"message"}));
      if (view.problem.empty()) view.problem = json::string_at(*condition, {"reason"});
    }
  }
  return view;
}

std::string pod_problem(const json::Value& pod) {
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    const json::Array* const containers = json::array_at(pod, {"status", list});
    if (containers == nullptr) continue;
    for (const json::Value& container : *containers) {
      std::string problem = waiting_problem(container);
      if (problem.empty()) problem = ended_problem(container);
      if (!problem.empty()) return problem;
    }
  }
  if (json::string_at(pod, {"status", "phase"}) != "Failed") return {};
  const std::string_view message = json::string_at(pod, {"status", "message"});
  return line_of(message.empty() ? json::string_at(pod, {"status", "reason"}) : message);
}

bool is_pod_stuck(const json::Value& pod) {
  return json::string_at(pod, {"status", "phase"}) == "Pending" && !pod_problem(pod).empty();
}

const std::optional<JobView>& NodeJobs::of(Action action) const {
  switch (action) {
    case Action::Install:
      return install;
    case Action::Uninstall:
      return uninstall;
    case Action::Probe:
      break;
  }
  return probe;
}

}  // namespace hangar::nodes
