// What one evaluation of a flight may ask of the cluster, and the answers.
#pragma once

#include "abi/flight/lookups.h"
#include "airways/acting.h"
#include "airways/ownership.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "airways/tracker.h"
#include "io/task.h"
#include "kube/object.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

// What a request is about: the contract's default namespace is not the release's.
[[nodiscard]] kube::ObjectKey lookup_key(const kube::Resource& resource,
                                         const abi::flight::LookupRequest& request);

// Answers from the cache; a request is made only for an object that is neither a known child nor
// covered by a matcher, to tell "not found" from "not yours". What is told to the Tracker brings
// the instance back when it changes.
//
// An object outside of the release that no matcher covers is never shown: the answer is Forbidden.
// So it is for an object that the flight's service account may not get, before anything is known
// of it.
// Lives as long as the evaluation. Loop thread only.
class ReleaseLookups final : public abi::flight::Lookups {
 public:
  // All of it outlives the evaluation; `terms` are immutable. Without `rights` the flight is shown
  // what the host may see. `remembered_for`: as which instance lookups are remembered.
  ReleaseLookups(std::shared_ptr<const Terms> terms, const Release& release,
                 ResourceRef remembered_for, ReleaseView& view, Tracker& tracker,
                 std::optional<LookupRights> rights, std::stop_token stop);

  [[nodiscard]] io::Task<abi::flight::LookupAnswer> lookup(
      abi::flight::LookupRequest request) override;
  [[nodiscard]] io::Task<abi::flight::LookupAnswer> rest_mapping(std::string group_or_api_version,
                                                                 std::string kind) override;

 private:
  // Nothing: the flight may be shown the object.
  [[nodiscard]] io::Task<std::optional<abi::flight::LookupAnswer>> refuse(
      const kube::Resource& resource, const ResourceRef& ref);

  void remember(const ResourceRef& ref, LookupOutcome outcome);

  std::shared_ptr<const Terms> terms_;
  const Release& release_;
  const ResourceRef remembered_for_;
  ReleaseView& view_;
  Tracker& tracker_;
  std::optional<LookupRights> rights_;
  std::stop_token stop_;
};

}  // namespace hangar::airways
