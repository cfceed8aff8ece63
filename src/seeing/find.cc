#include "seeing/find.h"

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "kube/object.h"
#include "recorder/story.h"
#include "seeing/internal/reading.h"
#include "seeing/limits.h"
#include "seeing/why_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {

using internal::Reading;
using recorder::Story;

namespace {

// `read` has at most the entry of the namespace in question.
std::string how_far(const recorder::ReadDirectory& read) {
  if (!read.since) return "there are no records";
  const bool is_shortened = !read.shortened.empty();
  return fmt::format(
      "records {}go back to {}", is_shortened ? "of its namespace " : "",
      to_rfc3339(is_shortened ? std::max(*read.since, read.shortened.front().until) : *read.since));
}

bool is_named(const Story& story, const TurnsQuestion& question) {
  return story.name == question.name && story.namespace_ == question.namespace_;
}

bool is_instance(const Story& story, const TurnsQuestion& question) {
  const std::string& resource = question.instances;
  if (resource.empty() || !story.name.starts_with(resource)) return false;
  return story.name.size() > resource.size() && story.name[resource.size()] == '/' &&
         (question.namespace_.empty() || story.namespace_ == question.namespace_);
}

bool is_shown(const Story& story, const TurnsQuestion& question, const ShownGuests& shown) {
  if (is_named(story, question)) return shown.named;
  return is_instance(story, question) &&
         (!shown.instances ||
          shown.instances->contains({.namespace_ = story.namespace_, .name = story.name}));
}

// The turns of one process in the order in which they began. Records have the order in which turns
// ended, and the clocks of two processes cannot be compared.
void order_by_begin(std::vector<Story>& stories) {
  const auto began = [](const Story& story) {
    return std::pair(story.ended - story.took(), story.number);
  };
  for (auto at = stories.begin(); at != stories.end();) {
    const auto end = std::ranges::find_if(
        at, stories.end(), [host = at->host](const Story& story) { return story.host != host; });
    std::ranges::sort(at, end, {}, began);
    at = end;
  }
}

Result<recorder::ReadDirectory> read_all(const RecordsPlace& place,
                                         const std::function<bool(Story story)>& on_story) {
  return place.file.empty() ? recorder::read_directory(place.directory, on_story)
                            : recorder::read_file(place.file, on_story);
}

}  // namespace

Result<FoundTurns> find_turns(const RecordsPlace& place, const TurnsQuestion& question,
                              const ReadBounds& bounds, const ShownGuests& may_show) {
  FoundTurns found;
  std::vector<Story>& shown = found.stories;
  Reading reading(bounds);
  const auto is_slower = [](const Story& left, const Story& right) {
    return left.took() > right.took();
  };
  const auto on_story = [&](Story story) {
    if (!reading.has_time()) return false;
    if (!is_shown(story, question, may_show)) return true;
    if (!question.bodies) internal::drop_bodies(story);
    if (!reading.has_room(story)) return false;
    shown.push_back(std::move(story));
    if (!question.slowest) return shown.size() < question.turns_max;
    // A heap whose front is the fastest of the turns that are kept.
    std::ranges::push_heap(shown, is_slower);
    if (shown.size() > question.turns_max) {
      std::ranges::pop_heap(shown, is_slower);
      reading.drop(shown.back());
      shown.pop_back();
    }
    return true;
  };
  found.read = HANGAR_TRY(read_all(place, on_story));
  reading.tell(found.read);
  const bool is_of_all_namespaces = !question.instances.empty() && question.namespace_.empty();
  if (!is_of_all_namespaces) internal::leave_only(found.read, question.namespace_);
  if (shown.empty()) {
    if (is_of_all_namespaces) found.read.shortened.clear();
    return fail(
        ErrorKind::NotFound,
        fmt::format("no turn of {}{}{}{} is recorded; {}", question.namespace_,
                    question.namespace_.empty() ? "" : "/", question.name,
                    question.instances.empty() ? "" : " or its instances", how_far(found.read)));
  }
  if (question.slowest) {
    std::ranges::sort(shown, is_slower);
  } else {
    std::ranges::reverse(shown);
    if (!question.instances.empty()) order_by_begin(shown);
  }
  return found;
}

Result<std::set<kube::ObjectKey>> find_instances(const RecordsPlace& place,
                                                 const TurnsQuestion& question,
                                                 const ReadBounds& bounds) {
  std::set<kube::ObjectKey> found;
  Reading reading(bounds);
  const auto on_story = [&](const Story& story) {
    if (!reading.has_time()) return false;
    if (is_instance(story, question))
      found.insert({.namespace_ = story.namespace_, .name = story.name});
    return found.size() < kInstancesMax;
  };
  (void)HANGAR_TRY(read_all(place, on_story));
  return found;
}

Result<FoundWrites> find_writes(const std::filesystem::path& directory,
                                const WritesQuestion& question, const ReadBounds& bounds) {
  WhySearch search(question.target, question.limits);
  Reading reading(bounds);
  std::size_t kept = 0;
  const auto on_story = [&](Story story) {
    if (!reading.has_time() || (question.since && reading.ended_before(story, *question.since))) {
      return false;
    }
    if (!question.bodies) internal::drop_bodies(story);
    const bool goes_on = search.add(std::move(story));
    const std::vector<WhyStep>& steps = search.findings().steps;
    for (; kept < steps.size(); ++kept)
      if (!reading.has_room(steps[kept].story)) return false;
    return goes_on;
  };
  FoundWrites found{.at = io::Loop::wall_now()};
  found.read = HANGAR_TRY(recorder::read_directory(directory, on_story));
  reading.tell(found.read);
  found.findings = search.findings();
  return found;
}

}  // namespace hangar::seeing
