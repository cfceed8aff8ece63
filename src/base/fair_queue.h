// The order in which waiting work is served: fair between tenants, then between the consumers of
// each. No I/O. It is the only fair queue in hangar: budget::FairSlots queues coroutines in it,
// budget::ReservationQueue the waiters for memory, io::Workers the jobs of its threads.
//
// The discipline is start-time fair queueing on two levels, which is deficit round robin with
// virtual time for rounds. Each tenant, and each consumer within its tenant, has a tag that
// advances by the cost of the work that was served; the lowest tag is served next. It was chosen
// for two properties:
//   - A cost may become known after the service, like the processor time of a guest's turn.
//   - A tenant that starts to wait is served next, and not after a round of all others.
#pragma once

#include "base/assert.h"
#include "base/consumer.h"
#include "base/internal/fair_level.h"
#include "base/result.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hangar {

// Properties of a piece of work, known before it is done.
struct Demand {
  std::uint64_t cost = 1;  // In any unit, the same for the whole queue.
  std::uint32_t rank = 0;  // Lower ones first, among items of one tenant.
};

// Guarantees:
//   - Tenants that always have waiting items are served the same cost, up to one item each.
//   - So are the consumers of one tenant, among items of the same rank.
//   - The host's own items come before all others.
//   - Nothing is remembered about any tenant while no item waits and none is being done.
// One thread, or under the caller's lock.
template <class Item>
class FairQueue {
 public:
  struct Options {
    std::size_t waiting_per_consumer_max = std::numeric_limits<std::size_t>::max();
    std::size_t waiting_per_tenant_max = std::numeric_limits<std::size_t>::max();
  };
  // Identifies an item while it waits.
  struct Ticket {
    std::uint32_t rank = 0;
    std::uint64_t number = 0;  // Ascending.

    auto operator<=>(const Ticket&) const = default;
  };
  struct Taken {
    Consumer consumer;
    Item item;
  };

  FairQueue() = default;
  explicit FairQueue(Options options) : options_(options) {}

