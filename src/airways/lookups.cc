#include "airways/lookups.h"

#include "abi/flight/lookups.h"
#include "airways/acting.h"
#include "airways/limits.h"
#include "airways/matcher.h"
#include "airways/ownership.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

using abi::flight::LookupAnswer;
using abi::flight::LookupRequest;
using abi::flight::LookupState;

LookupAnswer not_granted() {
  return {.state = LookupState::FeatureNotGranted,
          .body = "access to the cluster has not been granted for this flight invocation"};
}

LookupAnswer answer_of(const Error& error) {
  const LookupState state = error.kind() == ErrorKind::NotFound ? LookupState::NotFound
                            : error.kind() == ErrorKind::Denied ? LookupState::Forbidden
                                                                : LookupState::Error;
  return {.state = state, .body = error.message()};
}

// An unknown kind is an error of the flight, and not a missing object.
LookupAnswer unknown_kind(const Error& error) {
  return {.state = LookupState::Error, .body = "failed to get mapping: " + error.message()};
}

LookupAnswer absent(const kube::Resource& resource, std::string_view name) {
  return {.state = LookupState::NotFound,
          .body = fmt::format("{} \"{}\" not found", resource.qualified_plural(), name)};
}

}  // namespace

kube::ObjectKey lookup_key(const kube::Resource& resource, const LookupRequest& request) {
  kube::ObjectKey key{.namespace_ = {}, .name = request.name};
  if (resource.namespaced) {
    key.namespace_ = request.namespace_.empty() ? "default" : request.namespace_;
  }
  return key;
}

// A refused object takes no room: after a refusal, a flight may try any number of other names.
bool FollowedObjects::take(const ResourceRef& ref) {
  if (refs_.contains(ref)) return true;
  if (refs_.size() >= limits::kFlightFollowedMax) return false;
  refs_.insert(ref);
  return true;
}

ReleaseLookups::ReleaseLookups(std::shared_ptr<const Terms> terms, const Release& release,
                               ResourceRef remembered_for, ReleaseView& view, Tracker& tracker,
                               std::optional<LookupRights> rights, budget::Consumer whose,
                               std::stop_token stop)
    : terms_(std::move(terms)),
      release_(release),
      remembered_for_(std::move(remembered_for)),
      view_(view),
      tracker_(tracker),
      rights_(std::move(rights)),
      whose_(std::move(whose)),
      stop_(std::move(stop)) {}

io::Task<std::optional<LookupAnswer>> ReleaseLookups::refuse(const kube::Resource& resource,
                                                             const ResourceRef& ref) {
  if (!rights_) co_return std::nullopt;
  const Result<bool> may = co_await rights_->authorizer.allows(rights_->identity,
                                                               {.verb = "get",
                                                                .group = resource.group,
                                                                .version = resource.version,
                                                                .resource = resource.plural,
                                                                .namespace_ = ref.namespace_,
                                                                .name = ref.name},
                                                               stop_);
  if (!may) {
    co_return LookupAnswer{.state = LookupState::Error,
                           .body = "authorise the lookup: " + may.error().message()};
  }
  if (*may) co_return std::nullopt;
  // The words of the API server.
  co_return LookupAnswer{
      .state = LookupState::Forbidden,
      .body = fmt::format(
          "{} \"{}\" is forbidden: User \"{}\" cannot get resource \"{}\" in API "
          "group \"{}\"{}",
          resource.plural, ref.name, rights_->identity.user, resource.plural, resource.group,
          ref.namespace_.empty() ? std::string(" at the cluster scope")
                                 : fmt::format(" in the namespace \"{}\"", ref.namespace_))};
}

void ReleaseLookups::remember(const ResourceRef& ref, LookupOutcome outcome) {
  if (terms_->lookup_watch == LookupWatch::None) return;
  // No run releases more resources than this. Objects that it has not found and does not release do
  // not count.
  if (terms_->lookup_watch == LookupWatch::Changes &&
      ++remembered_count_ > limits::kFlightResourcesMax) {
    return;
  }
  tracker_.looked_up(remembered_for_, ref, outcome);
}

