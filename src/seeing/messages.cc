#include "seeing/messages.h"

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "json/texts.h"
#include "json/value.h"
#include "kube/object.h"
#include "recorder/json_numbers.h"
#include "recorder/record.h"
#include "recorder/story_json.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/limits.h"
#include "seeing/top.h"
#include "seeing/uses.h"
#include "seeing/why_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::seeing {

namespace {

using recorder::duration_at;
using recorder::microseconds;
using recorder::number_at;

std::unexpected<Error> wrong(std::string_view member, std::string_view what) {
  return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not {}", member, what));
}

Result<json::Value> parse_object(std::string_view text) {
  json::Value value = HANGAR_TRY(json::parse(text));
  if (!value.is_object()) return fail(ErrorKind::InvalidInput, "not a JSON object");
  return value;
}

Result<std::string> text_at(const json::Value& value, std::string_view member) {
  const std::string_view text = json::string_at(value, {member});
  if (text.size() > kTextBytesMax) {
    return wrong(member, fmt::format("a text of at most {} bytes", kTextBytesMax));
  }
  return std::string(text);
}

Result<std::string> name_at(const json::Value& value, std::string_view member) {
  std::string text = HANGAR_TRY(text_at(value, member));
  if (text.empty()) return wrong(member, "a name");
  return text;
}

// From 1 to `most`.
Result<std::size_t> count_at(const json::Value& value, std::string_view member,
                             std::size_t otherwise, std::size_t most) {
  const std::int64_t count = json::int_at(value, {member}, static_cast<std::int64_t>(otherwise));
  if (count < 1 || std::cmp_greater(count, most)) {
    return wrong(member, fmt::format("a number from 1 to {}", most));
  }
  return static_cast<std::size_t>(count);
}

// The namespace in a request about one guest.
Result<std::string> namespace_at(const json::Value& value, const std::string& name) {
  // An instance of an Airway, `RESOURCE/NAME`, may be cluster-scoped.
  return name.contains('/') ? text_at(value, "namespace") : name_at(value, "namespace");
}

json::Array texts_of(const std::set<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts)
    array.emplace_back(json::String(printable(text)));
  return array;
}

// Escaped first, so that the set has the order in which texts_of() writes it.
std::set<std::string> printable_at(const json::Value& value, std::string_view member) {
  std::set<std::string> texts;
  for (const std::string& text : json::texts_at(value, {member}))
    texts.insert(printable(text));
  return texts;
}

json::Value json_of(const Use& use) {
  json::Object out{{"verb", recorder::name_of(use.right.verb)}};
  const auto set_text = [&out](std::string_view member, const std::string& text) {
    if (!text.empty()) out[member] = printable(text);
  };
  set_text("group", use.right.group);
  set_text("resource", use.right.resource);
  set_text("subresource", use.right.subresource);
  set_text("namespace", use.right.namespace_);
  set_text("path", use.right.path);
  out["count"] = use.count;
  out["created"] = use.created;
  out["refused"] = use.refused;
  out["last"] = to_rfc3339_micro(use.last);
  out["names"] = texts_of(use.names);
  if (use.has_more_names) out["hasMoreNames"] = true;
  if (use.is_open) out["isOpen"] = true;
  return out;
}

Result<Use> parse_use(const json::Value& value) {
  const std::optional<recorder::Verb> verb = recorder::verb_of(json::string_at(value, {"verb"}));
  if (!verb) return wrong("verb", "a known verb");
  const Result<WallTime> last = parse_rfc3339(json::string_at(value, {"last"}));
  if (!last) return wrong("last", "a time");
  const auto text = [&value](std::string_view member) {
    return std::string(json::string_at(value, {member}));
  };
  return Use{.right = {.verb = *verb,
                       .group = text("group"),
                       .resource = text("resource"),
                       .subresource = text("subresource"),
                       .namespace_ = text("namespace"),
                       .path = text("path")},
             .count = number_at(value, "count"),
             .created = number_at(value, "created"),
             .refused = number_at(value, "refused"),
             .last = *last,
             .names = printable_at(value, "names"),
             .has_more_names = json::bool_at(value, {"hasMoreNames"}),
             .is_open = json::bool_at(value, {"isOpen"})};
}

