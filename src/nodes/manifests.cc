#include "nodes/manifests.h"

#include "base/dns_name.h"
#include "nodes/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace hangar::nodes {

namespace {

constexpr std::string_view kRoot = "/mnt/node-root";
// Where the default command of our installer's image looks for runtimes.
constexpr std::string_view kRuntimes = "/runtimes";
constexpr std::string_view kCaDirectory = "/etc/hangar-ca";
constexpr std::string_view kCaKey = "ca.crt";
// Of the container that downloads. Its pod sees the node's processes, and a process may kill others
// of its own user and read their files: 65532 is the user of many images, the host's too. This one
// lies above the ranges of systemd, user namespaces and OpenShift.
constexpr std::int64_t kFetchUser = 2'000'065'532;

json::Value text_or_null(const std::string& text) {
  return text.empty() ? json::Value(nullptr) : json::Value(text);
}

json::Value number_or_null(std::int64_t number) {
  return number == 0 ? json::Value(nullptr) : json::Value(fmt::format("{}", number));
}

std::int64_t seconds_of(Duration duration) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(duration).count());
}

json::Object labels_of(const NodeView& node, Action action) {
  return {{kJobLabel, "true"},
          {kJobActionLabel, name_of(action)},
          {kJobAttemptLabel, fmt::format("{}", node.state.attempt)}};
}

json::Object small_resources() {
  // An installer copies files of some 100 MB: they count as page cache, not here.
  return {{"requests", json::Object{{"cpu", "10m"}, {"memory", "32Mi"}}},
          {"limits", json::Object{{"memory", "512Mi"}}}};
}

// The container that opens connections and unpacks archives has no privileges on the node.
json::Object fetch_container(const JobOptions& options) {
  json::Array command{"hangar-node-fetch", "--to", kRuntimes};
  json::Array mounts{json::Object{{"name", "runtimes"}, {"mountPath", kRuntimes}}};
  if (!options.fetch_ca_config_map.empty()) {
    command.insert(command.end(), {"--ca-file", fmt::format("{}/{}", kCaDirectory, kCaKey)});
    mounts.push_back(json::Object{{"name", "ca"}, {"mountPath", kCaDirectory}, {"readOnly", true}});
  }
  command.insert(command.end(), options.runtimes.begin(), options.runtimes.end());
  json::Object container{
      {"name", "fetch-runtimes"},
      {"image", options.fetch_image},
      {"command", std::move(command)},
      {"securityContext",
       json::Object{{"runAsNonRoot", true},
                    {"runAsUser", kFetchUser},
                    {"runAsGroup", kFetchUser},
                    {"allowPrivilegeEscalation", false},
                    {"readOnlyRootFilesystem", true},
                    {"capabilities", json::Object{{"drop", json::Array{"ALL"}}}},
                    {"seccompProfile", json::Object{{"type", "RuntimeDefault"}}}}},
      {"volumeMounts", std::move(mounts)},
      {"resources", small_resources()},
      {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  json::Array environment;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) environment.push_back(json::Object{{"name", name}, {"value", value}});
  };
  // curl reads only http_proxy in lower case: a CGI server would set HTTP_PROXY from a header.
  add("http_proxy", options.fetch_proxy);
  add("HTTPS_PROXY", options.fetch_proxy);
  add("NO_PROXY", options.fetch_no_proxy);
  if (!environment.empty()) container["env"] = std::move(environment);
  return container;
}

bool has_fetch(Action action, const JobOptions& options) {
  return action == Action::Install && !options.runtimes.empty();
}

