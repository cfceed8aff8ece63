#include "workflows/workflow.h"

#include "base/limits.h"
#include "json/fields.h"

#include <fmt/format.h>

#include <utility>

namespace hangar::workflows {

namespace {

using json::Fields;

Result<> parse_module(const Fields& spec, Workflow& workflow) {
  const bool has_config_map = spec.has("moduleConfigMap");
  if (has_config_map == spec.has("module")) {
    return fail(ErrorKind::InvalidInput,
                "spec.moduleConfigMap: exactly one of moduleConfigMap and module is needed");
  }
  if (has_config_map) {
    std::string name = HANGAR_TRY(spec.required_text("moduleConfigMap"));
    if (name.find('/') != std::string::npos) {
      return spec.wrong("moduleConfigMap", "the name of a ConfigMap in the workflow's namespace");
    }
    workflow.module = fmt::format("configmap://{}/{}", workflow.key.namespace_, name);
    workflow.config_map = std::move(name);
    return {};
  }
  const Fields module = HANGAR_TRY(spec.required_object("module"));
  workflow.module = HANGAR_TRY(module.required_text("url"));
  workflow.module_sha256 = HANGAR_TRY(module.text("sha256"));
  workflow.insecure = HANGAR_TRY(module.flag("insecure"));
  // Reading another namespace's ConfigMaps is not for whoever may create workflows in this one.
  if (workflow.module.starts_with("configmap://")) {
    return module.wrong("url", "http(s), oci or file; for a ConfigMap use spec.moduleConfigMap");
  }
  return {};
}

Result<Duration> positive(const Fields& fields, std::string_view key) {
  const Duration duration = HANGAR_TRY(fields.duration(key));
  if (duration <= Duration::zero() || duration > Duration(limits::kWorkflowDelayMax)) {
    return fields.wrong(key, "a duration such as 10m, more than 0");
  }
  return duration;
}

Result<> parse_timeouts(const Fields& spec, Workflow& workflow) {
  if (!spec.has("timeouts")) return {};
  const Fields timeouts = HANGAR_TRY(spec.required_object("timeouts"));
  if (timeouts.has("workflow")) workflow.timeout = HANGAR_TRY(positive(timeouts, "workflow"));
  const json::Object* const states = HANGAR_TRY(timeouts.object("states"));
  if (states == nullptr) return {};
  const Fields fields(*states, timeouts.name("states"));
  for (const auto& state : *states) {
    workflow.state_timeouts[std::string(state.key())] = HANGAR_TRY(positive(fields, state.key()));
  }
  return {};
}

}  // namespace

kube::Resource workflow_resource() {
  return {.group = "workflows.example.com",
          .version = "v1",
          .plural = "statefulworkflows",
          .kind = "StatefulWorkflow",
          .namespaced = true};
}

Result<Workflow> parse_workflow(const json::Value& manifest) {
  Workflow workflow{.key = kube::key_of(manifest),
                    .uid = std::string(json::string_at(manifest, {"metadata", "uid"})),
                    .generation = json::int_at(manifest, {"metadata", "generation"})};
  const json::Object* const object = json::object_at(manifest, {"spec"});
  if (object == nullptr) return fail(ErrorKind::InvalidInput, "spec: is required");
  const Fields spec(*object, "spec");
  HANGAR_TRY(parse_module(spec, workflow));
  if (const json::Object* const input = HANGAR_TRY(spec.object("input"))) {
    workflow.input = json::dump(*input);
  }
  if (spec.has("serviceAccountName")) {
    workflow.service_account = HANGAR_TRY(spec.required_text("serviceAccountName"));
    // It becomes part of a user name that RBAC decides by: nothing but a name.
    if (workflow.service_account.find_first_of(":/ \t\n") != std::string::npos) {
      return spec.wrong("serviceAccountName", "the name of a ServiceAccount");
    }
  }
  HANGAR_TRY(parse_timeouts(spec, workflow));
  if (spec.has("historyLimit")) {
    const std::int64_t limit = HANGAR_TRY(spec.integer("historyLimit"));
    if (limit < 0 || limit > static_cast<std::int64_t>(limits::kWorkflowHistoryMax)) {
      return spec.wrong("historyLimit", fmt::format("0 to {}", limits::kWorkflowHistoryMax));
    }
    workflow.history_max = static_cast<std::size_t>(limit);
  }
  return workflow;
}

}  // namespace hangar::workflows
