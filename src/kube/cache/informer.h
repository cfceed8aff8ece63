// The objects of one scope, and their subscribers. The name and the role are client-go's.
//
// A Reflector feeds the informer. It may watch a wider scope, and be replaced by another one;
// subscribers still see one history without gaps. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"
#include "kube/watch/watch_event.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
    // Called after each delta has taken effect.
    std::function<void(const Informer& informer, const Delta& delta)> on_delta;
    // Called when it has had no subscriber for `linger`.
    std::function<void(const std::shared_ptr<Informer>& informer)> on_unused;
  };
  // InvalidInput for a selector that the API server would refuse.
  [[nodiscard]] static Result<Selection> selection_of(const Scope& scope);
  Informer(io::Loop& loop, Scope scope, Selection selection, Owner owner);

  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] const Selection& selection() const { return selection_; }
  // For Audience.
  [[nodiscard]] const ObjectKey& place() const { return selection_.place(); }

  void add(const std::shared_ptr<Subscriber>& subscriber);
  // Called when a subscriber is no longer alive.
  void remove_dead();
  // No subscriber receives anything any more.
  void stop();

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] const Store& store() const { return store_; }
  // Everything up to this version is in the store. Empty before the first whole list.
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // Its objects took more than allowed: it holds nothing, and receives nothing any more.
  [[nodiscard]] bool is_over() const { return is_over_; }
  // True for an error that will not go away by waiting.
  [[nodiscard]] bool is_error_final() const;

  // --- For the reflector that feeds it.
  // `objects` are all objects, as of that version.
  void replace(std::vector<ObjectPtr> objects, std::string resource_version);
  // A change to an object at this informer's place. To subscribers, an object that is no longer
  // selected is deleted.
  void apply(const Change& change);
  // Nothing else has changed up to that version.
  void advance(std::string_view resource_version);
  // `bytes` more are held for a list that is being read, or a change that waits. False when they
  // are not allowed: then is_over().
  [[nodiscard]] bool may_hold(std::uint64_t bytes);
  // The server no longer serves the resource.
  void lose();
  void set_error(std::optional<Error> error);

 private:
  void choose_allowance();
  void give_up(const Error& error);
  void deliver(const auto& calls);
  void tell(Delta delta);
  void tell_progress(bool is_list);
  void for_each_alive(const auto& call);
  void for_each_synced(const auto& call);
  void replay(const std::shared_ptr<Subscriber>& subscriber);
  void notify_all();

  io::Loop& loop_;
  const Scope scope_;
  const Selection selection_;
  const Owner owner_;
  Store store_;
  std::string resource_version_;                          // The version of store_.
  std::vector<std::shared_ptr<Subscriber>> subscribers_;  // Dead ones too, while delivering.
  int delivering_depth_ = 0;
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