json::Object installer_container(Action action, const JobOptions& options) {
  json::Object container{
      {"name", action == Action::Install ? "kwasm-provision" : "kwasm-uninstall"},
      {"image", options.image},
      {"securityContext", json::Object{{"privileged", true}}},
      {"env", json::Array{json::Object{{"name", "NODE_ROOT"}, {"value", kRoot}}}},
      {"volumeMounts", json::Array{json::Object{{"name", "root-mount"}, {"mountPath", kRoot}}}},
      {"resources", small_resources()},
      {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  if (action == Action::Uninstall) {
    container["command"] =
        json::Array(options.uninstall_command.begin(), options.uninstall_command.end());
  }
  if (has_fetch(action, options)) {
    container["volumeMounts"].as_array().push_back(
        json::Object{{"name", "runtimes"}, {"mountPath", kRuntimes}, {"readOnly", true}});
    json::Array command{"hangar-node", "install", "--runtimes-dir", kRuntimes};
    for (const std::string& checksum : options.checksums) {
      command.emplace_back("--checksum");
      command.emplace_back(checksum);
    }
    container["command"] = std::move(command);
  }
  return container;
}

json::Object probe_container(const JobOptions& options) {
  return {{"name", "probe"},
          {"image", options.probe_image},
          {"resources", small_resources()},
          {"terminationMessagePolicy", "FallbackToLogsOnError"}};
}

json::Object pod_spec(const NodeView& node, Action action, const JobOptions& options) {
  json::Object spec{// Bypasses the scheduler: the node may be cordoned, tainted or full.
                    {"nodeName", node.name},
                    {"restartPolicy", "Never"},
                    {"automountServiceAccountToken", false},
                    {"enableServiceLinks", false},
                    {"tolerations", json::Array{json::Object{{"operator", "Exists"}}}}};
  json::Array secrets;
  for (const std::string& name : options.pull_secrets)
    secrets.push_back(json::Object{{"name", name}});
  if (!secrets.empty()) spec["imagePullSecrets"] = std::move(secrets);
  if (action == Action::Probe) {
    spec["runtimeClassName"] = options.probe_runtime_class;
    spec["containers"] = json::Array{probe_container(options)};
    return spec;
  }
  spec["hostPID"] = true;
  spec["volumes"] =
      json::Array{json::Object{{"name", "root-mount"}, {"hostPath", json::Object{{"path", "/"}}}}};
  spec["containers"] = json::Array{installer_container(action, options)};
  if (has_fetch(action, options)) {
    spec["volumes"].as_array().push_back(
        json::Object{{"name", "runtimes"}, {"emptyDir", json::Object{}}});
    if (!options.fetch_ca_config_map.empty()) {
      // Only one key: the rest of the ConfigMap must not reach a container that talks to strangers.
      const json::Array items{json::Object{{"key", kCaKey}, {"path", kCaKey}}};
      spec["volumes"].as_array().push_back(json::Object{
          {"name", "ca"},
          {"configMap", json::Object{{"name", options.fetch_ca_config_map}, {"items", items}}}});
    }
    spec["initContainers"] = json::Array{fetch_container(options)};
  }
  return spec;
}

json::Object label_changes(const NodeView& node, LabelChange change) {
  switch (change) {
    case LabelChange::Keep:
      return {};
    case LabelChange::Set:
      return {{kPublishedLabel, label_value(node.name)}, {kProvisionedLabel, "true"}};
    case LabelChange::Remove:
      return {{kPublishedLabel, nullptr}, {kProvisionedLabel, nullptr}};
    case LabelChange::Unschedulable:
      break;
  }
  return {{kProvisionedLabel, nullptr}};
}

Slots names_in(std::string_view list) {
  Slots names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) names.emplace(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

json::Object annotations_of(const NodeState& state) {
  if (state == NodeState{}) {
    json::Object nothing;
    for (const std::string_view key :
         {kPhaseAnnotation, kActionAnnotation, kAttemptAnnotation, kFailuresAnnotation,
          kSinceAnnotation, kVersionAnnotation, kTargetAnnotation, kErrorAnnotation}) {
      nothing[key] = nullptr;
    }
    return nothing;
  }
  return {{kPhaseAnnotation, name_of(state.phase)},
          {kActionAnnotation, name_of(state.action)},
          {kAttemptAnnotation, number_or_null(state.attempt)},
          {kFailuresAnnotation, number_or_null(state.failures)},
          {kSinceAnnotation, to_rfc3339(state.since)},
          {kVersionAnnotation, text_or_null(state.version)},
          {kTargetAnnotation, text_or_null(state.target)},
          {kErrorAnnotation, text_or_null(state.last_error)}};
}

}  // namespace

kube::Resource runtime_class_resource() {
  return {
      .group = "node.k8s.io", .version = "v1", .plural = "runtimeclasses", .kind = "RuntimeClass"};
}

Result<RuntimeClass> parse_runtime_class(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view handler =
      equals == std::string_view::npos ? name : text.substr(equals + 1);
  if (!is_dns_subdomain(name) || !is_dns_subdomain(handler)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not a runtime class: write NAME, or NAME=HANDLER", text));
  }
  return RuntimeClass{.name = std::string(name), .handler = std::string(handler)};
}

std::string version_of(std::string_view image, std::vector<std::string> runtimes) {
  if (runtimes.empty()) return std::string(image);
  for (std::string& runtime : runtimes) {
    // FILE[@ARCHITECTURE]=URL#sha256:HEX without the URL. For an archive the program's
    // checksum counts.
    const std::size_t url = runtime.find('=');
    const std::size_t checksum = runtime.rfind('#');
    if (url < checksum && checksum != std::string::npos) runtime.erase(url, checksum - url);
  }
  std::ranges::sort(runtimes);
  return fmt::format("{}+runtimes.{}", image,
                     short_hash(fmt::format("{}", fmt::join(runtimes, ","))));
}

json::Value job_manifest(const NodeView& node, Action action, const JobOptions& options) {
  const json::Object labels = labels_of(node, action);
  const json::Object owner{{"apiVersion", "v1"},
                           {"kind", "Node"},
                           {"name", node.name},
                           {"uid", node.uid},
                           {"controller", true}};
  return json::Object{
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", json::Object{{"name", job_name(node.name, action)},
                                {"namespace", options.namespace_},
                                {"labels", labels},
                                {"ownerReferences", json::Array{owner}}}},
      {"spec",
       json::Object{{"backoffLimit", options.retries},
                    {"activeDeadlineSeconds", seconds_of(options.timeout)},
                    {"ttlSecondsAfterFinished", limits::kNodeJobKept.count()},
                    {"template", json::Object{{"metadata", json::Object{{"labels", labels}}},
                                              {"spec", pod_spec(node, action, options)}}}}}};
}

