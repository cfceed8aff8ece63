// Answers the lookups of one evaluation of a flight.
#pragma once

#include "abi/flight/lookups.h"
#include "airways/acting.h"
#include "airways/ownership.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "kube/object.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

namespace hangar::airways {

// The key of the requested object. The contract's default namespace is `default`, not the
// release's.
[[nodiscard]] kube::ObjectKey lookup_key(const kube::Resource& resource,
                                         const abi::flight::LookupRequest& request);

// The objects outside its release that one run of a flight follows: at most
// limits::kFlightFollowedMax.
class FollowedObjects {
 public:
  // True when the run may follow the object: it does so already, or there is room.
  [[nodiscard]] bool take(const ResourceRef& ref);

 private:
  std::set<ResourceRef> refs_;
};

// Lookups of known children of the release, and of objects that a matcher covers, are answered from
// watches as far as the terms and the view have them (LookupWatch). Any other lookup takes a
// request, to tell "not found" from "not yours". A change of an object that the Tracker knows
// evaluates the instance again.
//
// An object outside of the release that no matcher covers is never shown: the answer is Forbidden.
// So is the answer for an object that the flight's account may not get, which is checked before
// anything about the object is known.
// Lives as long as the evaluation. Loop thread only.
class ReleaseLookups final : public abi::flight::Lookups {
 public:
  // All references outlive the evaluation; `terms` are immutable. Without `rights` the flight sees
  // what the host may see. `remembered_for`: the instance that lookups are remembered for; `whose`:
  // for whom kinds are looked up.
  ReleaseLookups(std::shared_ptr<const Terms> terms, const Release& release,
                 ResourceRef remembered_for, ReleaseView& view, Tracker& tracker,
                 std::optional<LookupRights> rights, budget::Consumer whose, std::stop_token stop);

  [[nodiscard]] io::Task<abi::flight::LookupAnswer> lookup(
      abi::flight::LookupRequest request) override;
  [[nodiscard]] io::Task<abi::flight::LookupAnswer> rest_mapping(std::string group_or_api_version,
                                                                 std::string kind) override;

 private:
  // The refusal; std::nullopt if the flight's account may get the object.
  [[nodiscard]] io::Task<std::optional<abi::flight::LookupAnswer>> refuse(
      const kube::Resource& resource, const ResourceRef& ref);

  void remember(const ResourceRef& ref, LookupOutcome outcome);
  // An object beyond the release that the flight may see; null if there is none.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> find_covered(const kube::Resource& resource,
                                                               const ResourceRef& ref);

  std::shared_ptr<const Terms> terms_;
  const Release& release_;
  const ResourceRef remembered_for_;
  ReleaseView& view_;
  Tracker& tracker_;
  std::optional<LookupRights> rights_;
  const budget::Consumer whose_;
  // Used with LookupWatch::Changes.
  FollowedObjects followed_;
  std::size_t remembered_count_ = 0;
  std::stop_token stop_;
};

}  // namespace hangar::airways
