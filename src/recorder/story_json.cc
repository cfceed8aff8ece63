#include "recorder/story_json.h"

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "json/value.h"
#include "recorder/json_numbers.h"
#include "recorder/record.h"
#include "recorder/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::recorder {

namespace {

// In the order of their enumerators.
constexpr std::array<std::string_view, 9> kCauses = {
    "added", "modified", "deleted", "line", "answer", "head", "end", "timer", "event"};
constexpr std::array<std::string_view, 9> kVerbs = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "other"};
constexpr std::array<std::string_view, 3> kContracts = {"operator", "workflow", "airway"};
constexpr std::array<std::string_view, 6> kBodyStates = {"whole",     "cut",     "unreadable",
                                                         "too-large", "no-room", "withheld"};
constexpr std::array<std::string_view, 3> kOutcomes = {"waits", "completed", "failed"};

void set_text(json::Object& object, std::string_view key, std::string_view text) {
  if (!text.empty()) object[key] = printable(text);
}

json::Value json_of_cause(const Cause& cause) {
  json::Object object;
  object["cause"] = name_of(cause.what);
  object["id"] = cause.id;
  if (cause.bytes > 0) object["bytes"] = cause.bytes;
  set_text(object, "event", cause.event);
  if (cause.what <= Waking::Cause::Deleted) object["object"] = json_of(cause.object);
  return object;
}

// Reading -----------------------------------------------------------------------------------------

std::unexpected<Error> wrong(std::string_view member) {
  return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is missing or wrong", member));
}

std::string text_at(const json::Value& value, std::string_view member) {
  return std::string(json::string_at(value, {member}));
}

// std::nullopt if the member is missing.
Result<std::optional<WallTime>> time_at(const json::Value& value, std::string_view member) {
  if (json::find(value, {member}) == nullptr) return std::nullopt;
  const Result<WallTime> time = parse_rfc3339(json::string_at(value, {member}));
  if (!time) return wrong(member);
  return *time;
}

template <class Enum, std::size_t kCount>
std::optional<Enum> known(std::string_view name,
                          const std::array<std::string_view, kCount>& names) {
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

template <class Enum, std::size_t kCount>
Result<Enum> choice_at(const json::Value& value, std::string_view member,
                       const std::array<std::string_view, kCount>& names) {
  const std::optional<Enum> found = known<Enum>(json::string_at(value, {member}), names);
  if (!found) return wrong(member);
  return *found;
}

std::uint64_t parse_version(std::string_view text) {
  std::uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

// Sixteen hexadecimal digits, as json_of() writes them.
std::uint64_t parse_host(std::string_view text) {
  std::uint64_t host = 0;
  std::from_chars(text.data(), text.data() + text.size(), host, 16);
  return host;
}

ObjectVersion parse_object(const json::Value* value) {
  if (value == nullptr) return {};
  return {.group = text_at(*value, "group"),
          .kind = text_at(*value, "kind"),
          .namespace_ = text_at(*value, "namespace"),
          .name = text_at(*value, "name"),
          .version = parse_version(json::string_at(*value, {"resourceVersion"}))};
}

Result<Cause> parse_cause(const json::Value& value) {
  return Cause{.what = HANGAR_TRY(choice_at<Waking::Cause>(value, "cause", kCauses)),
               .id = number_at(value, "id"),
               .bytes = number_at(value, "bytes"),
               .event = text_at(value, "event"),
               .object = parse_object(json::find(value, {"object"}))};
}

Result<Request> parse_request(const json::Value& value) {
  Request request{
      .id = number_at(value, "id"),
      .verb = HANGAR_TRY(choice_at<Verb>(value, "verb", kVerbs)),
      .resource = text_at(value, "resource"),
      .subresource = text_at(value, "subresource"),
      .path = text_at(value, "path"),
      .field_manager = text_at(value, "fieldManager"),
      .is_dry_run = json::bool_at(value, {"dryRun"}),
      .version_before = parse_version(json::string_at(value, {"resourceVersionBefore"})),
      .bytes = number_at(value, "bytes"),
      .status = number_at(value, "status"),
      .answer_bytes = number_at(value, "answerBytes"),
      .object = parse_object(json::find(value, {"object"}))};
  const std::optional<WallTime> at = HANGAR_TRY(time_at(value, "at"));
  if (!at) return wrong("at");
  request.at = *at;
  constexpr std::string_view kTook = "tookMicroseconds";
  if (json::find(value, {kTook}) != nullptr) request.took = duration_at(value, kTook);
  if (json::find(value, {"bodyState"}) != nullptr) {
    request.body =
        RecordedBody{.state = HANGAR_TRY(choice_at<BodyState>(value, "bodyState", kBodyStates)),
                     .text = text_at(value, "body")};
  }
  return request;
}

}  // namespace

std::string_view name_of(BodyState state) {
  return kBodyStates.at(static_cast<std::size_t>(state));
}

std::string_view name_of(Waking::Cause cause) {
  return kCauses.at(static_cast<std::size_t>(cause));
}

std::string_view name_of(Verb verb) {
  return kVerbs.at(static_cast<std::size_t>(verb));
}

std::string_view name_of(Contract contract) {
  return kContracts.at(static_cast<std::size_t>(contract));
}

std::optional<Contract> contract_of(std::string_view name) {
  return known<Contract>(name, kContracts);
}

std::optional<Verb> verb_of(std::string_view name) {
  return known<Verb>(name, kVerbs);
}

std::string_view name_of(Turn::Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome));
}