  // LimitExceeded when the queue is full.
  [[nodiscard]] Result<Ticket> push(const Consumer& consumer, Item item, Demand demand = {}) {
    if (waiting_count(consumer.tenant) >= options_.waiting_per_tenant_max) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("{} of namespace {} wait already, which is the limit",
                              options_.waiting_per_tenant_max, consumer.tenant.label()));
    }
    if (waiting_count(consumer) >= options_.waiting_per_consumer_max) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("{} of {} wait already, which is the limit",
                              options_.waiting_per_consumer_max, consumer.name));
    }
    Ticket ticket{.rank = demand.rank, .number = ++last_number_};
    Backlog& backlog = tenants_[consumer.tenant];
    Items& items = backlog.consumers[consumer.name];
    items.emplace(ticket, Waiting{.item = std::move(item), .cost = demand.cost});
    backlog.consumers.wait(consumer.name, items.begin()->first.rank);
    tenants_.wait(consumer.tenant, rank_of(consumer.tenant));
    ++backlog.size;
    ++size_;
    return ticket;
  }

  // Takes the next item: of the tenants for which `may_tenant(tenant)` is true, the first item for
  // which `may_item(consumer, item)` is. Looks at the first item of each consumer only. Call done()
  // for it afterwards.
  template <class MayTenant, class MayItem>
  [[nodiscard]] std::optional<Taken> pop(MayTenant may_tenant, MayItem may_item) {
    return take(tenants_.template find_next<Consumer>(
        [&](const Tenant& tenant, const Backlog& backlog) -> std::optional<Consumer> {
          if (!may_tenant(tenant)) return std::nullopt;
          return find_in(tenant, backlog, may_item);
        }));
  }
  template <class MayTenant>
  [[nodiscard]] std::optional<Taken> pop(MayTenant may_tenant) {
    return pop(may_tenant, [](const Consumer& /*any*/, const Item& /*any*/) { return true; });
  }
  [[nodiscard]] std::optional<Taken> pop() {
    return pop([](const Tenant& /*any*/) { return true; });
  }
  // The same for one tenant, although it may be another tenant's turn.
  template <class MayItem>
  [[nodiscard]] std::optional<Taken> pop_of(const Tenant& tenant, MayItem may_item) {
    const Backlog* const backlog = std::as_const(tenants_).find(tenant);
    return backlog == nullptr ? std::nullopt : take(find_in(tenant, *backlog, may_item));
  }

  // Call it once for each taken item. `more_cost`: the cost beyond the expected one.
  void done(const Consumer& consumer, std::uint64_t more_cost = 0) {
    HANGAR_ASSERT(under_way_ > 0, "what was taken is done once");
    charge(consumer, more_cost);
    --under_way_;
    forget_all_if_idle();
  }
  // Adds cost of work that is still running.
  void charge(const Consumer& consumer, std::uint64_t cost) {
    if (cost == 0) return;
    tenants_.charge(consumer.tenant, cost);
    tenants_[consumer.tenant].consumers.charge(consumer.name, cost);
  }

  // True when another tenant waits that was served less cost than this one, and for which
  // `may_tenant(tenant)` is true: where work can be interrupted, it is that tenant's turn.
  template <class MayTenant>
  [[nodiscard]] bool is_ahead(const Tenant& tenant, MayTenant may_tenant) const {
    return tenants_.is_ahead(tenant, may_tenant);
  }

  // std::nullopt when the item no longer waits.
  std::optional<Item> remove(const Consumer& consumer, Ticket ticket) {
    const Items* const items = items_of(consumer);
    if (items == nullptr || !items->contains(ticket)) return std::nullopt;
    Item item = extract(consumer, ticket).item;
    forget_all_if_idle();
    return item;
  }

  [[nodiscard]] bool is_empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t waiting_count(const Tenant& tenant) const {
    const Backlog* const backlog = tenants_.find(tenant);
    return backlog == nullptr ? 0 : backlog->size;
  }
  [[nodiscard]] std::size_t waiting_count(const Consumer& consumer) const {
    const Items* const items = items_of(consumer);
    return items == nullptr ? 0 : items->size();
  }
  // Tenants that wait, and those that have used more than their share.
  [[nodiscard]] std::size_t tenant_count() const { return tenants_.size(); }

 private:
  struct Waiting {
    Item item;
    std::uint64_t cost = 0;
  };
  using Items = std::map<Ticket, Waiting>;
  struct Backlog {
    internal::FairLevel<std::string, Items> consumers;
    std::size_t size = 0;
  };

  static std::uint32_t rank_of(const Tenant& tenant) { return tenant.is_host() ? 0 : 1; }

  [[nodiscard]] const Items* items_of(const Consumer& consumer) const {
    const Backlog* const backlog = tenants_.find(consumer.tenant);
    return backlog == nullptr ? nullptr : backlog->consumers.find(consumer.name);
  }

  template <class MayItem>
  [[nodiscard]] static std::optional<Consumer> find_in(const Tenant& tenant, const Backlog& backlog,
                                                       MayItem& may_item) {
    return backlog.consumers.template find_next<Consumer>(
        [&](const std::string& name, const Items& items) -> std::optional<Consumer> {
          Consumer consumer{.tenant = tenant, .name = name};
          if (!may_item(std::as_const(consumer), items.begin()->second.item)) return std::nullopt;
          return consumer;
        });
  }

  [[nodiscard]] std::optional<Taken> take(std::optional<Consumer> next) {
    if (!next) return std::nullopt;
    const auto& [ticket, waiting] = *items_of(*next)->begin();
    tenants_.find(next->tenant)->consumers.serve(next->name, waiting.cost);
    tenants_.serve(next->tenant, waiting.cost);
    Item item = extract(*next, Ticket(ticket)).item;
    ++under_way_;
    return Taken{.consumer = *std::move(next), .item = std::move(item)};
  }

  [[nodiscard]] Waiting extract(const Consumer& consumer, Ticket ticket) {
    Backlog& backlog = *tenants_.find(consumer.tenant);
    Items& items = *backlog.consumers.find(consumer.name);
    Waiting waiting = std::move(items.extract(ticket).mapped());
    if (items.empty()) {
      backlog.consumers.rest(consumer.name);
    } else {
      backlog.consumers.wait(consumer.name, items.begin()->first.rank);
    }
    --size_;
    if (--backlog.size == 0) tenants_.rest(consumer.tenant);
    return waiting;
  }

  // Use of an idle resource is not counted against a tenant.
  void forget_all_if_idle() {
    if (size_ == 0 && under_way_ == 0) tenants_ = {};
  }

  Options options_;
  internal::FairLevel<Tenant, Backlog> tenants_;
  std::size_t size_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace hangar
