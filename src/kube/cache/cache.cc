#include "kube/cache/cache.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/watch/watch_event.h"
#include "kube/watch/watch_machine.h"
#include "kube/watch/watcher.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

struct Cache::State {
  io::Loop& loop;
  const Client& client;
  Metrics& metrics;
  Log log;
  ServerTraits traits = {};
  std::map<Scope, std::shared_ptr<Reflector>> reflectors = {};
  bool is_stopped = false;
};

// One who looks on. Shared by its Subscription, its Reflector, and calls that are in progress, so
// that any of them may end first.
struct Cache::Subscriber {
  Subscriber(io::Loop& loop, Handlers handlers_in, std::string namespace_in)
      : handlers(std::move(handlers_in)), namespace_(std::move(namespace_in)), changed(loop) {}

  [[nodiscard]] bool sees(const Object& object) const {
    return namespace_.empty() || object.key().namespace_ == namespace_;
  }

  const Handlers handlers;
  const std::string namespace_;  // Empty: everything that the reflector has.
  std::shared_ptr<Reflector> reflector;
  bool is_alive = true;
  bool is_synced = false;  // It has been given the whole list.
  io::Event changed;       // is_alive, is_synced, or the reflector's error.
};

// One scope: its watch, its store, and who looks on.
class Cache::Reflector final : public Watcher::Sink,
                               public std::enable_shared_from_this<Reflector> {
 public:
  Reflector(std::shared_ptr<State> state, const Scope& scope)
      : state_(std::move(state)),
        scope_(scope),
        watcher_(state_->loop, state_->client, scope, state_->traits, *this),
        objects_(state_->metrics.gauge("hangar_cache_objects", "Objects held in watch caches.",
                                       labels())),
        bytes_(state_->metrics.gauge("hangar_cache_bytes", "Heap bytes of the objects in caches.",
                                     labels())),
        relists_(state_->metrics.counter(
            "hangar_cache_relists_total",
            "Whole lists after the first one, because a watch could not be resumed.", labels())),
        watches_(state_->metrics.gauge("hangar_cache_watches", "Watches that are kept open.")) {}

  void start() {
    watches_.add(1);
    state_->loop.spawn(run(shared_from_this()));
  }

  void stop() {
    if (stop_.stop_requested()) return;
    linger_.cancel();
    state_->reflectors.erase(scope_);
    watches_.add(-1);
    objects_.add(-static_cast<double>(counted_objects_));
    bytes_.add(-static_cast<double>(counted_bytes_));
    stop_.request_stop();
    notify_all();
  }
  [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }

  void kick() { watcher_.kick(); }

  void add(const std::shared_ptr<Subscriber>& subscriber) {
    linger_.cancel();
    subscribers_.push_back(subscriber);
    if (!is_complete_) return;  // on_replace() will find it.
    state_->loop.post([self = shared_from_this(), subscriber] {
      if (self->is_complete_ && !self->is_stopped()) {
        self->deliver([&] { self->replay(subscriber); });
      }
    });
  }

  // The subscriber is not alive any more.
  void remove_dead() {
    if (delivering_depth_ > 0) return;  // deliver() does it, when nobody iterates.
    std::erase_if(subscribers_, [](const auto& subscriber) { return !subscriber->is_alive; });
    if (!subscribers_.empty() || is_stopped()) return;
    linger_ = state_->loop.after(limits::kCacheLinger, [this] {
      const auto keep = shared_from_this();
      stop();
    });
  }

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }
  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // The list is whole and the watch works.
  [[nodiscard]] bool is_healthy() const { return is_complete_ && !error_; }
  // An error that waiting will not mend.
  [[nodiscard]] bool is_error_final() const {
    return is_gone_ || (error_ && error_->kind() == ErrorKind::Denied);
  }

 private:
  static io::Task<void> run(std::shared_ptr<Reflector> self) {
    co_await self->watcher_.run(self->stop_.get_token());
  }

  [[nodiscard]] MetricLabels labels() const {
    return {{"group", scope_.resource.group}, {"resource", scope_.resource.plural}};
  }

  void on_replace(std::vector<ObjectPtr> objects, std::string resource_version) override {
    if (is_stopped()) return;
    resource_version_ = std::move(resource_version);
    relists_.add(static_cast<double>(watcher_.relist_count() - counted_relists_));
    counted_relists_ = watcher_.relist_count();
    // Who comes during the callbacks below gets its turn by add().
    const std::vector<std::shared_ptr<Subscriber>> present = subscribers_;
    deliver([&] {
      store_.replace(std::move(objects), [this](Delta delta) {
        delta.is_from_list = true;
        tell(delta);
      });
      is_complete_ = true;
      is_gone_ = false;
      tell_progress(/*is_list=*/true);
      for (const auto& subscriber : present)
        replay(subscriber);
    });
  }

  void on_change(Change change) override {
    if (is_stopped()) return;
    if (!change.object->resource_version().empty()) {
      resource_version_ = change.object->resource_version();
    }
    deliver([&] { store_.apply(change, [this](const Delta& delta) { tell(delta); }); });
  }

  void on_bookmark(std::string resource_version) override {
    if (is_stopped()) return;
    resource_version_ = std::move(resource_version);
    deliver([this] { tell_progress(/*is_list=*/false); });
  }

  void on_gone() override {
    if (is_stopped() || is_gone_) return;
    is_gone_ = true;
    // Who comes now waits for the resource to be back, or learns that it is gone.
    is_complete_ = false;
    state_->log.warning("resource is gone",
                        {{"resource", scope_.resource.plural}, {"group", scope_.resource.group}});
    deliver([&] {
      store_.replace({}, [this](Delta delta) {
        delta.is_from_list = true;
        tell(delta);
      });
      for_each_synced([](const Handlers& handlers) {
        if (handlers.on_gone) handlers.on_gone();
      });
    });
    notify_all();
  }

  void on_health(std::optional<Error> error) override {
    if (is_stopped() || (!error && !error_)) return;
    const bool is_news = !error || !error_ || error->message() != error_->message();
    if (is_news && error) {
      state_->log.warning("watch failed", {{"resource", scope_.resource.plural},
                                           {"group", scope_.resource.group},
                                           {"namespace", scope_.namespace_},
                                           {"error", error->message()}});
    } else if (is_news) {
      state_->log.info("watch works again", {{"resource", scope_.resource.plural},
                                             {"group", scope_.resource.group},
                                             {"namespace", scope_.namespace_}});
    }
    error_ = std::move(error);
    notify_all();
    if (!error_) return;
    deliver([this, failed = *error_] {
      for (std::size_t position = 0; position < subscribers_.size(); ++position) {
        const std::shared_ptr<Subscriber> subscriber = subscribers_[position];
        if (!subscriber->is_alive || !subscriber->handlers.on_failed || is_stopped()) continue;
        subscriber->handlers.on_failed(failed);
      }
    });
  }

  void notify_all() {
    for (const auto& subscriber : subscribers_)
      subscriber->changed.notify_all();
  }

  // Runs what calls subscribers: they may leave, come and stop the cache meanwhile.
  void deliver(const auto& calls) {
    const auto keep = shared_from_this();
    ++delivering_depth_;
    calls();
    --delivering_depth_;
    count();
    if (std::ranges::any_of(subscribers_, [](const auto& one) { return !one->is_alive; })) {
      remove_dead();
    }
  }

  void tell(const Delta& delta) {
    // By index: who subscribes from within is appended, and is not synced.
    for (std::size_t position = 0; position < subscribers_.size(); ++position) {
      const std::shared_ptr<Subscriber> subscriber = subscribers_[position];
      if (!subscriber->is_alive || !subscriber->is_synced || is_stopped()) continue;
      if (!subscriber->sees(*delta.object) || !subscriber->handlers.on_delta) continue;
      subscriber->handlers.on_delta(delta);
    }
  }

  void for_each_synced(const auto& call) {
    for (std::size_t position = 0; position < subscribers_.size(); ++position) {
      const std::shared_ptr<Subscriber> subscriber = subscribers_[position];
      if (subscriber->is_alive && subscriber->is_synced && !is_stopped())
        call(subscriber->handlers);
    }
  }

  void tell_progress(bool is_list) {
    for_each_synced([&](const Handlers& handlers) {
      if (handlers.on_progress) handlers.on_progress(resource_version_, is_list);
    });
  }

  void replay(const std::shared_ptr<Subscriber>& subscriber) {
    if (subscriber->is_synced || !subscriber->is_alive) return;
    if (subscriber->handlers.on_delta) {
      for (ObjectPtr& object : store_.list(subscriber->namespace_)) {
        if (!subscriber->is_alive || is_stopped()) return;
        subscriber->handlers.on_delta({.type = Delta::Type::Added, .object = std::move(object)});
      }
    }
    if (!subscriber->is_alive || is_stopped()) return;
    subscriber->is_synced = true;
    subscriber->changed.notify_all();
    if (subscriber->handlers.on_synced) subscriber->handlers.on_synced();
  }

  void count() {
    if (is_stopped()) return;  // stop() has taken out what was counted.
    objects_.add(static_cast<double>(store_.object_count()) -
                 static_cast<double>(counted_objects_));
    bytes_.add(static_cast<double>(store_.size_bytes()) - static_cast<double>(counted_bytes_));
    counted_objects_ = store_.object_count();
    counted_bytes_ = store_.size_bytes();
  }

  const std::shared_ptr<State> state_;
  const Scope scope_;
  Watcher watcher_;
  Store store_;
  std::vector<std::shared_ptr<Subscriber>> subscribers_;  // With dead ones while delivering.
  int delivering_depth_ = 0;
  std::string resource_version_;  // Of store_.
  bool is_complete_ = false;      // store_ is a whole list.
  bool is_gone_ = false;
  std::optional<Error> error_;
  std::stop_source stop_;
  io::Loop::Timer linger_;

  Gauge& objects_;
  Gauge& bytes_;
  Counter& relists_;
  Gauge& watches_;
  // This scope's share of the above.
  std::size_t counted_objects_ = 0;
  std::size_t counted_bytes_ = 0;
  std::uint64_t counted_relists_ = 0;
};

