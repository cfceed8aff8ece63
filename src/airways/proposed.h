// Common parts of the reviews of Airways, instances and Flights: which reviews pass unseen, and the
// evaluation of an object that is only proposed.
//
// An evaluation runs the flight on the proposed object, as the identity that reconciles it, and
// rehearses its output: an accepted object could be carried out at that moment. It changes nothing
// in the cluster, nor in the state that reconciles remember.
// Loop thread only.
#pragma once

#include "admission/review.h"
#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/rehearsal.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

inline constexpr std::string_view kValidationsPath = "/validations/";

// The rules and conditions of a webhook configuration: objects of these resources that are created
// or updated, except those that are being deleted. So a deletion never waits for a host that is
// down.
[[nodiscard]] json::Array reviewed_rules(std::string_view group, std::string_view version,
                                         const std::vector<std::string_view>& plurals);
[[nodiscard]] json::Array reviewed_conditions();

// For warnings: why a review omits steps that only the API server may request.
inline constexpr std::string_view kWhoAsks =
    "the sender of this review is not authenticated; give hangar the CA of the API server's client "
    "certificate (webhook-client-ca-file)";

// True for objects that are being deleted, and for updates of only finalizers and owners: they pass
// without a module.
[[nodiscard]] bool passes_unseen(const admission::Review& review);

// The name under which a run of a review holds watches of the objects that it looks up. They count
// for the namespace that the run is charged to. `run`: an object that lives as long as the run.
[[nodiscard]] ResourceRef holder_of_lookups(const admission::Review& review, ResourceRef instance,
                                            const void* run);

struct Proposal {
  const Platform& platform;
  const admission::Review& review;
  kube::Resource kind;  // Of the proposed object.
  std::shared_ptr<const Binding> binding;
  const Release& release;
  const Actor& actor;
  std::string consumer;  // Its consumer's name (review_slots.h).
};
// All references live until the task ends. Accepts with the API server's warnings about resources,
// and with one for each resource that could not be rehearsed; an error is a refusal. If the sender
// is not authenticated and the flight looked up objects, the answer does not reveal what the flight
// made of them. The run is recorded as a turn of the proposed object if the sender is
// authenticated: anybody else could fill the records of a namespace.
[[nodiscard]] io::Task<Result<admission::Decision>> evaluate_proposed(Proposal proposal,
                                                                      std::stop_token stop);

}  // namespace hangar::airways
