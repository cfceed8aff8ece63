// A StatefulWorkflow as its manifest describes it: the machine that decides, its input, and the
// identity under which the host acts for it.
// deploy/crds/statefulworkflows.workflows.example.com.yaml is the schema.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/dependents.h"
#include "workflows/machine_modules.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::workflows {

[[nodiscard]] kube::Resource workflow_resource();
// The consumer that what is done for a workflow is accounted to.
[[nodiscard]] budget::Consumer consumer_of(const kube::ObjectKey& workflow);

// The objects that workflows wait for and those that they made: maps a change to the workflows to
// reconcile.
using Watches = reconcile::Dependents<kube::ObjectKey>;

// The field manager of the host's writes for workflows.
inline constexpr std::string_view kFieldManager = "hangar-workflows";

// Annotations that people write. The value of a request is any text; a different text is a new
// request.
inline constexpr std::string_view kMigrateAnnotation = "workflows.example.com/migrate";
// One signal each: the prefix, then its id; the value is {"type": ...} or only the type.
inline constexpr std::string_view kSignalPrefix = "signal.workflows.example.com/";
// The id of an action to cancel, as if it had failed.
inline constexpr std::string_view kSkipAnnotation = "workflows.example.com/skip-action";

struct Workflow {
  kube::ObjectKey key;
  std::string uid;
  std::int64_t generation = 0;

  std::string input = "{}";  // A JSON object.

  MachineSource machine;
  // The ConfigMap of the workflow's namespace that holds the module, if one does; and the one that
  // holds its plugin, if that is another ConfigMap.
  std::optional<std::string> config_map;
  std::optional<std::string> plugin_config_map;
  // Every part of the machine is in those ConfigMaps.
  bool is_in_config_maps = false;

  std::string service_account = "default";
  std::optional<Duration> timeout;  // For the whole workflow.
  // By state: "creatingPvc", "provisioning.creatingPvc".
  std::map<std::string, Duration, std::less<>> state_timeouts;
  std::size_t history_max = 20;
};

// InvalidInput names the field. Input that the API server's schema refuses is refused here too: a
// host may be newer than the cluster's schema.
[[nodiscard]] Result<Workflow> parse_workflow(const json::Value& manifest);

}  // namespace hangar::workflows
