#include "commands/story_text.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
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

json::Value microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

void set_text(json::Object& object, std::string_view key, std::string_view text) {
  if (!text.empty()) object[key] = printable(text);
}

json::Value json_of_cause(const recorder::Cause& cause) {
  json::Object object;
  object["cause"] = name_of(cause.what);
  object["id"] = cause.id;
  if (cause.bytes > 0) object["bytes"] = cause.bytes;
  if (cause.what <= recorder::Waking::Cause::Deleted) object["object"] = json_of(cause.object);
  return object;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    if (letter >= 0x20 && letter < 0x7f) {
      out += letter;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    }
  }
  return out;
}

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
  if (request.status == 0) return "given up after " + in_words(*request.took);
  std::string text = fmt::format("{} in {}", request.status, in_words(*request.took));
  if (!request.is_write() || request.object.version == 0) return text;
  if (request.version_before == request.object.version) {
    return fmt::format("{}, still {}", text, request.object.version);
  }
  return request.version_before == 0
             ? fmt::format("{}, now {}", text, request.object.version)
             : fmt::format("{}, {} -> {}", text, request.version_before, request.object.version);
}

std::string_view name_of(recorder::Waking::Cause cause) {
  constexpr std::array<std::string_view, 8> kNames = {"added",  "modified", "deleted", "line",
                                                      "answer", "head",     "end",     "timer"};
  return kNames.at(static_cast<std::size_t>(cause));
}

std::string_view name_of(recorder::Verb verb) {
  constexpr std::array<std::string_view, 9> kNames = {
      "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "other"};
  return kNames.at(static_cast<std::size_t>(verb));
}

std::string_view name_of(recorder::Contract contract) {
  constexpr std::array<std::string_view, 3> kNames = {"operator", "workflow", "airway"};
  return kNames.at(static_cast<std::size_t>(contract));
}

std::string_view name_of(recorder::Turn::Outcome outcome) {
  constexpr std::array<std::string_view, 3> kNames = {"waits", "completed", "failed"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

json::Value json_of(const recorder::ObjectVersion& object) {
  json::Object out;
  set_text(out, "group", object.group);
  set_text(out, "kind", object.kind);
  set_text(out, "namespace", object.namespace_);
  set_text(out, "name", object.name);
  if (object.version > 0) out["resourceVersion"] = std::to_string(object.version);
  return out;
}

json::Value json_of(const recorder::Request& request) {
  json::Object out;
  out["id"] = request.id;
  out["verb"] = name_of(request.verb);
  set_text(out, "resource", request.resource);
  set_text(out, "subresource", request.subresource);
  set_text(out, "path", request.path);
  set_text(out, "fieldManager", request.field_manager);
  if (request.is_dry_run) out["dryRun"] = true;
  out["object"] = json_of(request.object);
  if (request.version_before > 0) {
    out["resourceVersionBefore"] = std::to_string(request.version_before);
  }
  out["at"] = to_rfc3339_micro(request.at);
  out["bytes"] = request.bytes;
  if (!request.took) return out;
  out["tookMicroseconds"] = microseconds(*request.took);
  out["status"] = request.status;
  out["answerBytes"] = request.answer_bytes;
  return out;
}

json::Value json_of(const recorder::Story& story) {
  json::Object out;
  out["contract"] = name_of(story.contract);
  set_text(out, "namespace", story.namespace_);
  set_text(out, "name", story.name);
  set_text(out, "uid", story.uid);
  set_text(out, "user", story.user);
  set_text(out, "module", story.module);
  out["host"] = fmt::format("{:016x}", story.host);
  out["instance"] = story.instance;
  out["turn"] = story.number;
  out["arrived"] = to_rfc3339_micro(story.arrived);
  out["waitedMicroseconds"] = microseconds(story.waited);
  out["ranMicroseconds"] = microseconds(story.ran);
  out["resumeMicroseconds"] = microseconds(story.resume);
  out["cpuMicroseconds"] = microseconds(story.cpu);
  out["wasAsleep"] = story.was_asleep;
  out["memoryBytes"] = story.memory_bytes;
  out["printedBytes"] = story.printed_bytes;
  out["outcome"] = name_of(story.outcome);
  json::Array causes;
  for (const recorder::Cause& cause : story.causes)
    causes.push_back(json_of_cause(cause));
  out["causes"] = std::move(causes);
  if (story.causes_left_out > 0) out["causesLeftOut"] = story.causes_left_out;
  json::Array requests;
  for (const recorder::Request& request : story.requests)
    requests.push_back(json_of(request));
  out["requests"] = std::move(requests);
  if (story.suspend) {
    out["suspendMicroseconds"] = microseconds(*story.suspend);
    out["diskBytes"] = story.disk_bytes;
  }
  return out;
}

std::string notes_of(const recorder::ReadDirectory& read) {
  std::string text = read.since ? fmt::format("Records go back to {}.\n", to_rfc3339(*read.since))
                                : std::string("Nothing is recorded.\n");
  if (read.lost_records > 0) {
    text += fmt::format("{} records in between are lost: the disk did not take them.\n",
                        read.lost_records);
  }
  for (const std::string& problem : read.problems)
    text += printable(problem) + "\n";
  return text;
}

json::Value json_of(const recorder::ReadDirectory& read) {
  json::Object out;
  if (read.since) out["since"] = to_rfc3339_micro(*read.since);
  out["lostRecords"] = read.lost_records;
  json::Array problems;
  for (const std::string& problem : read.problems)
    problems.emplace_back(json::String(printable(problem)));
  out["problems"] = std::move(problems);
  return out;
}

}  // namespace hangar::commands
