// The objects of one scope, and their subscribers. The name and the role are client-go's.
//
// A Reflector feeds the informer. The reflector may watch a wider scope, and another one may
// replace it; subscribers still see one history without gaps.
//
// A whole list is handled in slices, between which the loop serves everything else, and so is the
// replay for a late subscriber. Changes that arrive meanwhile wait and are handled afterwards, in
// order. A short list has been handled when the call returns. Loop thread only.
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

// A subscriber. Shared by its Subscription, its Informer and calls in progress, any of which may be
// destroyed first.
struct Subscriber {
  Subscriber(io::Loop& loop, Cache::Handlers handlers_in, std::shared_ptr<Allowance> allowance_in)
      : handlers(std::move(handlers_in)), allowance(std::move(allowance_in)), changed(loop) {}

  const Cache::Handlers handlers;
  const std::shared_ptr<Allowance> allowance;  // Null: not bounded.
  std::shared_ptr<Informer> informer;
  bool is_alive = true;
  bool is_synced = false;  // It has received the whole list.
  io::Event changed;       // Notified when is_alive, is_synced or the informer's error changes.
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
  // `slice`: shared by all long work of the cache, counted in objects (limits::kCacheSliceObjects).
  Informer(io::Loop& loop, io::SharedSlice slice, Scope scope, Selection selection, Owner owner);

  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] const Selection& selection() const { return selection_; }
  // For Audience.
  [[nodiscard]] const ObjectKey& place() const { return selection_.place(); }

  void add(const std::shared_ptr<Subscriber>& subscriber);
  // Called when a subscriber is no longer alive.
  void remove_dead();
  // Ends all callbacks to subscribers.
  void stop();
  // Does what stop() does; also removes every object from the store and reports each to the owner
  // as Deleted. Then calls `on_empty`.
  void empty(std::function<void()> on_empty);

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] const Store& store() const { return store_; }
  // Everything up to this version is in the store. Empty before the first whole list.
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }
  // The object as the owner knows it from on_delta(). The store may be ahead: it changes before the
  // deltas of a list are delivered.
  [[nodiscard]] ObjectPtr told(const ObjectKey& key) const;
  // The version of the last input, which may still wait to be handled. Empty before the first whole
  // list.
  [[nodiscard]] const std::string& given_version() const { return given_version_; }
  // Work is waiting: a list, a change, a replay or a copy.
  [[nodiscard]] bool is_busy() const { return !works_.empty(); }
  // The store has a whole list, or one waits to be handled.
  [[nodiscard]] bool has_list() const { return has_list_; }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // Its objects exceeded the allowance: it drops them all and ignores further input.
  [[nodiscard]] bool is_over() const { return is_over_; }
  // True for an error that will not go away by waiting.
  [[nodiscard]] bool is_error_final() const;

  // --- For the reflector that feeds it.
  // `objects` is the whole collection, as of that version. `incoming_bytes`: the size of those that
  // the store does not have yet.
  void replace(ObjectSet objects, std::string resource_version, std::uint64_t incoming_bytes);
  // A change to an object at this informer's place. Subscribers see an object that is no longer
  // selected as Deleted.
  void apply(const Change& change);
  // Nothing else has changed up to that version.
  void advance(std::string_view resource_version);
  // Charges `bytes` to the allowance besides what is held: for a list that is being read, or a
  // change that waits. False when that is too much: then is_over().
  [[nodiscard]] bool may_hold(std::uint64_t bytes);
  // Calls `on_copied` with the selected objects of the namespace (empty: all) as of the present
  // given_version(), or with std::nullopt when that state is no longer available.
  using Selects = std::function<bool(const Object& object)>;
  using OnCopied = std::function<void(std::optional<ObjectSet> objects)>;
  void copy(std::string namespace_, Selects selects, OnCopied on_copied);
  // The server no longer serves the resource.
  void lose();
  void set_error(std::optional<Error> error);

 private:
  // The kinds of work, handled in order. Only the front item is in progress.
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
  // Starts the work in works_: some of it now, the rest in later turns of the loop.
  void begin();
  static io::Task<void> work(std::shared_ptr<Informer> self);
  // Does all of it now.
  void finish();
  // Does one step of the front item. Returns the units of the slice that the step has used.
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
  // False when the change does not concern the informer.
  [[nodiscard]] bool apply_now(const Change& change);
  void advance_now(std::string_view resource_version);
  // Discards a list that waits, and the changes after it: a newer list replaces them.
  void supersede_list();
  // True when subscribers receive nothing more.
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
  std::list<Work> works_;     // A step may add to it, so references must stay valid.
  bool is_working_ = false;   // work() runs, or waits for its turn.
  bool is_stepping_ = false;  // A step of the front item is on the call stack.
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

// True when the state at version `other` includes version `one`. False when one of them is not a
// number: they cannot be compared.
[[nodiscard]] bool is_known_at(std::string_view one, std::string_view other);

}  // namespace hangar::kube
