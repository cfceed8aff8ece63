#include "operators/recording.h"

#include "kube/object.h"
#include "kube/protobuf_object.h"
#include "recorder/limits.h"
#include "recorder/trace_ids.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

namespace hangar::operators {

namespace {

using abi::kube_runtime::Listener;
using recorder::Waking;

// The two lists of verbs are the same: the recorder lies below the gateway and cannot use its enum.
static_assert(static_cast<int>(recorder::Verb::Watch) == static_cast<int>(gateway::Verb::Watch));
static_assert(static_cast<int>(recorder::Verb::Patch) == static_cast<int>(gateway::Verb::Patch));
static_assert(static_cast<int>(recorder::Verb::Other) == static_cast<int>(gateway::Verb::Other));

Waking::Cause cause_of(gateway::WatchLine::Type type) {
  switch (type) {
    case gateway::WatchLine::Type::Added:
      return Waking::Cause::Added;
    case gateway::WatchLine::Type::Modified:
      return Waking::Cause::Modified;
    default:
      return Waking::Cause::Deleted;
  }
}

// The object of a line that reports a change; the API server writes the type first.
std::optional<std::pair<Waking::Cause, std::string_view>> change_in(std::string_view line) {
  constexpr std::pair<std::string_view, Waking::Cause> kChanges[] = {
      {R"({"type":"ADDED","object":)", Waking::Cause::Added},
      {R"({"type":"MODIFIED","object":)", Waking::Cause::Modified},
      {R"({"type":"DELETED","object":)", Waking::Cause::Deleted}};
  for (const auto& [begin, cause] : kChanges) {
    if (line.starts_with(begin)) return std::pair(cause, line.substr(begin.size()));
  }
  return std::nullopt;
}

bool is_of_secrets(const recorder::Asked& asked) {
  return asked.group.empty() && asked.resource == "secrets";
}

std::uint64_t version_of(std::string_view text) {
  return kube::parse_version(text).value_or(0);
}

}  // namespace

void Woken::reserve(std::size_t count) {
  wakings_.reserve(std::min(count, recorder::kWakingsMax));
}

void Woken::add(const Mailbox::Arrival& arrival, Source source) {
  const bool is_plain = source == Source::Plain;
  const auto* const piece = std::get_if<gateway::Piece>(&arrival.what);
  // A plain answer counts once, by its body.
  if (is_plain && piece == nullptr) return;
  if (!has_place()) return;
  if (source == Source::Timer) {
    wakings_.push_back({.cause = Waking::Cause::Timer, .id = arrival.id});
  } else if (is_plain) {
    const auto* const text = std::get_if<std::string>(piece);
    wakings_.push_back({.cause = Waking::Cause::Answer,
                        .id = arrival.id,
                        .bytes = text != nullptr ? text->size() : 0});
  } else if (piece != nullptr) {
    add_piece(arrival.id, *piece);
  } else {
    const bool is_head = std::holds_alternative<Mailbox::Head>(arrival.what);
    wakings_.push_back(
        {.cause = is_head ? Waking::Cause::Head : Waking::Cause::End, .id = arrival.id});
  }
}

void Woken::add_request(Listener listener, std::uint64_t bytes) {
  if (!has_place()) return;
  const std::string_view event = listener == Listener::Webhooks ? "review" : "metrics";
  wakings_.push_back({.cause = Waking::Cause::Event, .bytes = bytes, .event = event});
}

bool Woken::has_place() {
  if (wakings_.size() < recorder::kWakingsMax) return true;
  ++left_out_;
  return false;
}

std::string_view Woken::kept(std::string_view text) {
  if (text.empty()) return {};
  char* const copy = std::pmr::polymorphic_allocator<char>(&texts_).allocate(text.size());
  std::ranges::copy(text, copy);
  return {copy, text.size()};
}

void Woken::add_piece(std::uint64_t id, const gateway::Piece& piece) {
  Waking::Cause cause = Waking::Cause::Line;
  std::optional<kube::ObjectText> object_text;
  std::string_view document;
  std::uint64_t bytes = 0;
  if (const auto* const line = std::get_if<gateway::WatchLine>(&piece)) {
    cause = cause_of(line->type);
    document = object_text.emplace(line->object->text()).view();
    bytes = document.size();
  } else {
    const std::string_view text = std::get<std::string>(piece);
    bytes = text.size();
    if (const auto change = change_in(text)) std::tie(cause, document) = *change;
  }
  Waking waking{.cause = Waking::Cause::Line, .id = id, .bytes = bytes};
  if (const auto object = kube::identify(document)) {
    waking.cause = cause;
    waking.object = {.group = kept(object->group()),
                     .kind = kept(object->kind),
                     .namespace_ = kept(object->namespace_),
                     .name = kept(object->name),
                     .version = version_of(object->resource_version)};
    if (traces_ == Traces::On) waking.traceparent = kept(recorder::traceparent_in(document));
  }
  wakings_.push_back(waking);
}

recorder::Asked asked_of(const gateway::RequestTarget& target, const gateway::Request& request,
                         const std::optional<kube::Identification>& body) {
  recorder::Asked asked{.verb = static_cast<recorder::Verb>(target.verb),
                        .group = target.group,
                        .resource = target.plural,
                        .namespace_ = target.namespace_,
                        .name = target.name,
                        .subresource = target.subresource,
                        .bytes = request.body.size()};
  if (!target.is_resource()) {
    const std::string_view path = request.target;
    asked.path = path.substr(0, path.find('?'));
  }
  if (!recorder::is_write(asked.verb)) return asked;
  if (const std::string* const manager = target.parameter("fieldManager")) {
    asked.field_manager = *manager;
  }
  const std::string* const dry_run = target.parameter("dryRun");
  asked.is_dry_run = dry_run != nullptr && !dry_run->empty();
  if (!body) return asked;
  asked.version = version_of(body->resource_version);
  // The path of a creation has no name, and the answer may be one that AnsweredObject cannot read.
  const bool is_creation = asked.verb == recorder::Verb::Create && !asked.resource.empty();
  if (is_creation && asked.name.empty()) asked.name = body->name;
  return asked;
}

bool has_recordable_body(const recorder::Asked& asked) {
  using recorder::Verb;
  const bool is_change =
      asked.verb == Verb::Create || asked.verb == Verb::Update || asked.verb == Verb::Patch;
  return is_change && !asked.resource.empty() && !is_of_secrets(asked) && asked.bytes > 0;
}

SecretsRead::SecretsRead(const Operator& spec) {
  for (const EnvironmentEntry& entry : spec.environment)
    if (entry.source == EnvironmentEntry::Source::Secret) add(spec.key.namespace_, entry.object);
  for (const FileEntry& entry : spec.files)
    if (entry.is_secret) add(spec.key.namespace_, entry.object);
}

// Writes count, too: their answers have the object. The name of a creation is from its body, which
// the API server may read differently.
void SecretsRead::add(const recorder::Asked& asked) {
  if (!is_of_secrets(asked)) return;
  const bool is_creation = asked.verb == recorder::Verb::Create;
  add(asked.namespace_, is_creation ? std::string_view() : asked.name);
}

// A review of Secrets names their resource. Another one may have the word, too, which only shows
// less.
void SecretsRead::add_review(std::string_view body) {
  if (body.contains(R"("secrets")")) add({}, {});
}

void SecretsRead::add(std::string_view namespace_, std::string_view name) {
  const auto covers = [&](const auto& known) {
    const bool is_there = known.first.empty() || known.first == namespace_;
    return is_there && (known.second.empty() || known.second == name);
  };
  if (std::ranges::any_of(names_, covers)) return;
  if (names_.size() == recorder::kBodySecretsMax) {
    names_.clear();
    namespace_ = {};
    name = {};
  }
  names_.emplace_back(namespace_, name);
}

AnsweredObject::AnsweredObject(std::string_view body) {
  // The API server writes the items of some lists before the rest. Protobuf is read by its lengths.
  const bool is_json = body.starts_with('{');
  auto found = is_json ? kube::identify(body.substr(0, recorder::kAnswerReadBytesMax))
                       : kube::identify_protobuf(body);
  if (!found || found->kind == "Status") return;
  group_ = found->group();
  kind_ = found->kind;
  namespace_ = std::move(found->namespace_);
  name_ = std::move(found->name);
  version_ = version_of(found->resource_version);
}

recorder::Object AnsweredObject::object() const {
  return {
      .group = group_, .kind = kind_, .namespace_ = namespace_, .name = name_, .version = version_};
}

}  // namespace hangar::operators
