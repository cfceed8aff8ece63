#include "commands/why.h"

#include "base/consumer.h"
#include "base/text.h"
#include "commands/guest_names.h"
#include "commands/story_text.h"
#include "host/cluster_session.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "recorder/story_json.h"
#include "seeing/find.h"
#include "seeing/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <stop_token>
#include <tuple>

namespace hangar::commands {

namespace {

using recorder::Cause;
using recorder::Request;
using recorder::Story;
using recorder::Waking;

// Requests to the API server for single objects.
constexpr std::size_t kLookUpsMax = 50;
// The manager of requests that name none: the API server takes it from hangar's User-Agent.
constexpr std::string_view kDefaultManager = "hangar";
// Tolerance for times: managedFields have whole seconds, and clocks differ.
constexpr std::chrono::seconds kSameTime{3};
constexpr std::chrono::seconds kLookAgainAfter{1};
// Replaces a turn that the host withholds.
constexpr std::string_view kStranger = "a turn that you may not see";

std::string_view name_in(const Story& story) {
  return shown_name(story.contract, story.name);
}

bool is_event(const Cause& cause) {
  return cause.what <= Waking::Cause::Deleted;
}

recorder::ObjectVersion without_version(recorder::ObjectVersion object) {
  object.version = 0;
  return object;
}

std::string by(const FieldManager& manager) {
  return fmt::format("{} ({}{}{}{})", printable(manager.name), printable(manager.operation),
                     manager.subresource.empty() ? "" : " of ", printable(manager.subresource),
                     manager.time ? " at " + to_rfc3339(*manager.time) : std::string());
}

using Managers = std::vector<const FieldManager*>;

std::string by(const Managers& managers) {
  std::vector<std::string> names;
  names.reserve(managers.size());
  for (const FieldManager* const manager : managers)
    names.push_back(by(*manager));
  return fmt::format("{}", fmt::join(names, " or "));
}

// The managers that may have caused an event without a recorded write; none if nothing is known.
Managers outside_writers(const WhyAnswer& answer, const Story& story, const Cause& cause) {
  const auto found = answer.others.find(without_version(cause.object));
  if (found == answer.others.end() || cause.what == Waking::Cause::Deleted) return {};
  if (found->second.version == cause.object.version) return last_managers(found->second);
  // The object has been written again since: take the last managers before the event arrived.
  return last_managers(found->second, story.arrived + kSameTime);
}

std::string outside_text(const WhyAnswer& answer, const Story& story, const Cause& cause) {
  if (const Managers managers = outside_writers(answer, story, cause); !managers.empty()) {
    const auto found = answer.others.find(without_version(cause.object));
    const bool is_same = found->second.version == cause.object.version;
    return fmt::format("by {}{}", by(managers),
                       is_same ? "" : ", as far as its managedFields still tell");
  }
  return fmt::format("the writer is not known; records go back to {}",
                     answer.read.since ? to_rfc3339(*answer.read.since) : "nothing");
}

// Prints the path from a guest's turn back to its causes.
class Telling {
 public:
  explicit Telling(const WhyAnswer& answer) : answer_(answer) {}

  [[nodiscard]] std::string of_write(const WhyWrite& write) {
    const WhyStep& step = answer_.findings.steps[write.step];
    const Request& request = step.story.requests[write.request];
    text_ += fmt::format("{}  {}: {}\n", to_rfc3339_micro(request.at), in_words(request),
                         result_text(request));
    body(request, 1);
    turn(write.step, 1);
    return std::exchange(text_, {});
  }

 private:
  void line(std::size_t depth, std::string_view text) {
    text_ += std::string(2 * depth, ' ');
    text_ += text;
    text_ += '\n';
  }

  void body(const Request& request, std::size_t depth) {
    if (request.body) line(depth, body_text(request));
  }

