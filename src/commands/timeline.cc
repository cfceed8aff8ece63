#include "commands/timeline.h"

#include "base/text.h"
#include "commands/story_text.h"
#include "json/value.h"
#include "recorder/story_json.h"
#include "seeing/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

using recorder::Story;

// Host, guest, its instance, and id of a request.
using RequestKey =
    std::tuple<std::uint64_t, std::string_view, std::string_view, std::uint64_t, std::uint64_t>;

RequestKey key_of(const Story& story, std::uint64_t request) {
  return {story.host, story.namespace_, story.name, story.instance, request};
}

std::map<RequestKey, const recorder::Request*> requests_of(const std::vector<Story>& stories) {
  std::map<RequestKey, const recorder::Request*> requests;
  for (const Story& story : stories) {
    for (const recorder::Request& request : story.requests)
      requests[key_of(story, request.id)] = &request;
  }
  return requests;
}

std::string line_of(const Story& story, const recorder::Cause& cause,
                    const std::map<RequestKey, const recorder::Request*>& requests) {
  using recorder::Waking;
  const auto asked = requests.find(key_of(story, cause.id));
  const std::string request =
      asked == requests.end() ? fmt::format("request {}", cause.id) : in_words(*asked->second);
  switch (cause.what) {
    case Waking::Cause::Timer:
      return fmt::format("timer {}", cause.id);
    case Waking::Cause::Event:
      return std::string(name_of(cause.what));
    case Waking::Cause::Answer:
      // The event of a machine has no size itself.
      if (!cause.event.empty()) return fmt::format("answer to {}", request);
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

bool is_instance(const Story& story, std::string_view instances) {
  return !instances.empty() && story.name.starts_with(instances);
}

// The column that names the guest of each turn; a name in it cannot be that of an instance
// otherwise.
std::string guest_of(const Story& story, std::string_view instances) {
  if (!is_instance(story, instances)) return "(converter)";
  const std::string_view name = std::string_view(story.name).substr(instances.size() + 1);
  return printable(story.namespace_.empty() ? std::string(name)
                                            : fmt::format("{}/{}", story.namespace_, name));
}

std::string head_of(const Story& story, std::string_view guest) {
  std::string text = fmt::format("{}  {}turn {}: ran {}, cpu {}", to_rfc3339_micro(story.arrived),
                                 guest, story.number, in_words(story.ran), in_words(story.cpu));
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

std::string timeline_text(const std::vector<Story>& stories, const recorder::ReadDirectory& read,
                          std::string_view instances) {
  const auto requests = requests_of(stories);
  std::string text;
  std::size_t width = 0;
  if (!instances.empty()) {
    for (const Story& story : stories)
      width = std::max(width, guest_of(story, instances).size());
  }
  // Of the flight, and of the converter of an Airway.
  std::array<std::string_view, 2> modules;
  for (const Story& story : stories) {
    std::string_view& module = modules[is_instance(story, instances) ? 1 : 0];
    // A turn in which the guest did not run may have no module.
    if (!story.module.empty() && story.module != module) {
      module = story.module;
      text += fmt::format("Module sha256:{}\n", printable(module));
    }
    text += head_of(story, instances.empty()
                               ? std::string()
                               : fmt::format("{:<{}}  ", guest_of(story, instances), width));
    for (const recorder::Cause& cause : story.causes)
      text += fmt::format("    <- {}\n", with_event(cause, line_of(story, cause, requests)));
    if (story.causes_left_out > 0) {
      text += fmt::format("    <- {} more\n", story.causes_left_out);
    }
    for (const recorder::Request& request : story.requests) {
      text += fmt::format("    -> {}: {}\n", in_words(request), result_text(request));
      if (request.body) text += fmt::format("       {}\n", body_text(request));
    }
  }
  return text + notes_of(read);
}

io::Task<Result<std::string>> timeline(TimelineOptions options, Records& records) {
  options.question.bodies = options.question.bodies || options.json;
  const seeing::FoundTurns found = HANGAR_CO_TRY(co_await records.turns(options.question));
  if (options.json) co_return json::dump(seeing::json_of(found)) + "\n";
  co_return timeline_text(found.stories, found.read, options.question.instances);
}

}  // namespace hangar::commands
