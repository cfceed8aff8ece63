#include "seeing/find.h"

#include "io/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace hangar::seeing {

namespace {

using recorder::Story;

// Whether reading goes on.
class Watch {
 public:
  explicit Watch(const ReadBounds& bounds) : bounds_(bounds), began_(io::Loop::now()) {}

  // Of each turn that is met.
  [[nodiscard]] bool has_time() {
    constexpr std::size_t kLookEvery = 256;
    if (!bounds_.time_max || ++met_ % kLookEvery != 0) return true;
    is_late_ = io::Loop::now() - began_ > *bounds_.time_max;
    return !is_late_;
  }
  // Of each turn that is kept, and of what is left out for one that is not any more.
  [[nodiscard]] bool has_room(const Story& story) {
    entries_ += entries_of(story);
    is_full_ = entries_ > bounds_.entries_max;
    return !is_full_;
  }
  void drop(const Story& story) { entries_ -= entries_of(story); }

  void tell(recorder::ReadDirectory& read) const {
    if (is_late_) {
      read.problems.push_back(
          fmt::format("Reading took {}: what is older was not looked at.",
                      to_go_duration(std::chrono::duration_cast<std::chrono::seconds>(
                          bounds_.time_max.value_or(Duration::zero())))));
    }
    if (is_full_) {
      read.problems.push_back(
          fmt::format("An answer has {} turns, causes and requests: the rest is left out.",
                      bounds_.entries_max));
    }
  }

 private:
  static std::size_t entries_of(const Story& story) {
    return 1 + story.causes.size() + story.requests.size() + story.timers.size();
  }

  const ReadBounds bounds_;
  const Instant began_;
  std::size_t met_ = 0;
  std::size_t entries_ = 0;
  bool is_late_ = false;
  bool is_full_ = false;
};

WallTime ended_at(const Story& story) {
  return story.arrived + std::chrono::duration_cast<WallTime::duration>(story.took());
}

}  // namespace

Result<FoundTurns> find_turns(const RecordsPlace& place, const TurnsQuestion& question,
                              const ReadBounds& bounds) {
  FoundTurns found;
  std::vector<Story>& shown = found.stories;
  Watch watch(bounds);
  const auto is_slower = [](const Story& left, const Story& right) {
    return left.took() > right.took();
  };
  const auto on_story = [&](Story story) {
    if (!watch.has_time()) return false;
    if (story.name != question.name || story.namespace_ != question.namespace_) return true;
    if (!watch.has_room(story)) return false;
    shown.push_back(std::move(story));
    if (!question.slowest) return shown.size() < question.turns_max;
    std::ranges::push_heap(shown, is_slower);
    if (shown.size() > question.turns_max) {
      std::ranges::pop_heap(shown, is_slower);
      watch.drop(shown.back());
      shown.pop_back();
    }
    return true;
  };
  found.read = HANGAR_TRY(place.file.empty() ? recorder::read_directory(place.directory, on_story)
                                             : recorder::read_file(place.file, on_story));
  watch.tell(found.read);
  if (shown.empty()) {
    return fail(ErrorKind::NotFound,
                fmt::format("no turn of {}{}{} is recorded; {}", question.namespace_,
                            question.namespace_.empty() ? "" : "/", question.name,
                            found.read.since ? "records go back to " + to_rfc3339(*found.read.since)
                                             : std::string("there are no records")));
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
  Watch watch(bounds);
  std::size_t kept = 0;
  const auto on_story = [&](Story story) {
    // Turns come as they have ended.
    if (!watch.has_time() || (question.since && ended_at(story) < *question.since)) return false;
    const bool goes_on = search.add(std::move(story));
    const std::vector<WhyStep>& steps = search.findings().steps;
    for (; kept < steps.size(); ++kept)
      if (!watch.has_room(steps[kept].story)) return false;
    return goes_on;
  };
  FoundWrites found{.at = io::Loop::wall_now()};
  found.read = HANGAR_TRY(recorder::read_directory(directory, on_story));
  watch.tell(found.read);
  found.findings = search.findings();
  return found;
}

}  // namespace hangar::seeing
