#include "tracing/turn_spans.h"

#include "base/assert.h"
#include "base/text.h"
#include "base/time.h"
#include "base/utf8.h"
#include "io/loop.h"
#include "recorder/record.h"
#include "recorder/story_json.h"
#include "recorder/trace_ids.h"
#include "tracing/limits.h"
#include "tracing/span.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tracing {

namespace {

using Attributes = std::vector<std::pair<std::string, Span::Value>>;

WallTime wall_of(Instant instant) {
  return io::Loop::wall_now() -
         std::chrono::duration_cast<WallTime::duration>(io::Loop::now() - instant);
}

// Guests choose the paths of their requests: names in them may be long, or not valid UTF-8.
// Protobuf requires UTF-8, so a collector could refuse the whole request, with the spans of
// all namespaces.
std::string safe_text(std::string_view text) {
  const std::string_view cut = utf8_beginning(text, kTextBytesMax);
  if (valid_utf8_prefix(cut) == cut.size()) return std::string(cut);
  return printable(cut).substr(0, kTextBytesMax);
}

void add(Attributes& attributes, std::string_view key, std::string_view text) {
  if (!text.empty()) attributes.emplace_back(key, safe_text(text));
}

void add(Attributes& attributes, std::string_view key, std::uint64_t number) {
  attributes.emplace_back(key, static_cast<std::int64_t>(number));
}

void add(Attributes& attributes, std::string_view key, Duration duration) {
  attributes.emplace_back(key, static_cast<std::int64_t>(duration.count()));
}

void add_guest(Attributes& attributes, const recorder::Guest& guest) {
  add(attributes, "hangar.contract", recorder::name_of(guest.contract));
  add(attributes, "k8s.namespace.name", guest.namespace_);
  add(attributes, "hangar.guest", guest.name);
}

// Bare metadata does not tell the kind of its object: it may be a Secret's.
bool is_secret(std::string_view group, std::string_view kind_or_plural) {
  if (group == "meta.k8s.io") return kind_or_plural == "PartialObjectMetadata";
  return group.empty() && (kind_or_plural == "secrets" || kind_or_plural == "Secret");
}

// A path that was not recognised as that of a resource may still contain the name of a Secret.
std::string_view without_secret(std::string_view path) {
  constexpr std::string_view kSecrets = "/secrets/";
  const std::size_t at = path.find(kSecrets);
  return at == std::string_view::npos ? path : path.substr(0, at + kSecrets.size());
}

std::string text_of(const recorder::Waking& waking) {
  if (!waking.event.empty()) return std::string(waking.event);
  std::string text(recorder::name_of(waking.cause));
  const recorder::Object& object = waking.object;
  if (object.kind.empty()) return text;
  text += fmt::format(" {}", object.kind);
  if (is_secret(object.group, object.kind)) return text;
  return text + fmt::format(" {}{}{}@{}", object.namespace_, object.namespace_.empty() ? "" : "/",
                            object.name, object.version);
}

bool is_expected(std::uint64_t status) {
  constexpr std::uint64_t kNotFound = 404;
  constexpr std::uint64_t kConflict = 409;
  constexpr std::uint64_t kGone = 410;
  constexpr std::uint64_t kErrors = 400;
  return status < kErrors || status == kNotFound || status == kConflict || status == kGone;
}

Span span_of(const recorder::Turn& turn, const recorder::TurnTrace& ids) {
  Span span{.trace = ids.trace,
            .id = ids.span,
            .name = fmt::format("turn of {}", recorder::name_of(turn.guest.contract)),
            .kind = Span::Kind::Internal,
            .start = wall_of(turn.began),
            .end = wall_of(turn.ended),
            .is_sampled = ids.is_sampled,
            .is_error = turn.outcome == recorder::Turn::Outcome::Failed};
  Attributes& attributes = span.attributes;
  add_guest(attributes, turn.guest);
  add(attributes, "hangar.turn", turn.number);
  add(attributes, "hangar.module", turn.module);
  add(attributes, "hangar.waited_ns", turn.began - turn.arrived);
  add(attributes, "hangar.resume_ns", turn.resume);
  add(attributes, "hangar.cpu_ns", turn.cpu);
  add(attributes, "hangar.memory_bytes", turn.memory_bytes);
  attributes.emplace_back("hangar.was_asleep", turn.was_asleep);
  if (!turn.wakings.empty()) {
    add(attributes, "hangar.cause", std::string_view(text_of(turn.wakings.front())));
    add(attributes, "hangar.causes", turn.wakings.size() + turn.wakings_left_out);
  }
  for (const recorder::Waking& waking : turn.wakings) {
    if (span.links.size() == kLinksMax) break;
    const auto context = recorder::parse_traceparent(waking.traceparent);
    if (context) span.links.push_back(*context);
  }
  return span;
}

Span span_of(const recorder::Asked& asked, const recorder::TurnTrace& ids,
             const recorder::SpanId& id) {
  const std::string_view verb = recorder::name_of(asked.verb);
  Span span{.trace = ids.trace,
            .id = id,
            .parent = ids.span,
            .name = asked.resource.empty() ? std::string(verb)
                                           : fmt::format("{} {}", verb, safe_text(asked.resource)),
            .kind = Span::Kind::Client,
            .start = wall_of(asked.at),
            .is_sampled = ids.is_sampled};
  Attributes& attributes = span.attributes;
  add_guest(attributes, asked.guest);
  add(attributes, "hangar.object.group", asked.group);
  add(attributes, "hangar.object.resource", asked.resource);
  add(attributes, "hangar.object.subresource", asked.subresource);
  add(attributes, "hangar.object.namespace", asked.namespace_);
  if (!is_secret(asked.group, asked.resource)) {
    add(attributes, "hangar.object.name", asked.name);
    add(attributes, "url.path", without_secret(asked.path));
  }
  add(attributes, "hangar.request.bytes", asked.bytes);
  return span;
}

}  // namespace

