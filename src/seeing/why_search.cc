#include "seeing/why_search.h"

#include <algorithm>
#include <utility>

namespace hangar::seeing {

using recorder::Request;
using recorder::Story;
using recorder::Verb;
using recorder::Waking;

WhySearch::WhySearch(WhyTarget target, Limits limits)
    : target_(std::move(target)), limits_(limits) {}

bool WhySearch::is_of_target(const Request& request) const {
  const recorder::ObjectVersion& object = request.object;
  if (!request.may_have_changed() || object.group != target_.group ||
      request.resource != target_.plural) {
    return false;
  }
  if (request.verb == Verb::DeleteCollection) {
    return object.namespace_.empty() || object.namespace_ == target_.namespace_;
  }
  return object.name == target_.name && object.namespace_ == target_.namespace_;
}

bool WhySearch::is_complete() const {
  if (findings_.steps.size() >= limits_.steps_max) return true;
  return findings_.writes.size() >= limits_.writes_max && versions_.empty() && deletions_.empty() &&
         requests_.empty() && timers_.empty();
}

void WhySearch::link(const std::vector<Wanted>& wanted, std::size_t step,
                     std::optional<std::size_t> request) {
  for (const Wanted& one : wanted) {
    WhyStep& caused = findings_.steps[one.step];
    caused.links[one.cause] = {.step = step, .request = request};
    WhyStep& cause = findings_.steps[step];
    cause.depth = std::min(cause.depth, caused.depth + 1);
  }
}

bool WhySearch::add(Story story) {
  if (is_complete()) return false;
  const auto id_key = [&story](std::uint64_t id) {
    return IdKey(story.host, story.contract, story.namespace_, story.name, story.instance, id);
  };
  struct Found {
    std::vector<Wanted> wanted;
    std::optional<std::size_t> request;
  };
  std::vector<Found> found;
  std::vector<std::size_t> writes;
  const auto take = [&found](auto& map, const auto& key, std::optional<std::size_t> request) {
    if (auto node = map.extract(key); !node.empty()) found.push_back({node.mapped(), request});
  };
  for (std::size_t at = 0; at < story.requests.size(); ++at) {
    const Request& request = story.requests[at];
    const recorder::ObjectVersion& object = request.object;
    if (findings_.writes.size() + writes.size() < limits_.writes_max && is_of_target(request)) {
      writes.push_back(at);
    }
    take(requests_, id_key(request.id), at);
    if (!request.may_have_changed()) continue;
    // The entry stays: if an older write has the same version, that one created the version.
    if (const auto version =
            versions_.find({object.group, object.namespace_, object.name, object.version});
        object.version > 0 && version != versions_.end()) {
      found.push_back({version->second, at});
    }
    if (request.verb == Verb::Delete) {
      take(deletions_, ObjectKey{object.group, object.namespace_, object.name, 0}, at);
    }
  }
  for (const std::uint64_t timer : story.timers)
    take(timers_, id_key(timer), std::nullopt);
  if (found.empty() && writes.empty()) return !is_complete();

  const std::size_t step = findings_.steps.size();
  const std::size_t causes = story.causes.size();
  findings_.steps.push_back({.story = std::move(story),
                             .links = std::vector<WhyLink>(causes),
                             .depth = writes.empty() ? limits_.depth_max : 0});
  // Newest first within the turn, too.
  std::ranges::reverse(writes);
  for (const std::size_t request : writes)
    findings_.writes.push_back({.step = step, .request = request});
  for (const Found& one : found)
    link(one.wanted, step, one.request);
  if (findings_.steps[step].depth < limits_.depth_max) want_causes_of(step);
  return !is_complete();
}

void WhySearch::want_causes_of(std::size_t step) {
  const Story& story = findings_.steps[step].story;
  for (std::size_t at = 0; at < story.causes.size(); ++at) {
    const recorder::Cause& cause = story.causes[at];
    const recorder::ObjectVersion& object = cause.object;
    const IdKey id(story.host, story.contract, story.namespace_, story.name, story.instance,
                   cause.id);
    const Wanted wanted{.step = step, .cause = at};
    switch (cause.what) {
      case Waking::Cause::Added:
      case Waking::Cause::Modified:
        versions_[{object.group, object.namespace_, object.name, object.version}].push_back(wanted);
        break;
      case Waking::Cause::Deleted:
        deletions_[{object.group, object.namespace_, object.name, 0}].push_back(wanted);
        break;
      case Waking::Cause::Answer:
        requests_[id].push_back(wanted);
        break;
      case Waking::Cause::Timer:
        timers_[id].push_back(wanted);
        break;
      default:
        break;  // The request of a stream says nothing about the cause of its lines; an Event has
                // no request.
    }
  }
}

}  // namespace hangar::seeing