json::Value json_of(const ObjectVersion& object) {
  json::Object out;
  set_text(out, "group", object.group);
  set_text(out, "kind", object.kind);
  set_text(out, "namespace", object.namespace_);
  set_text(out, "name", object.name);
  if (object.version > 0) out["resourceVersion"] = std::to_string(object.version);
  return out;
}

json::Value json_of(const Request& request) {
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
  if (request.body) {
    out["bodyState"] = name_of(request.body->state);
    // A text, since the beginning of a document is not one.
    set_text(out, "body", request.body->text);
  }
  if (!request.took) return out;
  out["tookMicroseconds"] = microseconds(*request.took);
  out["status"] = request.status;
  out["answerBytes"] = request.answer_bytes;
  return out;
}

json::Value json_of(const Story& story) {
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
  for (const Cause& cause : story.causes)
    causes.push_back(json_of_cause(cause));
  out["causes"] = std::move(causes);
  if (story.causes_left_out > 0) out["causesLeftOut"] = story.causes_left_out;
  json::Array requests;
  for (const Request& request : story.requests)
    requests.push_back(json_of(request));
  out["requests"] = std::move(requests);
  if (story.suspend) {
    out["suspendMicroseconds"] = microseconds(*story.suspend);
    out["diskBytes"] = story.disk_bytes;
  }
  return out;
}

json::Value json_of(const ReadDirectory& read) {
  json::Object out;
  if (read.since) out["since"] = to_rfc3339_micro(*read.since);
  out["lostRecords"] = read.lost_records;
  json::Array shortened;
  for (const Shortened& one : read.shortened) {
    json::Object entry;
    entry["namespace"] = printable(one.namespace_);
    entry["records"] = one.records;
    entry["until"] = to_rfc3339_micro(one.until);
    shortened.emplace_back(std::move(entry));
  }
  if (!shortened.empty()) out["shortened"] = std::move(shortened);
  json::Array problems;
  for (const std::string& problem : read.problems)
    problems.emplace_back(json::String(printable(problem)));
  out["problems"] = std::move(problems);
  return out;
}

Result<Story> parse_story(const json::Value& value) {
  const auto outcome = HANGAR_TRY(choice_at<Turn::Outcome>(value, "outcome", kOutcomes));
  const std::optional<WallTime> arrived = HANGAR_TRY(time_at(value, "arrived"));
  if (!arrived) return wrong("arrived");
  Story story{.host = parse_host(json::string_at(value, {"host"})),
              .contract = HANGAR_TRY(choice_at<Contract>(value, "contract", kContracts)),
              .namespace_ = text_at(value, "namespace"),
              .name = text_at(value, "name"),
              .instance = number_at(value, "instance"),
              .uid = text_at(value, "uid"),
              .user = text_at(value, "user"),
              .module = text_at(value, "module"),
              .number = number_at(value, "turn"),
              .arrived = *arrived,
              .waited = duration_at(value, "waitedMicroseconds"),
              .ran = duration_at(value, "ranMicroseconds"),
              .resume = duration_at(value, "resumeMicroseconds"),
              .cpu = duration_at(value, "cpuMicroseconds"),
              .was_asleep = json::bool_at(value, {"wasAsleep"}),
              .memory_bytes = number_at(value, "memoryBytes"),
              .printed_bytes = number_at(value, "printedBytes"),
              .outcome = outcome,
              .causes_left_out = number_at(value, "causesLeftOut"),
              .disk_bytes = number_at(value, "diskBytes")};
  constexpr std::string_view kSuspend = "suspendMicroseconds";
  if (json::find(value, {kSuspend}) != nullptr) story.suspend = duration_at(value, kSuspend);
  if (const json::Array* const causes = json::array_at(value, {"causes"})) {
    for (const json::Value& cause : *causes)
      story.causes.push_back(HANGAR_TRY(parse_cause(cause)));
  }
  if (const json::Array* const requests = json::array_at(value, {"requests"})) {
    for (const json::Value& request : *requests)
      story.requests.push_back(HANGAR_TRY(parse_request(request)));
  }
  return story;
}

Result<ReadDirectory> parse_read_directory(const json::Value& value) {
  ReadDirectory read{.since = HANGAR_TRY(time_at(value, "since")),
                     .lost_records = number_at(value, "lostRecords")};
  if (const json::Array* const shortened = json::array_at(value, {"shortened"})) {
    for (const json::Value& one : *shortened) {
      const std::optional<WallTime> until = HANGAR_TRY(time_at(one, "until"));
      if (!until) return wrong("until");
      read.shortened.push_back({.namespace_ = text_at(one, "namespace"),
                                .records = number_at(one, "records"),
                                .until = *until});
    }
  }
  if (const json::Array* const problems = json::array_at(value, {"problems"})) {
    for (const json::Value& problem : *problems)
      read.problems.emplace_back(json::string_at(problem, {}));
  }
  return read;
}

}  // namespace hangar::recorder
