// What the cluster looks like now: at most two watches of a resource for the whole process, however
// many look at however many parts of it (watch_plan.h), as far as the host may watch the wider
// part.
//
// A scope is watched from its first Subscription to its last; objects are shared and immutable, and
// what nobody looks at is not kept. A subscriber sees either nothing or a complete list:
// `on_synced` comes after the first whole list, then deltas. Between a subscriber's callbacks get()
// answers with the state as of the delta that is being delivered. Loop thread only.
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
#include "kube/scope.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

class Cache {
 public:
  struct Options {
    // How long a scope goes on without a subscriber, so that one who leaves and comes back (an
    // Airway that is replaced, a lookup that is repeated) costs no new list.
    Duration linger = std::chrono::seconds(30);
    // How long a wide watch goes on after narrower ones would do: what is looked at comes and goes.
    Duration narrow_after = std::chrono::minutes(5);
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
    // For who keeps a history; after on_synced. All deltas up to `resource_version` have been told.
    // `is_list`: they came from comparing whole lists (Delta::is_from_list).
    std::function<void(std::string_view resource_version, bool is_list)> on_progress = {};
    // The last request failed (it will be repeated), also before on_synced.
    std::function<void(const Error& error)> on_failed = {};
    // The server does not serve the resource any more. Its objects have been told as Deleted.
    std::function<void()> on_gone = {};
  };

  // Keeps the watch alive; destroying it ends the callbacks at once, also from within one.
  class Subscription {
   public:
    virtual ~Subscription() = default;
    [[nodiscard]] virtual bool is_synced() const = 0;
    // Null when there is none, or when not synced.
    [[nodiscard]] virtual ObjectPtr get(const ObjectKey& key) const = 0;
    // Every object of the scope, or those of one namespace, by key.
    [[nodiscard]] virtual std::vector<ObjectPtr> list(std::string_view namespace_ = {}) const = 0;
    [[nodiscard]] virtual std::vector<ObjectPtr> owned_by(std::string_view uid) const = 0;
    [[nodiscard]] virtual std::vector<ObjectPtr> labelled(std::string_view key,
                                                          std::string_view value) const = 0;
    // As of which version the above answer; empty when not synced.
    [[nodiscard]] virtual std::string_view resource_version() const = 0;
    // Until the first complete list; Cancelled, or the list's error when it is final (Denied,
    // NotFound because the CRD is gone) although the watch keeps trying.
    [[nodiscard]] virtual io::Task<Result<>> wait_synced(std::stop_token stop) = 0;
    // Why the last list or watch failed, while it does.
    [[nodiscard]] virtual std::optional<Error> last_error() const = 0;
  };
  // A late subscriber gets an Added for everything that is known, then on_synced, in a later turn
  // of the loop.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(Scope scope, Handlers handlers);

  // A CRD of `group` appeared or changed: what failed for it is tried again at once.
  void kick(std::string_view group);

  // Ends all watches; subscriptions stay but hear nothing any more.
  void stop();

  struct Statistics {
    std::size_t watches = 0;
    std::size_t objects = 0;  // Each once, however many scopes it is in.
    std::size_t bytes = 0;
  };
  [[nodiscard]] Statistics statistics() const;

 private:
  class Ticket;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::kube
