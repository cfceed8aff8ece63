// The current state of the cluster. The process has at most two watches per resource, whatever the
// number of subscribers and scopes (watch_plan.h), as far as the host may watch the wider scope.
//
// A scope is watched from its first Subscription to its last. Objects are shared and immutable;
// objects outside every subscriber's scope are not kept. A subscriber sees either nothing or a
// complete list: `on_synced` comes after the first whole list, deltas follow. While a delta is
// delivered, get() answers with the state as of that delta.
//
// If a watch cannot be resumed, a new whole list replaces the previous state at once. Its deltas
// may be many, so they are delivered in slices; meanwhile get() already answers with the list's
// state. Later changes take effect after those deltas. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/packing.h"
#include "kube/scope.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

// The memory that the objects of one scope may take. The scope's informer holds the Allowance, and
// keeps it for some time after the last subscription has ended.
class Allowance {
 public:
  Allowance() = default;
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;
  virtual ~Allowance() = default;

  // Sets the memory of the objects to `bytes`. LimitExceeded when that is too much; then nothing
  // has changed. A decrease never fails.
  [[nodiscard]] virtual Result<> resize(std::uint64_t bytes) = 0;
};

class Ration;

class Cache {
 public:
  struct Options {
    // How long a scope without subscribers stays watched, so that a subscriber that comes back (an
    // Airway that is replaced, a lookup that is repeated) needs no new list.
    Duration linger = std::chrono::seconds(30);
    // How long a wide watch is kept after narrower ones would suffice: subscribers come and go.
    Duration narrow_after = std::chrono::minutes(5);
    // From which size on objects are kept packed.
    Packer::Bounds packing = {};
    // For scopes that are Keep::Rationed. Null: their objects are kept whole.
    std::shared_ptr<const Ration> ration = {};
  };
  Cache(io::Loop& loop, const Client& client, Metrics& metrics, Log log, Options options);
  Cache(io::Loop& loop, const Client& client, Metrics& metrics, Log log)
      : Cache(loop, client, metrics, std::move(log), Options()) {}
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache();

  struct Handlers {
    std::function<void(const Delta&)> on_delta = {};
    std::function<void()> on_synced = {};
    // Called after on_synced: a whole list has replaced the state, and resource_version() is that
    // of the list. Its deltas follow, then on_progress().
    std::function<void()> on_list = {};
    // For subscribers that keep a history; called after on_synced. All deltas up to
    // `resource_version` have been delivered. `is_list`: they come from comparing whole lists
    // (Delta::is_from_list).
    std::function<void(std::string_view resource_version, bool is_list)> on_progress = {};
    // The last request failed and will be retried. May be called before on_synced.
    std::function<void(const Error& error)> on_failed = {};
    // The server no longer serves the resource, so none of its objects exists. The known objects
    // are delivered as Deleted after this call.
    std::function<void()> on_gone = {};
  };

  // Keeps the watch alive. Its destructor stops the callbacks at once, and may be called from one.
  class Subscription {
   public:
    virtual ~Subscription() = default;
    [[nodiscard]] virtual bool is_synced() const = 0;
    // Null when there is no such object, or when not synced.
    [[nodiscard]] virtual ObjectPtr get(const ObjectKey& key) const = 0;
    // Every object of the scope, or of one namespace of it, in the order of their keys.
    [[nodiscard]] virtual std::vector<ObjectPtr> list(std::string_view namespace_ = {}) const = 0;
    [[nodiscard]] virtual std::vector<ObjectPtr> owned_by(std::string_view uid) const = 0;
    // The version whose state the queries above return; empty when not synced.
    [[nodiscard]] virtual std::string_view resource_version() const = 0;
    // Waits for the first complete list. Cancelled, or the list's error when it is final (Denied,
    // or NotFound because the CRD is gone), although the watch keeps trying.
    [[nodiscard]] virtual io::Task<Result<>> wait_synced(std::stop_token stop) = 0;
    // The error of the last list or watch, while it fails.
    [[nodiscard]] virtual std::optional<Error> last_error() const = 0;
  };
  // A late subscriber receives an Added for every known object, then on_synced, in later turns of
  // the loop.
  //
  // `allowance` bounds the memory of the scope's objects, including those of a list that is being
  // read, unless another subscriber of the scope has no allowance. Beyond the bound all objects are
  // dropped: on_failed receives the allowance's error, queries return nothing, and no further
  // callback follows.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      Scope scope, Handlers handlers, std::shared_ptr<Allowance> allowance = nullptr);

  // A CRD of `group` appeared or changed: the group's failed watches are tried again at once.
  void kick(std::string_view group);

  // Stops all watches; subscriptions remain but receive no more callbacks.
  void stop();

  // Null: none.
  [[nodiscard]] const Ration* ration() const;

  struct Statistics {
    std::size_t watches = 0;
    std::size_t objects = 0;  // Each object once, however many scopes contain it.
    std::size_t bytes = 0;
  };
  [[nodiscard]] Statistics statistics() const;

 private:
  class Ticket;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::kube
