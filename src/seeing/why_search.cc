#include "seeing/why_search.h"

#include "base/text.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

namespace hangar::seeing {

using recorder::Cause;
using recorder::ObjectVersion;
using recorder::Request;
using recorder::Story;
using recorder::Verb;
using recorder::Waking;

namespace {

// From the answer to a deletion to its event: a watch that was interrupted takes some seconds to
// begin again.
constexpr std::chrono::seconds kEventLagMax{30};

WallTime ended(const Request& request) {
  return request.at +
         std::chrono::duration_cast<WallTime::duration>(request.took.value_or(Duration::zero()));
}

bool is_done(const Request& request) {
  return request.may_have_changed() && request.took && request.status >= 200 &&
         request.status < 300;
}

// Records of most deletions have no kind, and a CRD may choose any plural. Plurals keep all but the
// last two letters of a kind and add at most two: services, policies, indices.
bool may_be_plural_of(std::string_view plural, std::string_view kind) {
  const std::string singular = to_lower(kind);
  constexpr std::size_t kChanging = 2;
  const std::size_t kept = std::max(singular.size(), 2 * kChanging) - kChanging;
  return plural.size() <= singular.size() + kChanging &&
         plural.starts_with(singular.substr(0, kept));
}

}  // namespace

WhySearch::WhySearch(WhyTarget target, Limits limits)
    : target_(std::move(target)), limits_(limits) {}

bool WhySearch::is_of_target(const Request& request) const {
  const ObjectVersion& object = request.object;
  if (!request.may_have_changed() || object.group != target_.group ||
      request.resource != target_.plural) {
    return false;
  }
  if (request.verb == Verb::DeleteCollection) {
    return object.namespace_.empty() || object.namespace_ == target_.namespace_;
  }
  return object.name == target_.name && object.namespace_ == target_.namespace_;
}

bool WhySearch::is_of_kind(const Request& request, const std::string& kind) const {
  if (!request.object.kind.empty()) return request.object.kind == kind;
  if (request.object.group == target_.group && kind == target_.kind) {
    return request.resource == target_.plural;
  }
  return may_be_plural_of(request.resource, kind);
}

bool WhySearch::may_have_caused(const Request& request, const Deletion& deletion) const {
  if (!is_of_kind(request, deletion.kind) || request.at > deletion.until) return false;
  // The answer has the object, since finalizers or a grace period delay its deletion for any time.
  const std::uint64_t version = request.object.version;
  if (version > 0 && version <= deletion.version) return version >= deletion.version_min;
  return ended(request) + kEventLagMax >= deletion.from && ended(request) >= deletion.ended_min;
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
  note_objects(story);
  for (std::size_t at = 0; at < story.requests.size(); ++at) {
    const Request& request = story.requests[at];
    const ObjectVersion& object = request.object;
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
    if (std::vector<Wanted> wanted = take_deletions(request); !wanted.empty()) {
      found.push_back({std::move(wanted), at});
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

void WhySearch::note_objects(const Story& story) {
  if (deletions_.empty()) return;
  const auto of = [this](const ObjectVersion& object) {
    const auto found = deletions_.find({object.group, object.namespace_, object.name});
    return found == deletions_.end() ? nullptr : &found->second;
  };
  for (const Cause& cause : story.causes) {
    if (cause.what > Waking::Cause::Deleted) continue;
    std::vector<Deletion>* const deletions = of(cause.object);
    if (deletions == nullptr) continue;
    for (Deletion& one : *deletions) {
      if (cause.object.kind != one.kind || cause.object.version >= one.version) continue;
      one.ended_min = std::max(one.ended_min, story.arrived);
      // A modification does not say that the object is another one: a deletion that waits for
      // finalizers is itself one.
      if (cause.what == Waking::Cause::Modified) continue;
      const bool is_gone = cause.what == Waking::Cause::Deleted;
      one.version_min = std::max(one.version_min, cause.object.version + (is_gone ? 1 : 0));
    }
  }
  for (const Request& request : story.requests) {
    const bool is_creation = request.verb == Verb::Create && request.subresource.empty();
    const bool is_change = request.verb == Verb::Update || request.verb == Verb::Patch;
    if ((!is_creation && !is_change) || !is_done(request)) continue;
    std::vector<Deletion>* const deletions = of(request.object);
    if (deletions == nullptr) continue;
    const std::uint64_t version = request.object.version;
    for (Deletion& one : *deletions) {
      const bool is_before = version > 0 ? version < one.version : request.at <= one.from;
      if (!is_before || !is_of_kind(request, one.kind)) continue;
      one.ended_min = std::max(one.ended_min, is_creation ? ended(request) : request.at);
      if (is_creation) one.version_min = std::max(one.version_min, version);
    }
  }
}

std::vector<WhySearch::Wanted> WhySearch::take_deletions(const Request& request) {
  // Selectors are not recorded: a deletion of a collection may be that of each object in it.
  const bool is_of_many = request.verb == Verb::DeleteCollection;
  if (request.verb != Verb::Delete && !is_of_many) return {};
  const ObjectVersion& object = request.object;
  const auto is_covered = [&](const NameKey& key) {
    const auto& [group, namespace_, name] = key;
    if (group != object.group) return false;
    if (is_of_many && object.namespace_.empty()) return true;
    return namespace_ == object.namespace_ && (is_of_many || name == object.name);
  };
  std::vector<Wanted> taken;
  auto at = deletions_.lower_bound(
      {object.group, object.namespace_, is_of_many ? std::string() : object.name});
  while (at != deletions_.end() && is_covered(at->first)) {
    std::erase_if(at->second, [&](const Deletion& one) {
      if (!may_have_caused(request, one)) return false;
      taken.push_back(one.wanted);
      return true;
    });
    at = at->second.empty() ? deletions_.erase(at) : std::next(at);
  }
  return taken;
}

void WhySearch::want_causes_of(std::size_t step) {
  const Story& story = findings_.steps[step].story;
  for (std::size_t at = 0; at < story.causes.size(); ++at) {
    const Cause& cause = story.causes[at];
    const ObjectVersion& object = cause.object;
    const IdKey id(story.host, story.contract, story.namespace_, story.name, story.instance,
                   cause.id);
    const Wanted wanted{.step = step, .cause = at};
    switch (cause.what) {
      case Waking::Cause::Added:
      case Waking::Cause::Modified:
        versions_[{object.group, object.namespace_, object.name, object.version}].push_back(wanted);
        break;
      case Waking::Cause::Deleted:
        deletions_[{object.group, object.namespace_, object.name}].push_back(
            {.wanted = wanted,
             .kind = object.kind,
             .version = object.version,
             .from = story.arrived,
             .until =
                 story.arrived + std::chrono::duration_cast<WallTime::duration>(story.waited)});
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
  note_objects(story);
}

}  // namespace hangar::seeing
