#include "reconcile/event_log.h"

#include "base/assert.h"
#include "base/consumer.h"
#include "base/fair_queue.h"
#include "base/result.h"
#include "base/time.h"
#include "base/utf8.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hangar::reconcile {

namespace {

// client-go's spam filter: a burst of 25, then one in five minutes, for each object.
constexpr TokenBucket::Options kPerObject{.per_second = 1.0 / 300, .burst = 25};

// The API server refuses longer notes in events.k8s.io, the API through which core Events are
// read too.
constexpr std::size_t kMessageBytesMax = 1024;

// Of an object's name; the suffix in the Event's name needs the remaining bytes.
constexpr std::size_t kNameBytesMax = 253 - 34;

// client-go's; after that the Event is dropped.
constexpr std::uint32_t kTriesMax = 12;

// Not in the middle of a UTF-8 sequence: the server would refuse the document.
void truncate(std::string& text, std::size_t bytes_max) {
  text.resize(utf8_beginning(text, bytes_max).size());
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

// Drops the least recently used half once there are too many.
template <class Map>
void make_room(Map& map, std::size_t count_max) {
  if (map.size() < count_max) return;
  std::vector<std::uint64_t> turns;
  turns.reserve(map.size());
  for (const auto& [hash, entry] : map)
    turns.push_back(entry.used_at);
  const auto middle = turns.begin() + static_cast<std::ptrdiff_t>(turns.size() / 2);
  std::ranges::nth_element(turns, middle);
  std::erase_if(map, [&middle](const auto& entry) { return entry.second.used_at < *middle; });
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
  const Hash hash = hash_of(regarding, text);
  auto pending = pending_.find(hash);
  if (pending == pending_.end()) {
    const Tenant tenant = Tenant::of_namespace(regarding.key.namespace_);
    const auto present = pending_counts_.find(tenant);
    if (present != pending_counts_.end() && present->second >= share_of(tenant)) return false;
    const auto known = told_.find(hash);
    const bool is_stored = known != told_.end();
    pending =
        pending_
            .emplace(hash,
                     Pending{.regarding = regarding,
                             .text = std::move(text),
                             .told = is_stored ? known->second
                                               : Told{.first = wall_now, .number = ++named_count_},
                             .is_stored = is_stored})
            .first;
    ++pending_counts_[tenant];
    wait(hash, pending->second);
  }
  ++pending->second.told.count;
  pending->second.last = wall_now;
  return true;
}

std::optional<EventLog::Write> EventLog::next() {
  const std::optional<FairQueue<Hash>::Taken> taken = waiting_.pop();
  if (!taken) return std::nullopt;
  Pending& pending = pending_.at(taken->item);
  pending.written_count = pending.told.count;
  Write write{
      .id = taken->item, .key = key_of(pending), .is_new = !pending.is_stored, .document = {}};
  if (write.is_new) {
    write.document = event_of(pending);
  } else {
    write.document =
        json::Object{{"count", pending.told.count}, {"lastTimestamp", to_rfc3339(pending.last)}};
  }
  return write;
}

bool EventLog::on_written(std::uint64_t id, const Result<>& written) {
  const auto found = pending_.find(id);
  HANGAR_ASSERT(found != pending_.end(), "what is under way is pending");
  Pending& pending = found->second;
  waiting_.done(consumer_of(pending));
  if (written) {
    pending.is_stored = true;
    pending.try_count = 0;
    remember(id, pending);
    if (pending.told.count == pending.written_count) {
      drop(found);
    } else {
      wait(id, pending);  // Recorded again during the write: it queues behind the others.
    }
    return true;
  }
  if (pending.is_stored && written.error().kind() == ErrorKind::NotFound) {
    // The server keeps Events for an hour: a new Event continues the count.
    pending.is_stored = false;
    pending.told.number = ++named_count_;
    told_.erase(id);
    wait(id, pending);
    return true;
  }
  if (written.error().kind() == ErrorKind::Unavailable && ++pending.try_count < kTriesMax) {
    wait(id, pending);
    return false;
  }
  drop(found);
  return true;
}

EventLog::Hash EventLog::hash_of(const ObjectReference& regarding, const EventText& text) {
  // No part but the last contains a null byte.
  const std::string_view type = text.type == EventType::Warning ? "W" : "N";
  std::string said;
  for (const std::string_view part :
       {std::string_view(regarding.uid), std::string_view(regarding.key.namespace_),
        std::string_view(regarding.key.name), type, std::string_view(text.reason)}) {
    said += part;
    said += '\0';
  }
  return std::hash<std::string>()(said + text.message);
}

bool EventLog::may_speak(const ObjectReference& regarding, Instant now) {
  const std::string name =
      regarding.uid.empty() ? regarding.gvk.kind + "/" + regarding.key.to_string() : regarding.uid;
  const Hash hash = std::hash<std::string>()(name);
  auto known = allowances_.find(hash);
  if (known == allowances_.end()) {
    // The object that was quiet for longest has the most tokens again, so it loses least.
    make_room(allowances_, limits::kEventSeriesMax);
    known = allowances_.emplace(hash, Allowance{.bucket = TokenBucket(kPerObject)}).first;
  }
  known->second.used_at = ++turn_;
  return known->second.bucket.try_take(now);
}

kube::ObjectKey EventLog::key_of(const Pending& pending) {
  std::string name = pending.regarding.key.name;
  truncate(name, kNameBytesMax);
  return {.namespace_ = namespace_for(pending.regarding),
          .name = fmt::format("{}.{:x}.{:x}", name, pending.told.first.time_since_epoch().count(),
                              pending.told.number)};
}

json::Value EventLog::event_of(const Pending& pending) const {
  const auto& [type, reason, message] = pending.text;
  const kube::ObjectKey key = key_of(pending);
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", json::Object{{"namespace", key.namespace_}, {"name", key.name}}},
                      {"involvedObject", to_document(pending.regarding)},
                      {"type", type == EventType::Warning ? "Warning" : "Normal"},
                      {"reason", reason},
                      {"message", message},
                      {"source", json::Object{{"component", component_}}},
                      {"reportingComponent", component_},
                      {"reportingInstance", instance_},
                      {"firstTimestamp", to_rfc3339(pending.told.first)},
                      {"lastTimestamp", to_rfc3339(pending.last)},
                      {"count", pending.told.count}};
}

Consumer EventLog::consumer_of(const Pending& pending) {
  return {.tenant = Tenant::of_namespace(pending.regarding.key.namespace_),
          .name = pending.regarding.gvk.kind + "/" + pending.regarding.key.name};
}

// An equal part for each, and at least one. A namespace keeps the part it had before others came,
// so all together may exceed the whole: the excess grows with the logarithm of their number.
std::size_t EventLog::share_of(const Tenant& tenant) const {
  const std::size_t tenants = pending_counts_.size() + (pending_counts_.contains(tenant) ? 0 : 1);
  return std::max<std::size_t>(1, limits::kEventsPendingMax / tenants);
}

void EventLog::wait(Hash hash, const Pending& pending) {
  const auto pushed = waiting_.push(consumer_of(pending), hash);
  HANGAR_ASSERT(pushed.has_value(), "the queue has no bound of its own");
}

void EventLog::remember(Hash hash, const Pending& pending) {
  make_room(told_, limits::kEventSeriesMax);
  Told& told = told_[hash];
  told = pending.told;
  told.used_at = ++turn_;
}

void EventLog::drop(std::unordered_map<Hash, Pending>::iterator dropped) {
  const auto count =
      pending_counts_.find(Tenant::of_namespace(dropped->second.regarding.key.namespace_));
  if (--count->second == 0) pending_counts_.erase(count);
  pending_.erase(dropped);
}

}  // namespace hangar::reconcile
