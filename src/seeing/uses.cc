#include "seeing/uses.h"

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "recorder/record.h"
#include "recorder/story.h"
#include "seeing/find.h"
#include "seeing/internal/reading.h"
#include "seeing/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {

namespace {

using recorder::Contract;
using recorder::Request;
using recorder::Story;

Right right_of(const Request& request) {
  // The API server authorises requests for a Namespace within that namespace. Without it here, the
  // rights are those of a ClusterRole, not of a Role that would be deleted together with the
  // namespace.
  const bool is_namespace = request.object.group.empty() && request.resource == "namespaces";
  return {.verb = request.verb,
          .group = request.object.group,
          .resource = request.resource,
          .subresource = request.subresource,
          .namespace_ = is_namespace ? std::string() : request.object.namespace_,
          .path = request.path};
}

// Whether the host itself made this write: it writes the status of the object that a workflow or
// flight runs for, and removes its signals.
bool is_of_host(const Story& story, const Request& request) {
  if (story.contract == Contract::Operator || request.resource.empty()) return false;
  const kube::Resource resource{.group = request.object.group, .plural = request.resource};
  return story.name == resource.qualified_plural() + "/" + request.object.name &&
         story.namespace_ == request.object.namespace_;
}

// Rights are those at the API server; see operators::Outbound.
bool is_of_another_server(const Request& request) {
  return request.path.starts_with("https://");
}

bool is_refused(const Request& request) {
  constexpr std::uint64_t kUnauthorized = 401;
  constexpr std::uint64_t kForbidden = 403;
  return request.took && (request.status == kUnauthorized || request.status == kForbidden);
}

bool has_created(const Request& request) {
  constexpr std::uint64_t kCreated = 201;
  const bool is_change =
      request.verb == recorder::Verb::Update || request.verb == recorder::Verb::Patch;
  return is_change && request.took && request.status == kCreated;
}

}  // namespace

void UseFold::add(const Story& story) {
  if (story.name != question_.name || story.namespace_ != question_.namespace_) {
    if (story.user.empty() || others_count_ >= kEntriesMax) return;
    const bool is_new =
        others_[story.user].insert({.namespace_ = story.namespace_, .name = story.name}).second;
    if (is_new) ++others_count_;
    return;
  }
  if (found_.turns++ == 0) {
    found_.contract = story.contract;
    found_.user = story.user;
    found_.has_start = story.contract != Contract::Operator;
    newest_ = {story.host, story.instance};
  }
  if (story.user != found_.user && found_.earlier_users.size() < kNamesPerUseMax) {
    found_.earlier_users.insert(story.user);
  }
  // A turn without a cause is the first of an instance.
  const bool is_start = story.causes.empty() && story.causes_left_out == 0;
  if (is_start && newest_ == std::pair(story.host, story.instance)) found_.has_start = true;
  for (const Request& request : story.requests)
    if (!is_of_host(story, request) && !is_of_another_server(request)) add(request);
}

void UseFold::add(const Request& request) {
  Right right = right_of(request);
  auto at = uses_.find(right);
  if (at == uses_.end() && uses_.size() >= kUsesMax) {
    ++found_.uses_left_out;
    return;
  }
  if (at == uses_.end()) {
    at = uses_.emplace(right, Use{.right = right, .last = request.at}).first;
  }
  Use& use = at->second;
  use.last = std::max(use.last, request.at);
  if (is_refused(request)) {
    ++use.refused;
  } else {
    ++use.count;
  }
  if (has_created(request)) ++use.created;
  const std::string& name = request.object.name;
  // The name of a created object comes from the body or the answer; no authorizer has seen it.
  if (name.empty() || use.right.verb == recorder::Verb::Create || use.names.contains(name)) return;
  if (use.names.size() >= kNamesPerUseMax) {
    use.has_more_names = true;
  } else {
    use.names.insert(name);
  }
}

Result<FoundUses> UseFold::end() && {
  if (found_.turns == 0) {
    return fail(ErrorKind::NotFound,
                fmt::format("no turn of {}{}{} is recorded", question_.namespace_,
                            question_.namespace_.empty() ? "" : "/", question_.name));
  }
  for (auto& [right, use] : uses_)
    found_.uses.push_back(std::move(use));
  if (const auto others = others_.find(found_.user); others != others_.end()) {
    found_.sharers = std::move(others->second);
  }
  return std::move(found_);
}

Result<FoundUses> find_uses(const RecordsPlace& place, const UsesQuestion& question,
                            const ReadBounds& bounds) {
  UseFold fold(question);
  internal::Reading reading(bounds);
  const auto on_story = [&](const Story& story) {
    if (!reading.has_time()) return false;
    fold.add(story);
    return true;
  };
  recorder::ReadDirectory read =
      HANGAR_TRY(place.file.empty() ? recorder::read_directory(place.directory, on_story)
                                    : recorder::read_file(place.file, on_story));
  reading.tell(read);
  FoundUses found = HANGAR_TRY(std::move(fold).end());
  found.read = std::move(read);
  internal::leave_only(found.read, question.namespace_);
  return found;
}

void add_open_watches(FoundUses& found, const std::vector<Right>& watches) {
  for (const Right& watch : watches) {
    const auto use = std::ranges::lower_bound(found.uses, watch, {}, &Use::right);
    if (use != found.uses.end() && use->right == watch) {
      use->is_open = true;
    } else if (found.uses.size() < kUsesMax) {
      found.uses.insert(use, {.right = watch, .is_open = true});
    }
  }
}

}  // namespace hangar::seeing
