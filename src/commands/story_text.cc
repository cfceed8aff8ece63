#include "commands/story_text.h"

#include "base/text.h"
#include "recorder/story_json.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace hangar::commands {

namespace {

std::string qualified(std::string_view name, std::string_view group) {
  return group.empty() ? printable(name) : fmt::format("{}.{}", printable(name), printable(group));
}

std::string key_text(const recorder::ObjectVersion& object) {
  return object.namespace_.empty()
             ? printable(object.name)
             : fmt::format("{}/{}", printable(object.namespace_), printable(object.name));
}

}  // namespace

std::string in_words(const recorder::ObjectVersion& object) {
  return fmt::format("{} {}{}", qualified(object.kind, object.group), key_text(object),
                     object.version == 0 ? std::string() : fmt::format("@{}", object.version));
}

std::string in_words(Duration duration) {
  using Micro = std::chrono::duration<double, std::micro>;
  const double micro = Micro(duration).count();
  if (micro < 1000) return fmt::format("{:.0f}us", micro);
  if (micro < 100'000) return fmt::format("{:.1f}ms", micro / 1000);
  if (micro < 1'000'000) return fmt::format("{:.0f}ms", micro / 1000);
  return fmt::format("{:.1f}s", micro / 1'000'000);
}

std::string in_words(const recorder::Request& request) {
  if (request.resource.empty()) {
    return fmt::format("{} {}", name_of(request.verb), printable(request.path));
  }
  std::string text = fmt::format("{} {}", name_of(request.verb),
                                 qualified(request.resource, request.object.group));
  if (const std::string key = key_text(request.object); !key.empty()) text += " " + key;
  if (!request.subresource.empty()) text += "/" + printable(request.subresource);
  if (request.is_dry_run) text += " (dry run)";
  return text;
}

std::string result_text(const recorder::Request& request) {
  if (!request.took) return "no answer is recorded";
  if (request.status == 0) return "cancelled after " + in_words(*request.took);
  std::string text = fmt::format("{} in {}", request.status, in_words(*request.took));
  if (request.object.version == 0) return text;
  if (!request.is_write()) return fmt::format("{}, at {}", text, request.object.version);
  if (request.version_before == request.object.version) {
    return fmt::format("{}, still {}", text, request.object.version);
  }
  return request.version_before == 0
             ? fmt::format("{}, now {}", text, request.object.version)
             : fmt::format("{}, {} -> {}", text, request.version_before, request.object.version);
}

std::string body_text(const recorder::Request& request) {
  using enum recorder::BodyState;
  if (!request.body) return {};
  switch (request.body->state) {
    case Whole:
      return printable(request.body->text);
    case Cut:
      return printable(request.body->text) + " (cut here)";
    case Unreadable:
      return "(body not recorded: it is neither JSON nor short YAML)";
    case TooLarge:
      return "(body not recorded: it is too large)";
    case NoRoom:
      return "(body not recorded: too much waited to be written)";
    case Withheld:
      return "(body withheld: it needs get on the operator, and on the Secrets that it read)";
  }
  return {};
}

std::string with_event(const recorder::Cause& cause, std::string_view what) {
  using enum recorder::Waking::Cause;
  if (cause.event.empty()) return std::string(what);
  // The numbers of a timer or an event mean nothing to people.
  if (cause.what == Timer || cause.what == Event) return printable(cause.event);
  return fmt::format("{}: {}", printable(cause.event), what);
}

std::string in_words(const recorder::Shortened& shortened) {
  return fmt::format("Those of namespace {} are complete only since {}: {} older ones made room.",
                     shortened.namespace_.empty() ? "\"\"" : printable(shortened.namespace_),
                     to_rfc3339(shortened.until), shortened.records);
}

std::string notes_of(const recorder::ReadDirectory& read) {
  std::string text = read.since ? fmt::format("Records go back to {}.\n", to_rfc3339(*read.since))
                                : std::string("Nothing is recorded.\n");
  if (read.lost_records > 0) {
    text += fmt::format("{} records in between are lost: the disk did not take them.\n",
                        read.lost_records);
  }
  for (const recorder::Shortened& one : read.shortened)
    text += in_words(one) + "\n";
  for (const std::string& problem : read.problems)
    text += printable(problem) + "\n";
  return text;
}

}  // namespace hangar::commands