json::Value runtime_class_manifest(const RuntimeClass& runtime_class, Scheduling scheduling) {
  const bool is_probe = scheduling == Scheduling::Anywhere;
  json::Object manifest{
      {"apiVersion", "node.k8s.io/v1"},
      {"kind", "RuntimeClass"},
      {"metadata",
       json::Object{{"name", is_probe ? probe_class_name(runtime_class.name) : runtime_class.name},
                    {"labels", json::Object{{kOwnerLabel, kOwner}}}}},
      {"handler", runtime_class.handler}};
  if (!is_probe) {
    manifest["scheduling"] =
        json::Object{{"nodeSelector", json::Object{{kProvisionedLabel, "true"}}}};
  }
  return manifest;
}

std::string probe_class_name(std::string_view runtime_class) {
  return fmt::format("{}-probe", runtime_class);
}

json::Value node_patch(const NodeView& node, const WriteState& write) {
  json::Object annotations = annotations_of(write.state);
  if (write.is_retry_over) annotations[kRetryAnnotation] = nullptr;
  json::Object metadata{{"resourceVersion", node.resource_version},
                        {"annotations", std::move(annotations)}};
  json::Object labels = label_changes(node, write.labels);
  if (!labels.empty()) metadata["labels"] = std::move(labels);
  return json::Object{{"metadata", std::move(metadata)}};
}

json::Value condition_patch(const SetCondition& condition, WallTime now) {
  json::Object entry{{"type", kConditionType}};
  if (condition.reason.empty()) {
    entry["$patch"] = "delete";
  } else {
    entry["status"] = condition.is_true ? "True" : "False";
    entry["reason"] = condition.reason;
    entry["message"] = condition.message;
    entry["lastHeartbeatTime"] = to_rfc3339(now);
    entry["lastTransitionTime"] = to_rfc3339(now);
  }
  return json::Object{{"status", json::Object{{"conditions", json::Array{std::move(entry)}}}}};
}

std::vector<std::string> new_slots(const Record& before, const Record& after) {
  std::vector<std::string> names;
  for (const std::string& name : after.slots) {
    if (after.has_slot(name) && !before.has_slot(name)) names.push_back(name);
  }
  return names;
}

Record parse_record(const json::Value& config_map) {
  Record record;
  record.resource_version = json::string_at(config_map, {"metadata", "resourceVersion"});
  record.slots = names_in(json::string_at(config_map, {"data", "active"}));
  record.leaving = names_in(json::string_at(config_map, {"data", "leaving"}));
  const std::string_view standing = json::string_at(config_map, {"data", "standing"});
  for (const Standing one :
       {Standing::Done, Standing::Rolling, Standing::Waiting, Standing::Halted}) {
    if (standing == name_of(one)) record.progress.standing = one;
  }
  record.progress.message = json::string_at(config_map, {"data", "message"});
  record.version = json::string_at(config_map, {"data", "version"});
  record.auto_provision = json::string_at(config_map, {"data", "autoProvision"}) == "true";
  return record;
}

json::Value record_manifest(const Record& record, std::string_view namespace_) {
  json::Object metadata{{"name", kRecordName},
                        {"namespace", namespace_},
                        {"labels", json::Object{{kOwnerLabel, kOwner}}}};
  if (!record.resource_version.empty()) metadata["resourceVersion"] = record.resource_version;
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", std::move(metadata)},
      {"data", json::Object{{"active", fmt::format("{}", fmt::join(record.slots, ","))},
                            {"leaving", fmt::format("{}", fmt::join(record.leaving, ","))},
                            {"standing", name_of(record.progress.standing)},
                            {"message", record.progress.message},
                            {"version", record.version},
                            {"autoProvision", record.auto_provision ? "true" : "false"}}}};
}

}  // namespace hangar::nodes