  void turn(std::size_t at, std::size_t depth) {
    const WhyStep& step = answer_.findings.steps[at];
    const Story& story = step.story;
    if (story.name == seeing::kWithheld) {
      return line(depth, fmt::format("<- {}", kStranger));
    }
    const std::string module =
        story.module.empty() ? "" : fmt::format(" (module sha256:{:.12})", printable(story.module));
    line(depth,
         fmt::format("<- turn {} of {} {}{}{} at {}{}", story.number, name_of(story.contract),
                     printable(story.namespace_), story.namespace_.empty() ? "" : "/",
                     printable(name_in(story)), to_rfc3339_micro(story.arrived), module));
    if (!told_.insert(at).second) return line(depth + 1, "(as above)");
    if (story.causes.empty()) line(depth + 1, "<- it was started");
    for (std::size_t cause = 0; cause < story.causes.size(); ++cause)
      this->cause(step, cause, depth + 1);
    if (story.causes_left_out > 0) {
      line(depth + 1, fmt::format("<- {} more, which are not recorded", story.causes_left_out));
    }
  }

  void cause(const WhyStep& step, std::size_t at, std::size_t depth) {
    const Cause& cause = step.story.causes[at];
    const WhyLink& link = step.links[at];
    if (is_event(cause)) {
      const std::string event = fmt::format("{} {}", name_of(cause.what), in_words(cause.object));
      line(depth, "<- " + with_event(cause, event));
    } else if (cause.what == Waking::Cause::Answer || cause.what == Waking::Cause::Timer) {
      const std::string id = fmt::format("{} {}", name_of(cause.what), cause.id);
      line(depth, "<- " + (cause.event.empty() ? id : printable(cause.event)));
    } else if (cause.what == Waking::Cause::Event) {
      return line(depth, "<- " + printable(cause.event));
    } else {
      return line(depth, fmt::format("<- {} of a stream", name_of(cause.what)));
    }
    if (link.step) {
      const Story& story = answer_.findings.steps[*link.step].story;
      if (link.request) {
        const Request& request = story.requests[*link.request];
        line(depth + 1, fmt::format("<- {}: {}", in_words(request), result_text(request)));
        body(request, depth + 2);
      }
      turn(*link.step, depth + 1);
    } else if (is_event(cause)) {
      line(depth + 1, "<- " + outside_text(answer_, step.story, cause));
    }
  }

  const WhyAnswer& answer_;
  std::set<std::size_t> told_;
  std::string text_;
};

// The recorded write that fits the entry of a manager; nothing if another client wrote it.
std::optional<WhyWrite> write_of(const WhyAnswer& answer, const FieldManager& manager) {
  for (const WhyWrite& write : answer.findings.writes) {
    const Request& request = answer.findings.steps[write.step].story.requests[write.request];
    const std::string_view name =
        request.field_manager.empty() ? kDefaultManager : std::string_view(request.field_manager);
    if (name != manager.name || request.subresource != manager.subresource || !manager.time) {
      continue;
    }
    const WallTime done = request.at + std::chrono::duration_cast<WallTime::duration>(
                                           request.took.value_or(Duration::zero()));
    if (done + kSameTime >= *manager.time && request.at <= *manager.time + kSameTime) return write;
  }
  return std::nullopt;
}

struct FieldOwner {
  Managers managers;
  std::optional<WhyWrite> write;  // A recorded write by one of them.
};

FieldOwner owner_of_field(const WhyAnswer& answer) {
  FieldOwner owner;
  if (!answer.current) return owner;
  owner.managers = managers_of(*answer.current, answer.field_path);
  for (const FieldManager* const manager : owner.managers) {
    if (!owner.write) owner.write = write_of(answer, *manager);
  }
  return owner;
}

bool is_held(const WhyAnswer& answer, std::uint64_t version) {
  return std::ranges::any_of(answer.findings.writes, [&](const WhyWrite& write) {
    return answer.findings.steps[write.step].story.requests[write.request].object.version ==
           version;
  });
}

std::string target_text(const WhyTarget& target) {
  return in_words(recorder::ObjectVersion{.group = target.group,
                                          .kind = target.kind,
                                          .namespace_ = target.namespace_,
                                          .name = target.name});
}

std::string present_text(const WhyAnswer& answer) {
  const std::string name = target_text(answer.target);
  if (!answer.current) return name + " does not exist.\n";
  std::string text = fmt::format("{} is at version {}", name, answer.current->version);
  if (is_held(answer, answer.current->version)) {
    text += ", which was written from here.\n";
  } else if (const Managers last = last_managers(*answer.current); !last.empty()) {
    text += fmt::format(", which was written by {}, as its managedFields say.\n", by(last));
  } else {
    text += "; its managedFields do not say by whom.\n";
  }
  return text;
}

std::string node_of(std::size_t step) {
  return fmt::format("t{}", step);
}

// Quotes a text for Mermaid.
std::string in_quotes(std::string_view text) {
  std::string out;
  for (const char letter : printable(text)) {
    if (letter == '"' || letter == '<' || letter == '>' || letter == '#' || letter == ';' ||
        letter == '&') {
      out += fmt::format("#{};", static_cast<int>(letter));
    } else {
      out += letter;
    }
  }
  return "\"" + out + "\"";
}

// The steps that lead to a write, including those of the writes.
std::set<std::size_t> reached(const WhyFindings& findings) {
  std::set<std::size_t> steps;
  std::vector<std::size_t> next;
  for (const WhyWrite& write : findings.writes)
    next.push_back(write.step);
  while (!next.empty()) {
    const std::size_t at = next.back();
    next.pop_back();
    if (!steps.insert(at).second) continue;
    for (const WhyLink& link : findings.steps[at].links)
      if (link.step) next.push_back(*link.step);
  }
  return steps;
}

// KIND[.GROUP]/NAME
struct Named {
  std::string kind;
  std::optional<std::string> group;
  std::string name;
};

Result<Named> parse_named(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string_view::npos) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not KIND/NAME, such as deployment.apps/web", text));
  }
  Named named{.kind = std::string(text.substr(0, slash)),
              .name = std::string(text.substr(slash + 1))};
  if (const std::size_t dot = named.kind.find('.'); dot != std::string::npos) {
    named.group = named.kind.substr(dot + 1);
    named.kind.resize(dot);
  }
  return named;
}

