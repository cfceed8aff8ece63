#include "seeing/find.h"

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "recorder/story.h"
#include "seeing/internal/reading.h"
#include "seeing/why_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
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

}  // namespace

Result<FoundTurns> find_turns(const RecordsPlace& place, const TurnsQuestion& question,
                              const ReadBounds& bounds) {
  FoundTurns found;
  std::vector<Story>& shown = found.stories;
  Reading reading(bounds);
  const auto is_slower = [](const Story& left, const Story& right) {
    return left.took() > right.took();
  };
  const auto on_story = [&](Story story) {
    if (!reading.has_time()) return false;
    if (story.name != question.name || story.namespace_ != question.namespace_) return true;
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
  found.read = HANGAR_TRY(place.file.empty() ? recorder::read_directory(place.directory, on_story)
                                             : recorder::read_file(place.file, on_story));
  reading.tell(found.read);
  internal::leave_only(found.read, question.namespace_);
  if (shown.empty()) {
    return fail(
        ErrorKind::NotFound,
        fmt::format("no turn of {}{}{} is recorded; {}", question.namespace_,
                    question.namespace_.empty() ? "" : "/", question.name, how_far(found.read)));
  }
  if (question.slowest) {
    std::ranges::sort(shown, is_slower);
  } else {
    std::ranges::reverse(shown);
  }
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
