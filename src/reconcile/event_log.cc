#include "reconcile/event_log.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/backoff.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace hangar::reconcile {

namespace {

// client-go's spam filter: a burst of 25, then one in five minutes, for each object.
constexpr TokenBucket::Options kPerObject{.per_second = 1.0 / 300, .burst = 25};

// The API server refuses longer notes in events.k8s.io, through which these are read too.
constexpr std::size_t kMessageBytesMax = 1024;

// Of an object name; what follows in the Event's name needs some.
constexpr std::size_t kNameBytesMax = 253 - 34;

// client-go's; then the Event is given up.
constexpr std::uint32_t kTriesMax = 12;

// Not in the middle of a UTF-8 sequence: the server would refuse the document.
void truncate(std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  text.resize(end);
}

// Events about cluster-scoped objects live there; kubectl describe looks for them there.
std::string namespace_for(const ObjectReference& regarding) {
  return regarding.key.namespace_.empty() ? "default" : regarding.key.namespace_;
}

json::Value to_document(const ObjectReference& reference) {
  json::Object document{{"apiVersion", reference.gvk.api_version()},
                        {"kind", reference.gvk.kind},
                        {"name", reference.key.name}};
  if (!reference.key.namespace_.empty()) document["namespace"] = reference.key.namespace_;
  if (!reference.uid.empty()) document["uid"] = reference.uid;
  if (!reference.resource_version.empty()) document["resourceVersion"] = reference.resource_version;
  return document;
}

}  // namespace

ObjectReference reference_to(const json::Value& object) {
  return {
      .gvk = kube::make_gvk(json::string_at(object, {"apiVersion"}),
                            json::string_at(object, {"kind"})),
      .key = kube::key_of(object),
      .uid = std::string(json::string_at(object, {"metadata", "uid"})),
      .resource_version = std::string(json::string_at(object, {"metadata", "resourceVersion"}))};
}

EventLog::EventLog(std::string component, std::string instance)
    : component_(std::move(component)), instance_(std::move(instance)) {}

bool EventLog::say(const ObjectReference& regarding, EventText text, Instant now,
                   WallTime wall_now) {
  if (!may_speak(regarding, now)) return false;
  truncate(text.message, kMessageBytesMax);
  const auto known = by_said_.find(said(regarding, text));
  const bool is_new = known == by_said_.end();
  const bool will_wait = is_new || !(*known)->is_pending;
  if (will_wait && pending_.size() >= limits::kEventsPendingMax) return false;
  if (is_new) {
    forget_oldest();
    std::string name = regarding.key.name;
    truncate(name, kNameBytesMax);
    series_.push_back(
        {.regarding = regarding,
         .text = std::move(text),
         .event_name =
             fmt::format("{}.{:x}.{:x}", name, wall_now.time_since_epoch().count(), ++named_count_),
         .first = wall_now});
    by_said_.insert(std::prev(series_.end()));
  } else {
    series_.splice(series_.end(), series_, *known);
  }
  const auto series = std::prev(series_.end());
  ++series->count;
  series->last = wall_now;
  if (!std::exchange(series->is_pending, true)) pending_.push_back(series);
  return true;
}

std::optional<EventLog::Write> EventLog::next() {
  if (pending_.empty()) return std::nullopt;
  Series& series = *pending_.front();
  // What is said while this is written makes it pending again.
  series.is_pending = false;
  Write write{.key = {namespace_for(series.regarding), series.event_name},
              .is_new = !series.is_stored,
              .document = {}};
  if (write.is_new) {
    write.document = event_of(series);
  } else {
    write.document =
        json::Object{{"count", series.count}, {"lastTimestamp", to_rfc3339(series.last)}};
  }
  return write;
}

bool EventLog::on_written(const Result<>& written) {
  const auto series = pending_.front();
  pending_.pop_front();
  bool is_over = true;
  if (written) {
    series->is_stored = true;
    series->try_count = 0;
  } else if (series->is_stored && written.error().kind() == ErrorKind::NotFound) {
    // Events live for an hour: a new one goes on with the count.
    series->is_stored = false;
    series->event_name += fmt::format(".{:x}", ++named_count_);
    truncate(series->event_name, 253);
    if (!std::exchange(series->is_pending, true)) pending_.push_front(series);
  } else if (written.error().kind() == ErrorKind::Unavailable && ++series->try_count < kTriesMax) {
    if (!std::exchange(series->is_pending, true)) pending_.push_front(series);
    is_over = false;
  }
  return is_over;
}

EventLog::Said EventLog::said(const ObjectReference& regarding, const EventText& text) {
  return {.uid = regarding.uid,
          .namespace_ = regarding.key.namespace_,
          .name = regarding.key.name,
          .type = text.type,
          .reason = text.reason,
          .message = text.message};
}

bool EventLog::may_speak(const ObjectReference& regarding, Instant now) {
  std::string name =
      regarding.uid.empty() ? regarding.gvk.kind + "/" + regarding.key.to_string() : regarding.uid;
  if (const auto known = allowance_of_.find(name); known != allowance_of_.end()) {
    allowances_.splice(allowances_.end(), allowances_, known->second);
  } else {
    if (allowances_.size() >= limits::kEventSeriesMax) {
      // The one that was silent for longest has the most tokens again: it loses least.
      allowance_of_.erase(allowances_.front().name);
      allowances_.pop_front();
    }
    allowances_.push_back({.name = std::move(name), .bucket = TokenBucket(kPerObject)});
    allowance_of_.emplace(allowances_.back().name, std::prev(allowances_.end()));
  }
  return allowances_.back().bucket.try_take(now);
}

json::Value EventLog::event_of(const Series& series) const {
  const auto& [type, reason, message] = series.text;
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", json::Object{{"namespace", namespace_for(series.regarding)},
                                                {"name", series.event_name}}},
                      {"involvedObject", to_document(series.regarding)},
                      {"type", type == EventType::Warning ? "Warning" : "Normal"},
                      {"reason", reason},
                      {"message", message},
                      {"source", json::Object{{"component", component_}}},
                      {"reportingComponent", component_},
                      {"reportingInstance", instance_},
                      {"firstTimestamp", to_rfc3339(series.first)},
                      {"lastTimestamp", to_rfc3339(series.last)},
                      {"count", series.count}};
}

void EventLog::forget_oldest() {
  if (series_.size() < limits::kEventSeriesMax) return;
  // Those that wait to be written stay: pending_ points at them, and there are fewer of them.
  for (auto series = series_.begin(); series != series_.end(); ++series) {
    const bool is_in_pending =
        series->is_pending || (!pending_.empty() && pending_.front() == series);
    if (is_in_pending) continue;
    by_said_.erase(series);
    series_.erase(series);
    return;
  }
}

}  // namespace hangar::reconcile