class ObjectReader {
 public:
  explicit ObjectReader(const kube::Client& client) : client_(client), discovery_(client) {}

  [[nodiscard]] io::Task<Result<kube::Resource>> find(Named named) {
    if (named.group) co_return co_await find_in(*named.group, named.kind);
    Result<kube::Resource> core = co_await find_in({}, named.kind);
    if (core || core.error().kind() != ErrorKind::NotFound) co_return core;
    const json::Value groups = HANGAR_CO_TRY(co_await client_.get_path("/apis", {}));
    if (const json::Array* const listed = json::array_at(groups, {"groups"})) {
      for (const json::Value& group : *listed) {
        Result<kube::Resource> found =
            co_await find_in(std::string(json::string_at(group, {"name"})), named.kind);
        if (found) co_return found;
      }
    }
    co_return fail(ErrorKind::NotFound,
                   fmt::format("the cluster serves no kind or resource \"{}\"; write it as kind or "
                               "plural, with its group, such as deployment.apps",
                               named.kind));
  }

  // Nothing: the object does not exist.
  [[nodiscard]] io::Task<Result<std::optional<json::Value>>> read(kube::Resource resource,
                                                                  kube::ObjectKey key) {
    Result<json::Value> found = co_await client_.get(std::move(resource), std::move(key), {});
    if (found) co_return std::optional(*std::move(found));
    if (found.error().kind() == ErrorKind::NotFound) co_return std::optional<json::Value>();
    co_return std::unexpected(found.error());
  }

  [[nodiscard]] io::Task<Result<std::optional<CurrentObject>>> read(
      recorder::ObjectVersion object) {
    const kube::Resource resource = HANGAR_CO_TRY(co_await discovery_.find(
        kube::GroupKind{.group = object.group, .kind = object.kind}, unnamed_consumer(), {}));
    const std::optional<json::Value> found = HANGAR_CO_TRY(
        co_await read(resource, {.namespace_ = object.namespace_, .name = object.name}));
    co_return found ? std::optional(current_object(*found)) : std::nullopt;
  }

 private:
  // Finds a plural, or a kind in its own spelling or in lower case.
  io::Task<Result<kube::Resource>> find_in(std::string group, std::string name) {
    Result<kube::Resource> found =
        co_await discovery_.find_plural(group, name, unnamed_consumer(), {});
    if (!found) {
      found = co_await discovery_.find(kube::GroupKind{.group = group, .kind = name},
                                       unnamed_consumer(), {});
    }
    if (found || found.error().kind() != ErrorKind::NotFound) co_return found;
    // Tries the usual plurals of a kind in lower case.
    for (const char* const plural : {"s", "es"}) {
      found = co_await discovery_.find_plural(group, name + plural, unnamed_consumer(), {});
      if (found) co_return found;
    }
    if (name.ends_with('y')) {
      found = co_await discovery_.find_plural(group, name.substr(0, name.size() - 1) + "ies",
                                              unnamed_consumer(), {});
    }
    co_return found;
  }

