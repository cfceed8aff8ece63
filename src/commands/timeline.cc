#include "commands/timeline.h"

#include "commands/story_text.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace hangar::commands {

namespace {

using recorder::Story;

// A request by the guest that made it.
using RequestKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

std::map<RequestKey, const recorder::Request*> requests_of(const std::vector<Story>& stories) {
  std::map<RequestKey, const recorder::Request*> requests;
  for (const Story& story : stories) {
    for (const recorder::Request& request : story.requests)
      requests[{story.host, story.instance, request.id}] = &request;
  }
  return requests;
}

std::string line_of(const Story& story, const recorder::Cause& cause,
                    const std::map<RequestKey, const recorder::Request*>& requests) {
  using recorder::Waking;
  const auto asked = requests.find({story.host, story.instance, cause.id});
  const std::string request =
      asked == requests.end() ? fmt::format("request {}", cause.id) : in_words(*asked->second);
  switch (cause.what) {
    case Waking::Cause::Timer:
      return fmt::format("timer {}", cause.id);
    case Waking::Cause::Answer:
      return fmt::format("answer ({} bytes) to {}", cause.bytes, request);
    case Waking::Cause::Line:
      return fmt::format("line ({} bytes) of {}", cause.bytes, request);
    case Waking::Cause::Head:
      return fmt::format("beginning of {}", request);
    case Waking::Cause::End:
      return fmt::format("end of {}", request);
    default:
      return fmt::format("{} {}", name_of(cause.what), in_words(cause.object));
  }
}

std::string head_of(const Story& story) {
  std::string text = fmt::format("{}  turn {}: ran {}, cpu {}", to_rfc3339_micro(story.arrived),
                                 story.number, in_words(story.ran), in_words(story.cpu));
  if (story.was_asleep) text += fmt::format(", resumed in {}", in_words(story.resume));
  if (story.waited > Duration::zero()) text += fmt::format(", waited {}", in_words(story.waited));
  if (story.suspend) {
    text +=
        fmt::format(", then asleep in {} ({} bytes)", in_words(*story.suspend), story.disk_bytes);
  }
  if (story.outcome != recorder::Turn::Outcome::Waits) {
    text += fmt::format("; {}", name_of(story.outcome));
  }
  return text + "\n";
}

}  // namespace

std::string timeline_text(const std::vector<Story>& stories, const recorder::ReadDirectory& read) {
  const auto requests = requests_of(stories);
  std::string text;
  const Story* before = nullptr;
  for (const Story& story : stories) {
    if (before == nullptr || before->module != story.module) {
      text += fmt::format("Module sha256:{}\n", printable(story.module));
    }
    before = &story;
    text += head_of(story);
    for (const recorder::Cause& cause : story.causes)
      text += fmt::format("    <- {}\n", line_of(story, cause, requests));
    if (story.causes_left_out > 0) {
      text += fmt::format("    <- {} more\n", story.causes_left_out);
    }
    for (const recorder::Request& request : story.requests)
      text += fmt::format("    -> {}: {}\n", in_words(request), result_text(request));
  }
  return text + notes_of(read);
}

std::string timeline_json(const std::vector<Story>& stories, const recorder::ReadDirectory& read) {
  json::Value out = json_of(read);
  json::Array turns;
  for (const Story& story : stories)
    turns.push_back(json_of(story));
  json::set_at(out, {"turns"}, std::move(turns));
  return json::dump(out) + "\n";
}

Result<std::string> timeline(const TimelineOptions& options) {
  // Of those that are shown, by what decides: the newest last, or the slowest first.
  std::vector<Story> shown;
  const auto is_slower = [](const Story& left, const Story& right) {
    return left.took() > right.took();
  };
  const auto on_story = [&](Story story) {
    if (story.name != options.name || story.namespace_ != options.namespace_) return true;
    shown.push_back(std::move(story));
    if (!options.slowest) return shown.size() < options.turns_max;
    std::ranges::push_heap(shown, is_slower);
    if (shown.size() > options.turns_max) {
      std::ranges::pop_heap(shown, is_slower);
      shown.pop_back();
    }
    return true;
  };
  const recorder::ReadDirectory read = HANGAR_TRY(
      options.place.file.empty() ? recorder::read_directory(options.place.directory, on_story)
                                 : recorder::read_file(options.place.file, on_story));
  if (shown.empty()) {
    return fail(ErrorKind::NotFound,
                fmt::format("no turn of {}{}{} is recorded; {}", options.namespace_,
                            options.namespace_.empty() ? "" : "/", options.name,
                            read.since ? "records go back to " + to_rfc3339(*read.since)
                                       : std::string("there are no records")));
  }
  if (options.slowest) {
    std::ranges::sort(shown, is_slower);
  } else {
    std::ranges::reverse(shown);
  }
  return options.json ? timeline_json(shown, read) : timeline_text(shown, read);
}

}  // namespace hangar::commands