io::Task<Result<kube::ObjectPtr>> ReleaseLookups::find_covered(const kube::Resource& resource,
                                                               const ResourceRef& ref) {
  if (terms_->lookup_watch == LookupWatch::Content) {
    co_return co_await view_.external(remembered_for_, resource, ref.key(), stop_);
  }
  if (terms_->lookup_watch == LookupWatch::Changes) {
    if (!followed_.take(ref)) {
      co_return fail(ErrorKind::LimitExceeded,
                     fmt::format("this flight may look up at most {} objects beyond its release; "
                                 "use mode standard for more",
                                 limits::kFlightFollowedMax));
    }
    // Watch and remember the object before it is read, so that no change is missed.
    HANGAR_CO_TRY(co_await view_.follow(remembered_for_, resource, ref.key(), stop_));
    remember(ref, LookupOutcome::External);
  }
  co_return co_await view_.read(resource, ref.key(), stop_);
}

io::Task<LookupAnswer> ReleaseLookups::lookup(LookupRequest request) {
  if (!terms_->cluster_access) co_return not_granted();
  tracker_.asked(remembered_for_);
  const kube::GroupVersionKind gvk = kube::make_gvk(request.api_version, request.kind);
  Result<kube::Resource> resource = co_await view_.discovery().find(gvk, whose_, stop_);
  if (!resource) co_return unknown_kind(resource.error());

  kube::ObjectKey key = lookup_key(*resource, request);
  const ResourceRef ref{.kind = gvk.group_kind(),
                        .namespace_ = std::move(key.namespace_),
                        .name = std::move(key.name)};

  if (std::optional<LookupAnswer> refused = co_await refuse(*resource, ref)) {
    co_return *std::move(refused);
  }
  if (const kube::ObjectPtr child = view_.child(ref)) {
    if (release_.owns(child->to_value())) {
      remember(ref, LookupOutcome::Owned);
      co_return LookupAnswer{.state = LookupState::Ok, .body = child->text().str()};
    }
  }
  const bool covered = any_matches(terms_->resource_access_matchers, ref);
  Result<kube::ObjectPtr> found = covered ? co_await find_covered(*resource, ref)
                                          : co_await view_.read(*resource, ref.key(), stop_);
  if (!found) co_return answer_of(found.error());
  if (!*found) {
    remember(ref, covered ? LookupOutcome::Absent : LookupOutcome::Candidate);
    co_return absent(*resource, request.name);
  }
  const bool owned = release_.owns((*found)->to_value());
  if (!owned && !covered) {
    co_return LookupAnswer{
        .state = LookupState::Forbidden,
        .body = "forbidden: cannot access resource outside of target release ownership"};
  }
  remember(ref, owned ? LookupOutcome::Owned : LookupOutcome::External);
  co_return LookupAnswer{.state = LookupState::Ok, .body = (*found)->text().str()};
}

io::Task<LookupAnswer> ReleaseLookups::rest_mapping(std::string group_or_api_version,
                                                    std::string kind) {
  if (!terms_->cluster_access) co_return not_granted();
  const std::size_t slash = group_or_api_version.find('/');
  const std::string group = group_or_api_version.substr(0, slash);
  const std::string version =
      slash == std::string::npos ? "" : group_or_api_version.substr(slash + 1);
  const Result<kube::Resource> resource =
      version.empty()
          ? co_await view_.discovery().find(kube::GroupKind{.group = group, .kind = kind}, whose_,
                                            stop_)
          : co_await view_.discovery().find(
                kube::GroupVersionKind{.group = group, .version = version, .kind = kind}, whose_,
                stop_);
  if (!resource) co_return unknown_kind(resource.error());
  const json::Value mapping = json::Object{{"Group", resource->group},
                                           {"Version", resource->version},
                                           {"Kind", resource->kind},
                                           {"Resource", resource->plural},
                                           {"Namespaced", resource->namespaced}};
  co_return LookupAnswer{.state = LookupState::Ok, .body = json::dump(mapping)};
}

}  // namespace hangar::airways