  const kube::Client& client_;
  kube::Discovery discovery_;
};

// Reports faults in the question before any request to the cluster.
Result<Named> check_question(const WhyOptions& options) {
  Named named = HANGAR_TRY(parse_named(options.object));
  if (!options.field.empty()) (void)HANGAR_TRY(parse_field(options.field));
  return named;
}

void use_default_namespace(WhyOptions& options, const host::ClusterSession& session) {
  if (options.namespace_.empty()) options.namespace_ = session.credentials->namespace_();
  if (options.namespace_.empty()) options.namespace_ = "default";
}

WhyTarget target_of(const kube::Resource& resource, const Named& named, const WhyOptions& options) {
  return {.group = resource.group,
          .kind = resource.kind,
          .plural = resource.plural,
          .namespace_ = resource.namespaced ? options.namespace_ : std::string(),
          .name = named.name};
}

// Adds the present objects from the API server.
io::Task<Result<WhyAnswer>> complete(ObjectReader& reader, kube::Resource resource,
                                     WhyAnswer answer) {
  const std::optional<json::Value> present = HANGAR_CO_TRY(co_await reader.read(
      resource, {.namespace_ = answer.target.namespace_, .name = answer.target.name}));
  if (present) answer.current = current_object(*present);
  if (present && !answer.field.empty()) {
    const std::vector<FieldStep> steps = HANGAR_CO_TRY(parse_field(answer.field));
    answer.field_path = HANGAR_CO_TRY(find_field(*present, steps));
  }
  std::size_t look_ups = 0;
  for (const std::size_t at : reached(answer.findings)) {
    const WhyStep& step = answer.findings.steps[at];
    for (std::size_t i = 0; i < step.links.size(); ++i) {
      const Cause& cause = step.story.causes[i];
      const recorder::ObjectVersion object = without_version(cause.object);
      if (!is_event(cause) || step.links[i].step || answer.others.contains(object)) continue;
      if (++look_ups > kLookUpsMax) break;
      // A user who may not read the object does not learn its writers.
      const auto found = co_await reader.read(object);
      if (found && *found) answer.others.emplace(object, **found);
    }
  }
  if (!answer.current && answer.findings.writes.empty()) {
    co_return fail(ErrorKind::NotFound,
                   fmt::format("there is no {}, and no write on it is recorded; records go back to "
                               "{}",
                               target_text(answer.target),
                               answer.read.since ? to_rfc3339(*answer.read.since) : "nothing"));
  }
  co_return answer;
}

Result<WhyAnswer> find_answer(host::ClusterSession& session, ObjectReader& reader, Records& records,
                              const kube::Resource& resource, WhyTarget target,
                              const WhyOptions& options) {
  seeing::FoundWrites found = HANGAR_TRY(
      session.run(records.writes({.target = target,
                                  .limits = {.writes_max = options.writes_max},
                                  .since = {},
                                  .bodies = options.bodies || options.format == WhyFormat::Json})));
  return session.run(complete(reader, resource,
                              {.target = std::move(target),
                               .field = options.field,
                               .current = {},
                               .findings = std::move(found.findings),
                               .read = std::move(found.read)}));
}

// Finds writes since the last check, and reads only the records since then.
class Follower {
 public:
  Follower(WhyTarget target, host::ClusterSession& session, Records& records)
      : target_(std::move(target)), session_(session), records_(records) {}

  // Marks the present writes as shown.
  [[nodiscard]] Result<> begin() {
    WhyFindings present = HANGAR_TRY(look_back());
    keep_news(present);
    return {};
  }

  // The number of new writes.
  [[nodiscard]] Result<std::size_t> look() {
    const WhyFindings found = HANGAR_TRY(look_back());
    return static_cast<std::size_t>(std::ranges::count_if(found.writes, [&](const WhyWrite& write) {
      return !told_.contains(key_of(found, write));
    }));
  }

  // Removes writes that were shown before, and marks the others as shown.
  void keep_news(WhyFindings& findings) {
    std::erase_if(findings.writes, [&](const WhyWrite& write) {
      return !told_.insert(key_of(findings, write)).second;
    });
  }

