#include "workflows/workflow.h"

#include "abi/statemachine/limits.h"
#include "json/fields.h"
#include "modules/config_map.h"
#include "modules/reference.h"
#include "workflows/limits.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace hangar::workflows {

namespace {

using json::Fields;

Result<std::string> config_map_name(const Fields& fields, std::string_view key) {
  std::string name = HANGAR_TRY(fields.required_text(key));
  if (name.find('/') != std::string::npos) {
    return fields.wrong(key, "the name of a ConfigMap in the workflow's namespace");
  }
  return name;
}

// `config_map_field`: the field for a module in a ConfigMap.
Result<modules::Source> parse_source(const Fields& fields, std::string_view config_map_field) {
  modules::Source source{.reference = HANGAR_TRY(fields.required_text("url")),
                         .sha256 = HANGAR_TRY(fields.text("sha256")),
                         .insecure = HANGAR_TRY(fields.flag("insecure"))};
  // Checked by meaning, not by spelling. A workflow's reference cannot name a namespace.
  const Result<modules::Reference> reference = modules::Reference::parse(source.reference);
  if (!reference) return std::unexpected(Error(reference.error()).in(fields.name("url")));
  if (reference->is_config_map()) {
    return fields.wrong(
        "url", fmt::format("http(s), oci or file; for a ConfigMap use {}", config_map_field));
  }
  return source;
}

Result<> parse_module(const Fields& spec, Workflow& workflow) {
  const bool has_config_map = spec.has("moduleConfigMap");
  if (has_config_map == spec.has("module")) {
    return fail(ErrorKind::InvalidInput,
                "spec.moduleConfigMap: exactly one of moduleConfigMap and module is needed");
  }
  if (has_config_map) {
    std::string name = HANGAR_TRY(config_map_name(spec, "moduleConfigMap"));
    workflow.machine.module.reference =
        fmt::format("configmap://{}/{}", workflow.key.namespace_, name);
    workflow.config_map = std::move(name);
    return {};
  }
  const Fields module = HANGAR_TRY(spec.required_object("module"));
  workflow.machine.module = HANGAR_TRY(parse_source(module, "spec.moduleConfigMap"));
  return {};
}

// Called after the module was parsed.
Result<> parse_plugin(const Fields& spec, Workflow& workflow) {
  const auto in_config_map = [&workflow](std::string_view name) {
    return fmt::format("configmap://{}/{}/{}", workflow.key.namespace_, name, modules::kPluginKey);
  };
  if (!spec.has("plugin")) {
    if (workflow.config_map) {
      workflow.machine.plugin = modules::Source{.reference = in_config_map(*workflow.config_map)};
      workflow.is_in_config_maps = true;
    }
    return {};
  }
  const Fields plugin = HANGAR_TRY(spec.required_object("plugin"));
  if (plugin.has("configMap") == plugin.has("url")) {
    return fail(ErrorKind::InvalidInput, "spec.plugin: exactly one of configMap and url is needed");
  }
  if (plugin.has("url")) {
    workflow.machine.plugin = HANGAR_TRY(parse_source(plugin, "spec.plugin.configMap"));
    return {};
  }
  std::string name = HANGAR_TRY(config_map_name(plugin, "configMap"));
  workflow.machine.plugin = modules::Source{.reference = in_config_map(name),
                                            .sha256 = HANGAR_TRY(plugin.text("sha256"))};
  workflow.plugin_config_map = std::move(name);
  workflow.is_in_config_maps = workflow.config_map.has_value();
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

budget::Consumer consumer_of(const kube::ObjectKey& workflow) {
  return {.tenant = budget::Tenant::of_namespace(workflow.namespace_),
          .name = "workflow/" + workflow.name};
}

Result<Workflow> parse_workflow(const json::Value& manifest) {
  Workflow workflow{.key = kube::key_of(manifest),
                    .uid = std::string(json::string_at(manifest, {"metadata", "uid"})),
                    .generation = json::int_at(manifest, {"metadata", "generation"})};
  const json::Object* const object = json::object_at(manifest, {"spec"});
  if (object == nullptr) return fail(ErrorKind::InvalidInput, "spec: is required");
  const Fields spec(*object, "spec");
  HANGAR_TRY(parse_module(spec, workflow));
  HANGAR_TRY(parse_plugin(spec, workflow));
  if (const json::Object* const input = HANGAR_TRY(spec.object("input"))) {
    workflow.input = json::dump(*input);
  }
  if (spec.has("serviceAccountName")) {
    workflow.service_account = HANGAR_TRY(spec.required_text("serviceAccountName"));
    // It becomes part of a user name that RBAC decides by, so it has to be only a name.
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