json::Object json_of(const Cost& cost) {
  return {{"cpuMicroseconds", microseconds(cost.cpu)},
          {"memoryByteSeconds", cost.memory_byte_seconds},
          {"cacheByteSeconds", cost.cache_byte_seconds},
          {"diskByteSeconds", cost.disk_byte_seconds},
          {"turns", cost.turns},
          {"requests", cost.requests},
          {"readBytes", cost.read_bytes},
          {"writtenBytes", cost.written_bytes}};
}

// Durations in records are of one turn. The processor time of a host may be years.
Duration processor_time_at(const json::Value& value, std::string_view member) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 52U;
  return std::chrono::microseconds(std::min(number_at(value, member), kMost));
}

Cost parse_cost(const json::Value& value) {
  return {.cpu = processor_time_at(value, "cpuMicroseconds"),
          .memory_byte_seconds = number_at(value, "memoryByteSeconds"),
          .cache_byte_seconds = number_at(value, "cacheByteSeconds"),
          .disk_byte_seconds = number_at(value, "diskByteSeconds"),
          .turns = number_at(value, "turns"),
          .requests = number_at(value, "requests"),
          .read_bytes = number_at(value, "readBytes"),
          .written_bytes = number_at(value, "writtenBytes")};
}

json::Value json_of(const WhyStep& step) {
  json::Value turn = recorder::json_of(step.story);
  json::Array causes = *json::array_at(turn, {"causes"});
  for (std::size_t at = 0; at < step.links.size(); ++at) {
    json::Object& cause = causes[at].as_object();
    if (const auto& cause_turn = step.links[at].step) cause["turn"] = *cause_turn;
    if (const auto& request = step.links[at].request) cause["request"] = *request;
  }
  json::set_at(turn, {"causes"}, std::move(causes));
  return turn;
}

// std::nullopt if the member is missing. is_whole() checks the upper bound.
std::optional<std::size_t> index_at(const json::Value& value, std::string_view member) {
  const std::int64_t index = json::int_at(value, {member}, -1);
  return index < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(index));
}

bool has_request(const WhyFindings& findings, std::size_t step,
                 std::optional<std::size_t> request) {
  return step < findings.steps.size() &&
         (!request || *request < findings.steps[step].story.requests.size());
}