 private:
  // Reads back to some time before the last check, or to the start of the records. If the host's
  // clock was set back since, this check finds nothing, and the next one what it has not found.
  [[nodiscard]] Result<WhyFindings> look_back() {
    seeing::FoundWrites found = HANGAR_TRY(session_.run(records_.writes(
        {.target = target_,
         .limits = {.writes_max = kWritesMax, .depth_max = 0, .steps_max = kWritesMax},
         .since = since_})));
    // A turn is recorded before its requests and their answers.
    since_ = found.at - kOverlap;
    return std::move(found.findings);
  }

  static constexpr std::size_t kWritesMax = 1000;
  static constexpr std::chrono::seconds kOverlap{30};
  // Host, namespace, name, instance, id and time of a request.
  using RequestKey =
      std::tuple<std::uint64_t, std::string, std::string, std::uint64_t, std::uint64_t, WallTime>;

  static RequestKey key_of(const WhyFindings& findings, const WhyWrite& write) {
    const Story& story = findings.steps[write.step].story;
    const Request& request = story.requests[write.request];
    return {story.host, story.namespace_, story.name, story.instance, request.id, request.at};
  }

  const WhyTarget target_;
  host::ClusterSession& session_;
  Records& records_;
  std::optional<WallTime> since_;
  std::set<RequestKey> told_;
};

std::string text_in(WhyFormat format, const WhyAnswer& answer) {
  switch (format) {
    case WhyFormat::Json:
      return why_json(answer);
    case WhyFormat::Mermaid:
      return why_mermaid(answer);
    default:
      return why_text(answer);
  }
}

}  // namespace

std::string why_text(const WhyAnswer& answer) {
  std::string text = present_text(answer);
  Telling telling(answer);
  if (!answer.field.empty()) {
    const FieldOwner owner = owner_of_field(answer);
    if (owner.managers.empty()) {
      text += fmt::format("Nobody owns {}.\n", printable(answer.field));
    } else {
      text += fmt::format("{} was set by {}.\n", printable(answer.field), by(owner.managers));
      text += owner.write ? telling.of_write(*owner.write)
                          : std::string("No write of that manager at that time is held.\n");
    }
    return text + notes_of(answer.read);
  }
  if (answer.findings.writes.empty()) text += "No write from here is held.\n";
  for (const WhyWrite& write : answer.findings.writes)
    text += telling.of_write(write);
  return text + notes_of(answer.read);
}

std::string why_json(const WhyAnswer& answer) {
  json::Object out;
  out["object"] =
      json_of(recorder::ObjectVersion{.group = answer.target.group,
                                      .kind = answer.target.kind,
                                      .namespace_ = answer.target.namespace_,
                                      .name = answer.target.name,
                                      .version = answer.current ? answer.current->version : 0});
  out["exists"] = answer.current.has_value();
  const auto managers_json = [](const Managers& managers) {
    json::Array list;
    for (const FieldManager* const manager : managers) {
      json::Object object{{"manager", printable(manager->name)},
                          {"operation", printable(manager->operation)}};
      if (!manager->subresource.empty()) object["subresource"] = printable(manager->subresource);
      if (manager->time) object["time"] = to_rfc3339(*manager->time);
      list.push_back(std::move(object));
    }
    return list;
  };
  if (answer.current) out["lastManagers"] = managers_json(last_managers(*answer.current));
  if (!answer.field.empty()) {
    json::Object field{{"path", printable(answer.field)}};
    const FieldOwner owner = owner_of_field(answer);
    field["setBy"] = managers_json(owner.managers);
    if (owner.write) {
      field["write"] = json::Object{{"turn", owner.write->step}, {"request", owner.write->request}};
    }
    out["field"] = std::move(field);
  }
  const json::Value found = seeing::json_of(
      seeing::FoundWrites{.at = {}, .findings = answer.findings, .read = answer.read});
  json::Array turns = *json::array_at(found, {"turns"});
  for (std::size_t at = 0; at < turns.size(); ++at) {
    const WhyStep& step = answer.findings.steps[at];
    json::Array causes = *json::array_at(turns[at], {"causes"});
    for (std::size_t cause = 0; cause < step.links.size(); ++cause) {
      if (step.links[cause].step || !is_event(step.story.causes[cause])) continue;
      causes[cause].as_object()["writtenBy"] =
          managers_json(outside_writers(answer, step.story, step.story.causes[cause]));
    }
    json::set_at(turns[at], {"causes"}, std::move(causes));
  }
  out["turns"] = std::move(turns);
  out["writes"] = *json::array_at(found, {"writes"});
  out["records"] = json_of(answer.read);
  return json::dump(json::Value(std::move(out))) + "\n";
}

