#include "kube/internal/known_groups.h"

#include "base/consumer.h"
#include "base/time.h"
#include "kube/internal/discovery_documents.h"
#include "kube/object.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube::internal {

namespace {

constexpr std::chrono::seconds kAskAgain{1};

// More than a well-behaved tenant asks for within kAskAgain.
constexpr std::size_t kMissingPerTenantMax = 64;

}  // namespace

std::optional<Resource> KnownGroups::find(
    std::string_view group, const std::function<bool(const Resource&)>& wanted) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return std::nullopt;
  for (const ServedVersion& version : found->second.versions) {
    for (const Resource& resource : version.resources) {
      if (wanted(resource)) return resource;
    }
  }
  return std::nullopt;
}

bool KnownGroups::is_recent(std::string_view group, Instant now) const {
  if (const auto found = groups_.find(group); found != groups_.end()) {
    return now < found->second.ask_again_at;
  }
  const auto missing = std::ranges::find(missing_, group, &Missing::group);
  return missing != missing_.end() && now < missing->ask_again_at;
}

void KnownGroups::add(std::string group, ServedGroup versions, Instant now) {
  std::erase_if(missing_, [&group](const Missing& one) { return one.group == group; });
  groups_.insert_or_assign(std::move(group),
                           Group{.versions = std::move(versions), .ask_again_at = now + kAskAgain});
}

void KnownGroups::add_missing(std::string group, const Tenant& asker, Instant now) {
  forget(group);
  std::erase_if(missing_, [now](const Missing& one) { return now >= one.ask_again_at; });
  if (std::cmp_greater_equal(std::ranges::count(missing_, asker, &Missing::asker),
                             kMissingPerTenantMax)) {
    missing_.erase(std::ranges::find(missing_, asker, &Missing::asker));
  }
  missing_.push_back({.group = std::move(group), .asker = asker, .ask_again_at = now + kAskAgain});
}

void KnownGroups::forget(std::string_view group) {
  if (const auto found = groups_.find(group); found != groups_.end()) groups_.erase(found);
  std::erase_if(missing_, [group](const Missing& one) { return one.group == group; });
}

}  // namespace hangar::kube::internal
