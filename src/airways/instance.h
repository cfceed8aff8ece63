// The host's memory of one instance between reconciles. It may be lost at any time: the next
// reconcile reads everything from the cluster again.
#pragma once

#include "airways/life.h"
#include "airways/plan.h"
#include "airways/readiness.h"
#include "airways/reasons.h"
#include "airways/release_history.h"
#include "airways/resource_ref.h"
#include "kube/object.h"
#include "output/printout.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hangar::airways {

struct Instance {
  Life life;        // Decides when its flight runs, and what it waits for.
  Reasons reasons;  // For the record of its next run.

  std::optional<ReleaseHistory> history;
  std::map<ResourceRef, Applied> applied;
  // Resources that the prune in progress has finished with: gone, no longer owned, or orphaned.
  // Each deletion starts another reconcile, which does not read these again.
  std::set<ResourceRef> pruned;
  // The resources of the last release, without their stages. Readiness is computed from them.
  struct Released {
    ResourceRef ref;
    kube::GroupVersionKind gvk;
    bool is_ready = false;  // When readiness was last computed.
  };
  std::vector<Released> released;
  // The results of readiness rules in Lua, and the objects that they were about.
  struct Scripted {
    std::string script;  // Its digest.
    std::string uid;
    std::string resource_version;
    Readiness readiness;
  };
  std::map<ResourceRef, Scripted> scripted;
  bool has_looked = false;  // Readiness was computed since the process started.
  std::set<std::string, std::less<>>
      services_with_endpoints;  // uids of Services that had an EndpointSlice.

  std::vector<std::string> unsupported;  // The last warnings about its overrides.
  // Set while the module of its override may turn out to be another one.
  std::shared_ptr<const bool> other_module;
  std::string approval;  // Name of the approval of its overrides (overrides.h); empty: none.
  std::unique_ptr<output::Printout> printout;  // Null: its flight has not printed lately.
  std::string stuck;        // Why its release cannot be removed, as the last Event said.
  std::string last_reason;  // Of the last verdict: there is an Event only if it changes.
};

}  // namespace hangar::airways