class Cache::Ticket final : public Subscription {
 public:
  explicit Ticket(std::shared_ptr<Subscriber> subscriber) : subscriber_(std::move(subscriber)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  ~Ticket() override {
    subscriber_->is_alive = false;
    subscriber_->changed.notify_all();
    if (subscriber_->reflector) subscriber_->reflector->remove_dead();
  }

  [[nodiscard]] bool is_synced() const override { return subscriber_->is_synced; }

  [[nodiscard]] ObjectPtr get(const ObjectKey& key) const override {
    if (!is_synced()) return nullptr;
    ObjectPtr object = subscriber_->reflector->store().get(key);
    return object && subscriber_->sees(*object) ? object : nullptr;
  }

  [[nodiscard]] std::vector<ObjectPtr> list(std::string_view namespace_) const override {
    if (!is_synced()) return {};
    const std::string& only = subscriber_->namespace_;
    if (!only.empty() && !namespace_.empty() && namespace_ != only) return {};
    return subscriber_->reflector->store().list(only.empty() ? namespace_ : only);
  }

  [[nodiscard]] std::vector<ObjectPtr> owned_by(std::string_view uid) const override {
    if (!is_synced()) return {};
    return seen(subscriber_->reflector->store().owned_by(uid));
  }

  [[nodiscard]] std::vector<ObjectPtr> labelled(std::string_view key,
                                                std::string_view value) const override {
    if (!is_synced()) return {};
    return seen(subscriber_->reflector->store().labelled(key, value));
  }

  [[nodiscard]] std::string_view resource_version() const override {
    return is_synced() ? subscriber_->reflector->resource_version() : std::string_view();
  }

  [[nodiscard]] io::Task<Result<>> wait_synced(std::stop_token stop) override {
    return wait(subscriber_, std::move(stop));
  }

  [[nodiscard]] std::optional<Error> last_error() const override {
    return subscriber_->reflector ? subscriber_->reflector->error() : std::nullopt;
  }

 private:
  // Of the subscriber, not of this: who waits may let go of the subscription.
  static io::Task<Result<>> wait(std::shared_ptr<Subscriber> subscriber, std::stop_token stop) {
    while (true) {
      if (subscriber->is_synced) co_return Result<>();
      const bool can_sync =
          subscriber->is_alive && subscriber->reflector && !subscriber->reflector->is_stopped();
      if (!can_sync) co_return fail(ErrorKind::Cancelled, "watch has ended");
      const Reflector& reflector = *subscriber->reflector;
      if (reflector.is_error_final() && reflector.error()) {
        co_return std::unexpected(*reflector.error());
      }
      HANGAR_CO_TRY(co_await subscriber->changed.wait(stop));
    }
  }

  [[nodiscard]] std::vector<ObjectPtr> seen(std::vector<ObjectPtr> objects) const {
    std::erase_if(objects, [this](const ObjectPtr& object) { return !subscriber_->sees(*object); });
    return objects;
  }

  const std::shared_ptr<Subscriber> subscriber_;
};

Cache::Cache(io::Loop& loop, const Client& client, Metrics& metrics, Log log)
    : state_(std::make_shared<State>(loop, client, metrics, std::move(log))) {}

Cache::~Cache() {
  stop();
}

std::unique_ptr<Cache::Subscription> Cache::subscribe(Scope scope, Handlers handlers) {
  std::string narrowed_to;
  Scope wider = scope;
  wider.namespace_.clear();
  const auto all = state_->reflectors.find(wider);
  if (all != state_->reflectors.end() && all->second->is_healthy()) {
    narrowed_to = std::exchange(scope.namespace_, std::string());
  }
  auto subscriber =
      std::make_shared<Subscriber>(state_->loop, std::move(handlers), std::move(narrowed_to));
  if (state_->is_stopped) return std::make_unique<Ticket>(std::move(subscriber));

  std::shared_ptr<Reflector>& reflector = state_->reflectors[scope];
  const bool is_first = reflector == nullptr;
  if (is_first) reflector = std::make_shared<Reflector>(state_, scope);
  const auto keep = reflector;  // What starts may change the map.
  subscriber->reflector = keep;
  keep->add(subscriber);
  if (is_first) keep->start();
  return std::make_unique<Ticket>(std::move(subscriber));
}

void Cache::kick(std::string_view group) {
  for (const auto& [scope, reflector] : state_->reflectors)
    if (scope.resource.group == group) reflector->kick();
}

void Cache::stop() {
  state_->is_stopped = true;
  while (!state_->reflectors.empty()) {
    const auto reflector = state_->reflectors.begin()->second;
    reflector->stop();  // Takes itself out.
  }
}

Cache::Statistics Cache::statistics() const {
  Statistics sum;
  for (const auto& [scope, reflector] : state_->reflectors) {
    ++sum.watches;
    sum.objects += reflector->store().object_count();
    sum.bytes += reflector->store().size_bytes();
  }
  return sum;
}

}  // namespace hangar::kube