// Whether all indices refer to existing turns and requests.
bool is_whole(const WhyFindings& findings) {
  for (const WhyWrite& write : findings.writes)
    if (!has_request(findings, write.step, write.request)) return false;
  for (const WhyStep& step : findings.steps) {
    for (const WhyLink& link : step.links) {
      if (link.step ? !has_request(findings, *link.step, link.request) : link.request.has_value()) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

json::Value json_of(const TurnsQuestion& question) {
  json::Object out{{"namespace", question.namespace_},
                   {"name", question.name},
                   {"turns", question.turns_max},
                   {"slowest", question.slowest},
                   {"bodies", question.bodies}};
  if (!question.instances.empty()) out["instances"] = question.instances;
  return out;
}

Result<TurnsQuestion> parse_turns_question(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  TurnsQuestion question{.slowest = json::bool_at(value, {"slowest"}),
                         .bodies = json::bool_at(value, {"bodies"})};
  question.name = HANGAR_TRY(name_at(value, "name"));
  question.namespace_ = HANGAR_TRY(namespace_at(value, question.name));
  question.turns_max = HANGAR_TRY(count_at(value, "turns", question.turns_max, kTurnsMax));
  question.instances = HANGAR_TRY(text_at(value, "instances"));
  if (question.instances.contains('/')) return wrong("instances", "a resource and its group");
  return question;
}

json::Value json_of(const FoundTurns& found) {
  json::Value out = recorder::json_of(found.read);
  json::Array turns;
  for (const recorder::Story& story : found.stories)
    turns.push_back(recorder::json_of(story));
  json::set_at(out, {"turns"}, std::move(turns));
  return out;
}

Result<FoundTurns> parse_found_turns(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  FoundTurns found{.read = HANGAR_TRY(recorder::parse_read_directory(value))};
  if (const json::Array* const turns = json::array_at(value, {"turns"})) {
    for (const json::Value& turn : *turns)
      found.stories.push_back(HANGAR_TRY(recorder::parse_story(turn)));
  }
  return found;
}

json::Value json_of(const WritesQuestion& question) {
  json::Object out{{"group", question.target.group},     {"kind", question.target.kind},
                   {"resource", question.target.plural}, {"namespace", question.target.namespace_},
                   {"name", question.target.name},       {"writes", question.limits.writes_max},
                   {"depth", question.limits.depth_max}, {"bodies", question.bodies}};
  if (question.since) out["since"] = to_rfc3339_micro(*question.since);
  return out;
}

Result<WritesQuestion> parse_writes_question(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  WritesQuestion question{.bodies = json::bool_at(value, {"bodies"})};
  question.target.group = HANGAR_TRY(text_at(value, "group"));
  question.target.kind = HANGAR_TRY(text_at(value, "kind"));
  question.target.plural = HANGAR_TRY(name_at(value, "resource"));
  question.target.namespace_ = HANGAR_TRY(text_at(value, "namespace"));
  question.target.name = HANGAR_TRY(name_at(value, "name"));
  question.limits.writes_max =
      HANGAR_TRY(count_at(value, "writes", question.limits.writes_max, kWritesMax));
  const std::int64_t depth =
      json::int_at(value, {"depth"}, static_cast<std::int64_t>(question.limits.depth_max));
  if (depth < 0 || std::cmp_greater(depth, question.limits.depth_max)) {
    return wrong("depth", fmt::format("a number from 0 to {}", question.limits.depth_max));
  }
  question.limits.depth_max = static_cast<std::size_t>(depth);
  if (json::find(value, {"since"}) != nullptr) {
    const Result<WallTime> since = parse_rfc3339(json::string_at(value, {"since"}));
    if (!since) return wrong("since", "a time such as 2026-04-08T12:00:00Z");
    question.since = *since;
  }
  return question;
}

json::Value json_of(const FoundWrites& found) {
  json::Object out{{"at", to_rfc3339_micro(found.at)}};
  json::Array turns;
  for (const WhyStep& step : found.findings.steps)
    turns.push_back(json_of(step));
  out["turns"] = std::move(turns);
  json::Array writes;
  for (const WhyWrite& write : found.findings.writes)
    writes.push_back(json::Object{{"turn", write.step}, {"request", write.request}});
  out["writes"] = std::move(writes);
  out["records"] = recorder::json_of(found.read);
  return out;
}

Result<FoundWrites> parse_found_writes(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  const Result<WallTime> at = parse_rfc3339(json::string_at(value, {"at"}));
  if (!at) return wrong("at", "a time");
  FoundWrites found{.at = *at};
  if (const json::Value* const read = json::find(value, {"records"})) {
    found.read = HANGAR_TRY(recorder::parse_read_directory(*read));
  }
  if (const json::Array* const turns = json::array_at(value, {"turns"})) {
    for (const json::Value& turn : *turns) {
      WhyStep step{.story = HANGAR_TRY(recorder::parse_story(turn))};
      if (const json::Array* const causes = json::array_at(turn, {"causes"})) {
        for (const json::Value& cause : *causes)
          step.links.push_back(
              {.step = index_at(cause, "turn"), .request = index_at(cause, "request")});
      }
      found.findings.steps.push_back(std::move(step));
    }
  }
  if (const json::Array* const writes = json::array_at(value, {"writes"})) {
    for (const json::Value& write : *writes) {
      const std::optional<std::size_t> step = index_at(write, "turn");
      const std::optional<std::size_t> request = index_at(write, "request");
      if (!step || !request) return wrong("writes", "a list of turns and their requests");
      found.findings.writes.push_back({.step = *step, .request = *request});
    }
  }
  if (!is_whole(found.findings)) return wrong("turn", "one of the turns that the answer has");
  return found;
}

json::Value json_of(const UsesQuestion& question) {
  return json::Object{{"namespace", question.namespace_}, {"name", question.name}};
}

Result<UsesQuestion> parse_uses_question(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  UsesQuestion question;
  question.name = HANGAR_TRY(name_at(value, "name"));
  question.namespace_ = HANGAR_TRY(namespace_at(value, question.name));
  return question;
}

json::Value json_of(const FoundUses& found) {
  json::Object out{{"contract", recorder::name_of(found.contract)},
                   {"user", printable(found.user)},
                   {"earlierUsers", texts_of(found.earlier_users)},
                   {"turns", found.turns},
                   {"hasStart", found.has_start}};
  json::Array uses;
  for (const Use& use : found.uses)
    uses.push_back(json_of(use));
  out["uses"] = std::move(uses);
  if (found.uses_left_out > 0) out["usesLeftOut"] = found.uses_left_out;
  json::Array sharers;
  for (const kube::ObjectKey& one : found.sharers)
    sharers.push_back(
        json::Object{{"namespace", printable(one.namespace_)}, {"name", printable(one.name)}});
  out["sharers"] = std::move(sharers);
  out["sharersWithheld"] = found.sharers_withheld;
  out["records"] = recorder::json_of(found.read);
  return out;
}

Result<FoundUses> parse_found_uses(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  const std::optional<recorder::Contract> contract =
      recorder::contract_of(json::string_at(value, {"contract"}));
  if (!contract) return wrong("contract", "a known contract");
  FoundUses found{.contract = *contract,
                  .user = std::string(json::string_at(value, {"user"})),
                  .earlier_users = printable_at(value, "earlierUsers"),
                  .turns = number_at(value, "turns"),
                  .has_start = json::bool_at(value, {"hasStart"}),
                  .uses_left_out = number_at(value, "usesLeftOut"),
                  .sharers_withheld = number_at(value, "sharersWithheld")};
  if (const json::Array* const uses = json::array_at(value, {"uses"})) {
    for (const json::Value& use : *uses)
      found.uses.push_back(HANGAR_TRY(parse_use(use)));
  }
  if (const json::Array* const sharers = json::array_at(value, {"sharers"})) {
    for (const json::Value& one : *sharers)
      found.sharers.insert({.namespace_ = printable(json::string_at(one, {"namespace"})),
                            .name = printable(json::string_at(one, {"name"}))});
  }
  if (const json::Value* const read = json::find(value, {"records"})) {
    found.read = HANGAR_TRY(recorder::parse_read_directory(*read));
  }
  return found;
}

json::Value json_of(const TopQuestion& question) {
  return json::Object{{"namespace", question.namespace_}, {"seconds", question.window.count()}};
}

Result<TopQuestion> parse_top_question(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  TopQuestion question;
  question.namespace_ = HANGAR_TRY(text_at(value, "namespace"));
  question.window = std::chrono::seconds(
      HANGAR_TRY(count_at(value, "seconds", static_cast<std::size_t>(question.window.count()),
                          static_cast<std::size_t>(kWindowMax.count()))));
  return question;
}

json::Value json_of(const FoundTop& found) {
  json::Object out{{"at", to_rfc3339_micro(found.at)},
                   {"microseconds", microseconds(found.window)}};
  json::Array rows;
  for (const TopRow& row : found.rows) {
    json::Object one{{"contract", recorder::name_of(row.key.contract)},
                     {"namespace", printable(row.key.namespace_)},
                     {"name", printable(row.key.name)}};
    if (!row.phase.empty()) one["phase"] = printable(row.phase);
    one["cpuMicroseconds"] = microseconds(row.cpu);
    one["turns"] = row.turns;
    one["failures"] = row.failures;
    one["requests"] = row.requests;
    one["writtenBytes"] = row.written_bytes;
    one["memoryBytes"] = row.memory_bytes;
    one["diskBytes"] = row.disk_bytes;
    one["restarts"] = row.restarts;
    rows.push_back(std::move(one));
  }
  out["guests"] = std::move(rows);
  out["records"] = recorder::json_of(found.read);
  return out;
}

Result<FoundTop> parse_found_top(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  const Result<WallTime> at = parse_rfc3339(json::string_at(value, {"at"}));
  if (!at) return wrong("at", "a time");
  FoundTop found{.at = *at, .window = duration_at(value, "microseconds")};
  if (const json::Value* const read = json::find(value, {"records"})) {
    found.read = HANGAR_TRY(recorder::parse_read_directory(*read));
  }
  if (const json::Array* const rows = json::array_at(value, {"guests"})) {
    for (const json::Value& row : *rows) {
      const std::optional<recorder::Contract> contract =
          recorder::contract_of(json::string_at(row, {"contract"}));
      if (!contract) return wrong("contract", "a known contract");
      found.rows.push_back({.key = {.contract = *contract,
                                    .namespace_ = std::string(json::string_at(row, {"namespace"})),
                                    .name = std::string(json::string_at(row, {"name"}))},
                            .phase = std::string(json::string_at(row, {"phase"})),
                            .cpu = duration_at(row, "cpuMicroseconds"),
                            .turns = number_at(row, "turns"),
                            .failures = number_at(row, "failures"),
                            .requests = number_at(row, "requests"),
                            .written_bytes = number_at(row, "writtenBytes"),
                            .memory_bytes = number_at(row, "memoryBytes"),
                            .disk_bytes = number_at(row, "diskBytes"),
                            .restarts = number_at(row, "restarts")});
    }
  }
  return found;
}

json::Value json_of(const CostQuestion& question) {
  return json::Object{{"namespace", question.namespace_}};
}

Result<CostQuestion> parse_cost_question(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  return CostQuestion{.namespace_ = HANGAR_TRY(text_at(value, "namespace"))};
}

json::Value json_of(const FoundCost& found) {
  json::Array rows;
  for (const CostRow& row : found.rows) {
    json::Object one = json_of(row.cost);
    one["namespace"] = printable(row.namespace_);
    if (!row.module.empty()) one["module"] = printable(row.module);
    rows.push_back(std::move(one));
  }
  json::Object out{{"at", to_rfc3339_micro(found.at)},
                   {"microseconds", microseconds(found.window)},
                   {"rows", std::move(rows)}};
  if (found.processes) out["processes"] = json_of(*found.processes);
  json::Array problems;
  for (const std::string& problem : found.problems)
    problems.emplace_back(json::String(printable(problem)));
  if (!problems.empty()) out["problems"] = std::move(problems);
  return out;
}

Result<FoundCost> parse_found_cost(std::string_view text) {
  const json::Value value = HANGAR_TRY(parse_object(text));
  const Result<WallTime> at = parse_rfc3339(json::string_at(value, {"at"}));
  if (!at) return wrong("at", "a time");
  FoundCost found{.at = *at, .window = processor_time_at(value, "microseconds")};
  if (const json::Array* const rows = json::array_at(value, {"rows"})) {
    for (const json::Value& row : *rows) {
      found.rows.push_back({.namespace_ = std::string(json::string_at(row, {"namespace"})),
                            .module = std::string(json::string_at(row, {"module"})),
                            .cost = parse_cost(row)});
    }
  }
  if (const json::Value* const processes = json::find(value, {"processes"})) {
    found.processes = parse_cost(*processes);
  }
  const std::set<std::string> problems = json::texts_at(value, {"problems"});
  found.problems.assign(problems.begin(), problems.end());
  return found;
}

}  // namespace hangar::seeing
