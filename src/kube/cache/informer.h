// The objects of one scope, and their subscribers. The name and the role are client-go's.
//
// A Reflector feeds the informer. It may watch a wider scope, and be replaced by another one;
// subscribers still see one history without gaps.
//
// A whole list is handled in pieces, with turns of the loop for all else in between, and so is the
// replay for a late subscriber. What arrives meanwhile waits and is handled afterwards, in its
// order. Short lists are done when the call returns. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/object_set.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"
#include "kube/watch/watch_event.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {

class Informer;

// A subscriber. Shared by its Subscription, its Informer, and calls in progress, so that any of
// these may end first.
struct Subscriber {
  Subscriber(io::Loop& loop, Cache::Handlers handlers_in, std::shared_ptr<Allowance> allowance_in)
      : handlers(std::move(handlers_in)), allowance(std::move(allowance_in)), changed(loop) {}

  const Cache::Handlers handlers;
  const std::shared_ptr<Allowance> allowance;  // Null: not bounded.
  std::shared_ptr<Informer> informer;
  bool is_alive = true;
  bool is_synced = false;  // It has received the whole list.
  io::Event changed;       // Of is_alive, is_synced, or the informer's error.
};

class Informer final : public std::enable_shared_from_this<Informer> {
 public:
  struct Owner {
    Duration linger;
    // Called for each delta, after it has taken effect.
    std::function<void(const Informer& informer, const Delta& delta)> on_delta;
    // Called when it has had no subscriber for `linger`.
    std::function<void(const std::shared_ptr<Informer>& informer)> on_unused;
  };
  // InvalidInput for a selector that the API server would refuse.
  [[nodiscard]] static Result<Selection> selection_of(const Scope& scope);
  // `slice`: of all long work of the cache, counted in objects (limits::kCacheSliceObjects).
  Informer(io::Loop& loop, io::SharedSlice slice, Scope scope, Selection selection, Owner owner);

  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] const Selection& selection() const { return selection_; }
  // For Audience.
  [[nodiscard]] const ObjectKey& place() const { return selection_.place(); }

  void add(const std::shared_ptr<Subscriber>& subscriber);
  // Called when a subscriber is no longer alive.
  void remove_dead();
  // No subscriber receives anything any more.
  void stop();
  // As stop(), and takes everything out of the store: the owner is told of each object as Deleted.
  // Then calls `on_empty`.
  void empty(std::function<void()> on_empty);

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] const Store& store() const { return store_; }
  // Everything up to this version is in the store. Empty before the first whole list.
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }
  // The object that the owner knows by on_delta(): the differences of a list are told after the
  // store has them.
  [[nodiscard]] ObjectPtr told(const ObjectKey& key) const;
  // Of what it was given: some of it may still wait to be handled. Empty before the first whole
  // list.
  [[nodiscard]] const std::string& given_version() const { return given_version_; }
  // Some of what it was given waits to be handled.
  [[nodiscard]] bool is_busy() const { return !works_.empty(); }
  // The store is a whole list, or will be one.
  [[nodiscard]] bool has_list() const { return has_list_; }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // Its objects took more than allowed: it holds nothing, and receives nothing any more.
  [[nodiscard]] bool is_over() const { return is_over_; }
  // True for an error that will not go away by waiting.
  [[nodiscard]] bool is_error_final() const;

  // --- For the reflector that feeds it.
  // `objects` are all objects, as of that version. `incoming_bytes`: of those that are not in the
  // store.
  void replace(ObjectSet objects, std::string resource_version, std::uint64_t incoming_bytes);
  // A change to an object at this informer's place. To subscribers, an object that is no longer
  // selected is deleted.
  void apply(const Change& change);
  // Nothing else has changed up to that version.
  void advance(std::string_view resource_version);
  // `bytes` more are held for a list that is being read, or a change that waits. False when they
  // are not allowed: then is_over().
  [[nodiscard]] bool may_hold(std::uint64_t bytes);
  // Calls `on_copied` with the objects that are in the namespace (empty: all) and selected, as of
  // what given_version() is now; std::nullopt when that state is not to be had any more.
  using Selects = std::function<bool(const Object& object)>;
  using OnCopied = std::function<void(std::optional<ObjectSet> objects)>;
  void copy(std::string namespace_, Selects selects, OnCopied on_copied);
  // The server no longer serves the resource.
  void lose();
  void set_error(std::optional<Error> error);

 private:
  // What it was given, from the front to the back. Only the front one is under way.
  struct List {
    explicit List(ObjectSet objects) : replacement(std::move(objects)) {}
    Store::Replacement replacement;
    std::string version;  // Empty: the resource is lost.
    std::uint64_t incoming_bytes = 0;
  };
  struct Waiting {  // A change.
    Change change;
    std::uint64_t bytes = 0;
  };
  struct Progress {
    std::string version;
  };
  struct Replay {
    std::shared_ptr<Subscriber> subscriber;
    ObjectPtr last;
  };
  struct Copy {
    std::string namespace_;
    Selects selects;
    OnCopied on_copied;
    ObjectSet objects = {};
    ObjectPtr last = nullptr;
  };
  struct Emptying {
    std::function<void()> on_empty;  // May be empty.
  };
  using Work = std::variant<List, Waiting, Progress, Replay, Copy, Emptying>;

  void choose_allowance();
  void give_up(const Error& error);
  // Sees to it that works_ are done: some of it now, the rest in later turns of the loop.
  void begin();
  static io::Task<void> work(std::shared_ptr<Informer> self);
  // All of it, now.
  void finish();
  // One step of the front one. Returns the units of the slice that it has taken.
  [[nodiscard]] std::uint64_t step();
  [[nodiscard]] std::uint64_t units_of(const Work& work) const;
  // Each is one step; false when the work is done.
  [[nodiscard]] bool step(List& list);
  [[nodiscard]] bool step(Waiting& waiting);
  [[nodiscard]] bool step(Progress& progress);
  [[nodiscard]] bool step(Replay& replay);
  [[nodiscard]] bool step(Copy& copy);
  [[nodiscard]] bool step(Emptying& emptying);
  void on_in_place(const List& list);
  void on_told(const List& list);
  // False when it does not concern the informer.
  [[nodiscard]] bool apply_now(const Change& change);
  void advance_now(std::string_view resource_version);
  // Of the lists that wait, only the newest counts.
  void supersede_list();
  // Nothing more is told to subscribers.
  [[nodiscard]] bool has_ended() const { return is_stopped_ || is_over_; }
  [[nodiscard]] std::uint64_t held_bytes() const;
  void deliver(const auto& calls);
  void tell(Delta delta);
  void tell_progress(bool is_list);
  void for_each_alive(const auto& call);
  void for_each_synced(const auto& call);
  void notify_all();

  io::Loop& loop_;
  const io::SharedSlice slice_;
  const Scope scope_;
  const Selection selection_;
  const Owner owner_;
  Store store_;
  std::string resource_version_;  // The version of store_.
  std::string given_version_;
  std::list<Work> works_;     // Stable, since a step may add to it.
  bool is_working_ = false;   // work() runs, or waits for its turn.
  bool is_stepping_ = false;  // The front one is on the stack.
  bool is_emptying_ = false;
  std::uint64_t waiting_bytes_ = 0;                       // Of changes in works_.
  std::uint64_t incoming_bytes_ = 0;                      // Of lists that are not in place yet.
  std::vector<std::shared_ptr<Subscriber>> subscribers_;  // Dead ones too, while delivering.
  int delivering_depth_ = 0;
  bool has_list_ = false;
  bool is_complete_ = false;  // store_ is a whole list.
  bool is_gone_ = false;
  bool is_stopped_ = false;
  bool is_over_ = false;
  std::shared_ptr<Allowance> allowance_;  // Null: not bounded.
  std::optional<Error> error_;
  io::Loop::Timer linger_;
};

// True when state as of version `other` includes version `one`. False for versions that are not
// numbers: they cannot be compared.
[[nodiscard]] bool is_known_at(std::string_view one, std::string_view other);

}  // namespace hangar::kube