std::string why_mermaid(const WhyAnswer& answer) {
  const WhyFindings& findings = answer.findings;
  std::string text = "flowchart LR\n";
  text += fmt::format("  object[{}]\n", in_quotes(target_text(answer.target)));
  std::size_t others = 0;
  for (const std::size_t at : reached(findings)) {
    const Story& story = findings.steps[at].story;
    const std::string turn =
        story.name == seeing::kWithheld
            ? std::string(kStranger)
            : fmt::format("{} {}{}{}, turn {}", name_of(story.contract), story.namespace_,
                          story.namespace_.empty() ? "" : "/", name_in(story), story.number);
    text += fmt::format("  {}({})\n", node_of(at), in_quotes(turn));
    for (std::size_t i = 0; i < story.causes.size(); ++i) {
      const Cause& cause = story.causes[i];
      const WhyLink& link = findings.steps[at].links[i];
      const std::string label =
          is_event(cause) ? fmt::format("{} {}", name_of(cause.what), in_words(cause.object))
                          : std::string(cause.event.empty() ? name_of(cause.what) : cause.event);
      if (link.step) {
        text +=
            fmt::format("  {} -->|{}| {}\n", node_of(*link.step), in_quotes(label), node_of(at));
      } else if (is_event(cause)) {
        const Managers writers = outside_writers(answer, story, cause);
        text += fmt::format("  o{}[/{}/] -->|{}| {}\n", others,
                            in_quotes(writers.empty() ? "not known" : by(writers)),
                            in_quotes(label), node_of(at));
        ++others;
      }
    }
  }
  for (const WhyWrite& write : findings.writes) {
    const Request& request = findings.steps[write.step].story.requests[write.request];
    text += fmt::format(
        "  {} -->|{}| object\n", node_of(write.step),
        in_quotes(fmt::format("{} at {}", name_of(request.verb), to_rfc3339(request.at))));
  }
  return text;
}

Result<std::string> why_once(const WhyOptions& asked, host::ClusterSession& session,
                             Records& records) {
  WhyOptions options = asked;
  const Named named = HANGAR_TRY(check_question(options));
  use_default_namespace(options, session);
  ObjectReader reader(session.client);
  const kube::Resource resource = HANGAR_TRY(session.run(reader.find(named)));
  const WhyAnswer answer = HANGAR_TRY(find_answer(session, reader, records, resource,
                                                  target_of(resource, named, options), options));
  return text_in(options.format, answer);
}

Result<> why(const host::Config& config, const WhyOptions& asked,
             const std::function<bool(std::string_view)>& print, const Log& log) {
  WhyOptions options = asked;
  const Named named = HANGAR_TRY(check_question(options));
  host::ClusterSession session(HANGAR_TRY(host::find_login(config)), log);
  use_default_namespace(options, session);
  const std::unique_ptr<Records> records =
      HANGAR_TRY(open_records(config, session, options.records));
  ObjectReader reader(session.client);
  const kube::Resource resource = HANGAR_TRY(session.run(reader.find(named)));
  const WhyTarget target = target_of(resource, named, options);
  Follower follower(target, session, *records);
  if (options.follow) HANGAR_TRY(follower.begin());
  WhyAnswer answer = HANGAR_TRY(find_answer(session, reader, *records, resource, target, options));
  if (!print(text_in(options.format, answer)) || !options.follow) return {};
  follower.keep_news(answer.findings);
  while (true) {
    (void)session.run(session.loop.sleep(kLookAgainAfter, {}));
    const std::size_t news = HANGAR_TRY(follower.look());
    if (news == 0) continue;
    options.writes_max = std::max(asked.writes_max, news);
    Result<WhyAnswer> now = find_answer(session, reader, *records, resource, target, options);
    if (!now) return std::unexpected(std::move(now).error());
    follower.keep_news(now->findings);
    if (!now->findings.writes.empty() && !print(text_in(options.format, *now))) return {};
  }
}

}  // namespace hangar::commands