void TurnSpans::make_room(Traces::iterator trace) {
  while (span_count_ >= kHeldSpansMax) {
    auto oldest = by_age_.begin();
    if (oldest->second == trace) ++oldest;
    HANGAR_ASSERT(oldest != by_age_.end(), "one trace alone does not have so many spans");
    forget(oldest->second);
  }
}

TurnSpans::Traces::iterator TurnSpans::trace_of(const recorder::Guest& guest, std::uint64_t turn) {
  TraceName name(GuestName(guest.contract, guest.namespace_, guest.name, guest.instance), turn);
  const auto found = traces_.find(name);
  if (found != traces_.end()) return found;
  if (traces_.size() >= kTracesMax) forget(by_age_.begin()->second);
  const recorder::TurnTrace ids = ids_.of_turn(guest, turn);
  const auto made = traces_
                        .emplace(std::move(name),
                                 Trace{.ids = ids, .is_kept = ids.is_sampled, .age = ++last_age_})
                        .first;
  by_age_.emplace(made->second.age, made);
  return made;
}

void TurnSpans::end(Traces::iterator trace, Span span) {
  std::vector<Span>& held = trace->second.held;
  if (span.is_error) trace->second.is_kept = true;
  if (!trace->second.is_kept) {
    if (held.size() > kTraceSpansMax) return;
    make_room(trace);
    ++span_count_;
    held.push_back(std::move(span));
    return;
  }
  span_count_ -= held.size();
  for (Span& one : held)
    give_(std::move(one));
  held.clear();
  give_(std::move(span));
}

// The turns of other guests are recorded before their requests, however many follow.
bool TurnSpans::counts_requests(Traces::const_iterator trace) {
  return std::get<recorder::Contract>(trace->first.first) == recorder::Contract::Operator;
}

void TurnSpans::forget_if_ended(Traces::iterator trace) {
  if (!counts_requests(trace)) return;
  const Trace& one = trace->second;
  // Requests are forwarded after the turn that made them.
  if (one.has_turn && one.seen >= one.asked && one.open.empty()) forget(trace);
}

void TurnSpans::forget(Traces::iterator trace) {
  span_count_ -= trace->second.held.size() + trace->second.open.size();
  for (const auto& [id, span] : trace->second.open)
    turns_.erase({trace->first.first, id});
  by_age_.erase(trace->second.age);
  traces_.erase(trace);
}

void TurnSpans::forget_earlier(Traces::iterator trace) {
  for (auto one = traces_.lower_bound({trace->first.first, 0}); one != trace;) {
    const auto earlier = one++;
    if (earlier->second.open.empty()) forget(earlier);
  }
}

void TurnSpans::on_turn(const recorder::Turn& turn) {
  const auto trace = trace_of(turn.guest, turn.number);
  if (!counts_requests(trace)) forget_earlier(trace);
  trace->second.has_turn = true;
  trace->second.asked = turn.asked;
  end(trace, span_of(turn, trace->second.ids));
  forget_if_ended(trace);
}

void TurnSpans::on_asked(const recorder::Asked& asked) {
  const auto trace = trace_of(asked.guest, asked.turn);
  ++trace->second.seen;
  const GuestName& name = trace->first.first;
  const std::size_t count = trace->second.open.size() + trace->second.held.size();
  const bool is_span = asked.verb != recorder::Verb::Watch && count < kTraceSpansMax;
  if (!is_span || !turns_.emplace(std::pair(name, asked.id), asked.turn).second) {
    forget_if_ended(trace);
    return;
  }
  make_room(trace);
  const recorder::TurnTrace& ids = trace->second.ids;
  trace->second.open.emplace(asked.id, span_of(asked, ids, ids_.of_request(ids, asked.id)));
  ++span_count_;
}

void TurnSpans::on_answered(const recorder::Answered& answered) {
  const recorder::Guest& guest = answered.guest;
  const GuestName name(guest.contract, guest.namespace_, guest.name, guest.instance);
  const auto turn = turns_.find({name, answered.id});
  if (turn == turns_.end()) return;
  const auto trace = traces_.find({name, turn->second});
  HANGAR_ASSERT(trace != traces_.end(), "a trace is forgotten with its requests");
  turns_.erase(turn);
  Span span = std::move(trace->second.open.extract(answered.id).mapped());
  --span_count_;
  span.end = wall_of(answered.at);
  add(span.attributes, "http.response.status_code", answered.status);
  add(span.attributes, "hangar.response.bytes", answered.bytes);
  if (!is_expected(answered.status)) {
    span.is_error = true;
    span.error = fmt::format("HTTP status {}", answered.status);
  }
  end(trace, std::move(span));
  forget_if_ended(trace);
}

}  // namespace hangar::tracing
