#include "commands/guest_names.h"

#include "airways/airway.h"
#include "workflows/workflow.h"

namespace hangar::commands {

namespace {

constexpr std::string_view kWorkflow = "workflow/";

std::string workflow_prefix() {
  return workflows::workflow_resource().qualified_plural() + "/";
}

}  // namespace

std::string recorded_name(std::string_view name) {
  if (!name.starts_with(kWorkflow)) return std::string(name);
  return workflow_prefix() + std::string(name.substr(kWorkflow.size()));
}

std::string_view shown_name(recorder::Contract contract, std::string_view name) {
  const std::string prefix = workflow_prefix();
  const bool is_workflow = contract == recorder::Contract::Workflow && name.starts_with(prefix);
  return is_workflow ? name.substr(prefix.size()) : name;
}

std::string_view instances_of(std::string_view recorded_name) {
  const std::string prefix = airways::airway_resource().qualified_plural() + "/";
  if (!recorded_name.starts_with(prefix)) return {};
  return recorded_name.substr(prefix.size());
}

}  // namespace hangar::commands
