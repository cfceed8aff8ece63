// Which Events to write about objects, without any I/O.
//
// A repetition (same object, type, reason and message) does not become another Event: it updates
// the count and the time of the first one. An object with very many Events is throttled: a burst,
// then one in five minutes, as client-go does it. Repetitions while the server does not answer are
// merged the same way before they are written.
//
// Namespaces take turns, then the objects of each, and each namespace has a share of the space for
// pending Events: no flood of Events keeps those of others from being written.
#pragma once

#include "base/consumer.h"
#include "base/fair_queue.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace hangar::reconcile {

struct ObjectReference {
  kube::GroupVersionKind gvk;
  kube::ObjectKey key;
  std::string uid = {};
  std::string resource_version = {};
};
[[nodiscard]] ObjectReference reference_to(const json::Value& object);

enum class EventType : std::uint8_t { Normal, Warning };

struct EventText {
  EventType type = EventType::Normal;
  std::string reason;   // One word in CamelCase; a constant for each kind of occurrence.
  std::string message;  // For people. Another message makes another Event.
};

class EventLog {
 public:
  // `component` names the reporter ("hangar"), `instance` its process (the pod).
  EventLog(std::string component, std::string instance);

  // False when the Event is dropped: there were too many about this object, or the namespace has
  // used up its share of pending Events.
  bool say(const ObjectReference& regarding, EventText text, Instant now, WallTime wall_now);

  // The next write. Several may be under way; report the result of each. None: all other Events are
  // written, or under way.
  struct Write {
    std::uint64_t id = 0;  // For the report.
    kube::ObjectKey key;
    bool is_new = true;    // Create `document`; otherwise merge it into the Event.
    json::Value document;  // A core v1 Event or a patch.
  };
  [[nodiscard]] std::optional<Write> next();
  // False: retry after a pause; next() returns it again.
  bool on_written(std::uint64_t id, const Result<>& written);

  // Events that are not written yet, or have to be written again.
  [[nodiscard]] std::size_t pending_count() const { return pending_.size(); }
  // The pending ones that are not under way.
  [[nodiscard]] std::size_t waiting_count() const { return waiting_.size(); }

 private:
  // The log remembers recorded Events by their hash alone: there are thousands of them, and an
  // Event takes a kilobyte. Two Events with the same hash count as the same if they are about the
  // same object; otherwise the server does not find the Event, and a new series starts.
  using Hash = std::uint64_t;
  static Hash hash_of(const ObjectReference& regarding, const EventText& text);

  // An Event that the server has.
  struct Told {
    WallTime first;  // Of the first occurrence; with `number`, the end of the Event's name.
    std::uint64_t used_at = 0;  // A value of turn_.
    std::uint32_t number = 0;
    std::uint32_t count = 0;
  };
  // An Event that the server does not have, or has with a lower count.
  struct Pending {
    ObjectReference regarding;
    EventText text;
    Told told;
    WallTime last;
    std::uint32_t written_count = 0;  // Of the document that is being written.
    std::uint32_t try_count = 0;
    bool is_stored = false;
  };
  struct Allowance {
    TokenBucket bucket;
    std::uint64_t used_at = 0;
  };

  [[nodiscard]] bool may_speak(const ObjectReference& regarding, Instant now);
  [[nodiscard]] static kube::ObjectKey key_of(const Pending& pending);
  [[nodiscard]] json::Value event_of(const Pending& pending) const;
  [[nodiscard]] static Consumer consumer_of(const Pending& pending);
  // How many pending Events a namespace may have, as its share.
  [[nodiscard]] std::size_t share_of(const Tenant& tenant) const;
  void wait(Hash hash, const Pending& pending);
  void remember(Hash hash, const Pending& pending);
  void drop(std::unordered_map<Hash, Pending>::iterator dropped);

  const std::string component_;
  const std::string instance_;
  std::uint32_t named_count_ = 0;
  std::uint64_t turn_ = 0;
  std::unordered_map<Hash, Pending> pending_;
  std::map<Tenant, std::size_t> pending_counts_;  // Only tenants with pending Events.
  FairQueue<Hash> waiting_;                       // The pending ones that are not under way.
  // One entry for each recorded object, kept for a long time.
  template <class T>
  using Kept = std::unordered_map<Hash, T, std::hash<Hash>, std::equal_to<Hash>,
                                  slots::Allocator<std::pair<const Hash, T>>>;
  Kept<Told> told_;
  Kept<Allowance> allowances_;  // By object.
};

}  // namespace hangar::reconcile
