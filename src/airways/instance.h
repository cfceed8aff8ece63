// What the host remembers of one instance between reconciles. All of it can be lost: the next
// reconcile finds out again from the cluster.
#pragma once

#include "airways/life.h"
#include "airways/plan.h"
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
  Life life;  // When its flight is to run, and what it waits for.

  std::optional<ReleaseHistory> history;
  std::map<ResourceRef, Applied> applied;
  // What the prune that goes on found to be gone, or not ours any more. Each of its resources that
  // goes brings the instance back, and those need not be asked for again.
  std::set<ResourceRef> pruned;
  // The last release, for readiness: what was applied, in stages flattened.
  struct Released {
    ResourceRef ref;
    kube::GroupVersionKind gvk;
    bool is_ready = false;  // At the last look.
  };
  std::vector<Released> released;
  bool has_looked = false;  // Since the process began.
  std::set<std::string, std::less<>>
      services_with_endpoints;  // uids of Services that had an EndpointSlice.

  std::vector<std::string> unsupported;  // What of the instance's wishes was said to be ignored.
  std::string approval;                  // Of its overrides (overrides.h); empty: none is known.
  std::unique_ptr<output::Printout> printout;  // Null: as if its flight had never printed.
  std::string stuck;                           // Why it cannot be taken down; an Event said so.
  std::string last_reason;  // Of the Ready condition that we wrote last: an Event only for changes.
};

}  // namespace hangar::airways
