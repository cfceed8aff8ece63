// Which Events to write about what happens to objects, without any I/O.
//
// The same thing said again (object, type, reason, message) does not become another Event: the
// count and the time of the first one are brought up to date. An object about which much is said is
// cut off: a burst, then one in five minutes, as client-go does it. What is said while the server
// does not answer is merged the same way before it is written.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/backoff.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

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
  std::string reason;   // One word in CamelCase, the same for the same thing.
  std::string message;  // For people. What changes in it makes another Event.
};

class EventLog {
 public:
  // `component` is who speaks ("hangar"), `instance` which process of it (the pod).
  EventLog(std::string component, std::string instance);

  // False when it is dropped: too much about this object, or too much that is not written yet.
  bool say(const ObjectReference& regarding, EventText text, Instant now, WallTime wall_now);

  // What to write next; then tell how it went, before asking again. None: all is written.
  struct Write {
    kube::ObjectKey key;
    bool is_new = true;    // Create `document`; otherwise merge it into the Event.
    json::Value document;  // A core v1 Event or a patch.
  };
  [[nodiscard]] std::optional<Write> next();
  // True: nothing is left to do for it. False: worth another try after a pause.
  bool on_written(const Result<>& written);

  [[nodiscard]] std::size_t pending_count() const { return pending_.size(); }

 private:
  // There are thousands of these: nothing is in them twice.
  struct Series {
    ObjectReference regarding;
    EventText text;
    std::string event_name;
    std::int64_t count = 0;
    WallTime first;
    WallTime last;
    bool is_stored = false;   // The server has it, with some count.
    bool is_pending = false;  // In pending_.
    std::uint32_t try_count = 0;
  };
  using SeriesList = std::list<Series>;
  // What makes two the same.
  struct Said {
    std::string_view uid;
    std::string_view namespace_;
    std::string_view name;
    EventType type;
    std::string_view reason;
    std::string_view message;
    auto operator<=>(const Said&) const = default;
  };
  static Said said(const ObjectReference& regarding, const EventText& text);
  struct BySaid {
    using is_transparent = void;
    static Said key(const Said& one) { return one; }
    static Said key(SeriesList::iterator series) { return said(series->regarding, series->text); }
    bool operator()(const auto& left, const auto& right) const { return key(left) < key(right); }
  };
  struct Allowance {
    std::string name;  // Of the object: its uid, or what else names it.
    TokenBucket bucket;
  };
  using Allowances = std::list<Allowance>;

  [[nodiscard]] bool may_speak(const ObjectReference& regarding, Instant now);
  [[nodiscard]] json::Value event_of(const Series& series) const;
  void forget_oldest();

  const std::string component_;
  const std::string instance_;
  std::uint64_t named_count_ = 0;
  SeriesList series_;  // The one that was said last is last.
  std::set<SeriesList::iterator, BySaid> by_said_;
  std::deque<SeriesList::iterator> pending_;  // To be written, the first one being written maybe.
  Allowances allowances_;                     // The one that was used last is last.
  std::map<std::string_view, Allowances::iterator> allowance_of_;
};

}  // namespace hangar::reconcile
