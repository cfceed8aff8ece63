// The usage of namespaces, collected from the parts that count it.
#pragma once

#include "airways/air_traffic_controller.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/rates.h"
#include "gateway/gateway.h"
#include "modules/fetcher.h"
#include "operators/operator_controller.h"
#include "output/namespace_allowances.h"
#include "tenants/policies.h"
#include "tenants/usage.h"
#include "workflows/workflow_controller.h"

#include <map>
#include <optional>
#include <string>

namespace hangar::host {

struct UsageSources {
  const tenants::Policies& policies;
  const budget::Accounts& memory;
  const budget::Accounts& disk;  // Disk space of sleeping guests.
  const budget::CacheCharges& module_disk;
  const budget::Rates& rates;  // Processor time.
  const gateway::Gateway& gateway;
  const modules::Fetcher& fetcher;
  const output::NamespaceAllowances& output;
  const operators::OperatorController* operators = nullptr;  // Null: the feature is off.
  const workflows::WorkflowController* workflows = nullptr;
  const airways::AirTrafficController* airways = nullptr;
};

// The usage of each namespace that has an Operator, a workflow, a Flight or an instance of an
// Airway. std::nullopt until these and the policies have been listed.
[[nodiscard]] std::optional<std::map<std::string, tenants::Usage>> usage_now(
    const UsageSources& sources);

}  // namespace hangar::host
