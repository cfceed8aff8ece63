#include "kube/cache/cache.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/informer.h"
#include "kube/cache/kind_cache.h"
#include "kube/cache/ration.h"
#include "kube/cache/reflector.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

struct Cache::State {
  std::shared_ptr<Reflector::Platform> platform;
  Options options;
  std::map<Resource, std::shared_ptr<KindCache>> kinds = {};
  bool is_stopped = false;
};

class Cache::Ticket final : public Subscription {
 public:
  explicit Ticket(std::shared_ptr<Subscriber> subscriber) : subscriber_(std::move(subscriber)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  ~Ticket() override {
    subscriber_->is_alive = false;
    subscriber_->changed.notify_all();
    if (subscriber_->informer) subscriber_->informer->remove_dead();
  }

  [[nodiscard]] bool is_synced() const override { return subscriber_->is_synced; }

  [[nodiscard]] ObjectPtr get(const ObjectKey& key) const override {
    return is_synced() ? store().get(key) : nullptr;
  }
  [[nodiscard]] std::vector<ObjectPtr> list(std::string_view namespace_) const override {
    return is_synced() ? store().list(namespace_) : std::vector<ObjectPtr>();
  }
  [[nodiscard]] std::vector<ObjectPtr> owned_by(std::string_view uid) const override {
    return is_synced() ? store().owned_by(uid) : std::vector<ObjectPtr>();
  }
  [[nodiscard]] std::string_view resource_version() const override {
    return is_synced() ? subscriber_->informer->resource_version() : std::string_view();
  }

  [[nodiscard]] io::Task<Result<>> wait_synced(std::stop_token stop) override {
    return wait(subscriber_, std::move(stop));
  }

  [[nodiscard]] std::optional<Error> last_error() const override {
    return subscriber_->informer ? subscriber_->informer->error() : std::nullopt;
  }

 private:
  // Static, on the subscriber: the waiting task may destroy the subscription.
  static io::Task<Result<>> wait(std::shared_ptr<Subscriber> subscriber, std::stop_token stop) {
    while (true) {
      if (subscriber->is_synced) co_return Result<>();
      const bool can_sync =
          subscriber->is_alive && subscriber->informer && !subscriber->informer->is_stopped();
      if (!can_sync) co_return fail(ErrorKind::Cancelled, "watch has ended");
      const Informer& informer = *subscriber->informer;
      if (informer.is_error_final() && informer.error()) {
        co_return std::unexpected(*informer.error());
      }
      HANGAR_CO_TRY(co_await subscriber->changed.wait(stop));
    }
  }

  [[nodiscard]] Store& store() const { return subscriber_->informer->store(); }

  const std::shared_ptr<Subscriber> subscriber_;
};

Cache::Cache(io::Loop& loop, const Client& client, Metrics& metrics, Log log, Options options)
    : state_(std::make_shared<State>(
          std::make_shared<Reflector::Platform>(loop, client, metrics, std::move(log)), options)) {}

Cache::~Cache() {
  stop();
}

std::unique_ptr<Cache::Subscription> Cache::subscribe(Scope scope, Handlers handlers,
                                                      std::shared_ptr<Allowance> allowance) {
  auto subscriber = std::make_shared<Subscriber>(state_->platform->loop, std::move(handlers),
                                                 std::move(allowance));
  if (state_->is_stopped) return std::make_unique<Ticket>(std::move(subscriber));

  std::shared_ptr<KindCache>& kind = state_->kinds[scope.resource];
  if (kind == nullptr) {
    kind = std::make_shared<KindCache>(
        state_->platform, scope.resource, state_->options,
        [state = state_.get(), resource = scope.resource] { state->kinds.erase(resource); });
  }
  const auto keep = kind;  // Callbacks may change the map.
  keep->subscribe(scope, subscriber);
  return std::make_unique<Ticket>(std::move(subscriber));
}

void Cache::kick(std::string_view group) {
  const auto kinds = state_->kinds;
  for (const auto& [resource, kind] : kinds)
    if (resource.group == group) kind->kick();
}

void Cache::stop() {
  state_->is_stopped = true;
  for (const auto& [resource, kind] : std::exchange(state_->kinds, {}))
    kind->stop();
}

const Ration* Cache::ration() const {
  return state_->options.ration.get();
}

Cache::Statistics Cache::statistics() const {
  Statistics sum;
  for (const auto& [resource, kind] : state_->kinds) {
    const Statistics of_kind = kind->statistics();
    sum.watches += of_kind.watches;
    sum.objects += of_kind.objects;
    sum.bytes += of_kind.bytes;
  }
  return sum;
}

}  // namespace hangar::kube
