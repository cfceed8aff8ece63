#include "gateway/feeds.h"

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "gateway/feed.h"
#include "gateway/feed_memory.h"
#include "gateway/limits.h"
#include "gateway/read_scope.h"
#include "gateway/view.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

namespace {

std::unexpected<Error> too_many() {
  return fail(ErrorKind::LimitExceeded, "the namespace has watches of too many resources");
}

bool is_too_large(const Feed& feed) {
  return feed.error() && feed.error()->reason() == kTooLargeToWatch;
}

// Whether it is too early to try a failed feed again.
bool is_settled(const Feed& feed, Instant now) {
  const Duration retry_after =
      is_too_large(feed) ? limits::kGatewayTooLargeRetry : limits::kGatewayRetry;
  return now - feed.unused_since().value_or(now) < retry_after;
}

}  // namespace

Feeds::Feeds(io::Loop& loop, kube::Cache& cache, OwnWrites& own_writes, Metrics& metrics,
             std::shared_ptr<budget::Accounts> memory, budget::Rates* rates)
    : loop_(loop),
      cache_(cache),
      own_writes_(own_writes),
      shown_(metrics.counter("hangar_gateway_events_total",
                             "Events of watches that were shown to guests.")),
      refused_(metrics.counter(
          "hangar_gateway_refused_total",
          "Watches, objects and reviews refused because of a bound of the guest's namespace.",
          {{"what", "feed"}})),
      memory_(std::move(memory)),
      rates_(rates),
      starts_(std::make_shared<budget::FairSlots>(
          loop, budget::FairSlots::Options{.slots = kFeedStartsMax,
                                           .slots_per_tenant_max = kFeedStartsPerTenantMax})) {}

io::Task<Result<std::shared_ptr<Feed>>> Feeds::open(kube::Resource resource, const ReadScope& scope,
                                                    std::string tenant, std::stop_token stop) {
  while (true) {
    std::shared_ptr<Feed> feed = at(scope_for(resource, scope.view()), tenant);
    if (!feed) co_return too_many();
    Result<> ready = co_await feed->wait_ready(stop);
    if (ready) co_return feed;
    // Another tenant had opened it, and has no room for it.
    const bool is_of_another =
        ready.error().reason() == kTooLargeToWatch && feed->payer().namespace_name() != tenant;
    if (!is_of_another || stop_.stop_requested())
      co_return std::unexpected(std::move(ready).error());
  }
}

std::shared_ptr<Feed> Feeds::find(const ReadScope& scope) {
  for (const auto& [key, opened] : feeds_) {
    if (!opened.feed->is_ready() || !opened.feed->covers(scope)) continue;
    opened.feed->touch();
    return opened.feed;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Feed>> Feeds::all() const {
  std::vector<std::shared_ptr<Feed>> out;
  for (const auto& [scope, opened] : feeds_)
    out.push_back(opened.feed);
  return out;
}

void Feeds::sweep() {
  const Instant now = io::Loop::now();
  std::erase_if(feeds_, [this, now](const auto& one) {
    return is_forgotten(one.first, *one.second.feed, now);
  });
  std::erase_if(too_large_, [now](const auto& one) { return !is_settled(*one.second, now); });
}

bool Feeds::is_forgotten(const kube::Scope& scope, const Feed& feed, Instant now) const {
  const auto unused_since = feed.unused_since();
  if (!unused_since) return false;
  if (feed.error()) return !is_settled(feed, now);
  // A covered feed goes at once: the next user gets the wider one.
  return now - *unused_since >= limits::kGatewayLinger || is_covered(scope);
}

bool Feeds::is_covered(const kube::Scope& scope) const {
  const auto is_ready = [this](const kube::Scope& wider) {
    const auto found = feeds_.find(wider);
    return found != feeds_.end() && found->second.feed->is_ready();
  };
  const kube::Scope all{.resource = scope.resource};
  const kube::Scope place{.resource = scope.resource, .namespace_ = scope.namespace_};
  for (kube::Scope wider : {all, place, scope}) {
    for (const kube::Detail detail : {kube::Detail::Whole, scope.detail}) {
      wider.detail = detail;
      if (wider != scope && is_ready(wider)) return true;
    }
  }
  return false;
}

kube::Scope Feeds::scope_for(const kube::Resource& resource, const View& view) const {
  kube::Scope place{.resource = resource, .detail = view.detail()};
  if (resource.namespaced) place.namespace_ = view.requested_namespace();
  kube::Scope narrow = place;
  narrow.label_selector = view.label_selector();
  narrow.field_selector = view.field_selector();
  for (kube::Scope wide : {place, narrow}) {
    wide.detail = kube::Detail::Whole;
    if (place.detail == kube::Detail::Metadata && has_wide(wide)) return wide;
  }
  // A feed of the whole place that exists, even one that is just starting, serves every selector:
  // many guests that start together then share one feed.
  if (narrow == place || has_wide(place) || is_covered(narrow)) return place;
  const auto narrow_count = std::ranges::count_if(feeds_, [&](const auto& one) {
    const kube::Scope& scope = one.first;
    const bool has_selectors = !scope.label_selector.empty() || !scope.field_selector.empty();
    return has_selectors && scope != narrow && scope.resource == place.resource &&
           scope.namespace_ == place.namespace_;
  });
  return std::cmp_less(narrow_count, kSelectingFeedsPerPlaceMax) ? narrow : place;
}

bool Feeds::has_wide(const kube::Scope& wide) const {
  const auto found = feeds_.find(wide);
  // Where all objects are too many, those of a selector, or their metadata, may not be.
  return found != feeds_.end() && !is_too_large(*found->second.feed);
}

io::Task<void> Feeds::start(std::shared_ptr<budget::FairSlots> starts, std::shared_ptr<Feed> feed,
                            budget::Beneficiaries wanted_by, std::stop_token stop) {
  std::optional<budget::FairSlots::Slot> slot;
  if (!wanted_by.first().tenant.is_host()) {
    auto given = co_await wanted_by.acquire(*starts, {}, stop);
    if (!given) co_return feed->refuse(given.error());
    slot.emplace(*std::move(given));
  }
  if (stop.stop_requested()) co_return;
  feed->start();
  (void)co_await feed->wait_ready(stop);
}

std::shared_ptr<Feed> Feeds::at(const kube::Scope& scope, const std::string& tenant) {
  budget::Consumer consumer{
      .tenant = tenant.empty() ? budget::Tenant::host() : budget::Tenant::of_namespace(tenant),
      .name = "feeds"};
  const auto known = feeds_.find(scope);
  if (known != feeds_.end()) {
    const std::shared_ptr<Feed> feed = known->second.feed;
    if (!feed->error()) {
      feed->touch();
      // While it waits for its slot, now in this tenant's queue, too.
      if (!feed->is_ready()) known->second.wanted_by.add(std::move(consumer));
      return feed;
    }
    if (is_too_large(*feed)) {
      // Others may have room for it.
      too_large_.insert_or_assign({scope, feed->payer()}, feed);
    } else if (feed->error()->kind() != ErrorKind::Unavailable &&
               is_settled(*feed, io::Loop::now())) {
      // The server would repeat a refusal; after Unavailable it may answer now.
      return feed;
    }
    feeds_.erase(known);
  }
  const auto refused = too_large_.find({scope, consumer.tenant});
  if (refused != too_large_.end()) {
    if (is_settled(*refused->second, io::Loop::now())) return refused->second;
    too_large_.erase(refused);
  }
  if (!has_room(tenant)) {
    refused_.add();
    return nullptr;
  }
  // The host's own feeds (hangar run) are not bounded: its user decides what it watches.
  std::shared_ptr<FeedMemory> memory;
  if (!tenant.empty()) {
    memory = std::make_shared<FeedMemory>(memory_, consumer, scope.resource.qualified_plural());
  }
  auto feed = std::make_shared<Feed>(loop_, slice_, cache_, own_writes_, scope, shown_,
                                     std::move(memory), rates_);
  const budget::Beneficiaries wanted_by(std::move(consumer));
  feeds_.emplace(scope, Opened{.feed = feed, .wanted_by = wanted_by});
  loop_.spawn(start(starts_, feed, wanted_by, stop_.get_token()));
  return feed;
}

Feeds::Count Feeds::count_of(const std::string& tenant) const {
  Count count;
  const auto add = [&](const Feed& feed) {
    if (feed.payer().namespace_name() != tenant) return;
    ++count.all;
    if (feed.error()) ++count.failed;
  };
  for (const auto& [scope, opened] : feeds_)
    add(*opened.feed);
  for (const auto& [scope, feed] : too_large_)
    add(*feed);
  return count;
}

bool Feeds::has_room(const std::string& tenant) const {
  if (tenant.empty()) return true;  // The host itself.
  const Count count = count_of(tenant);
  const std::size_t most =
      bounds_ ? std::min(bounds_(tenant).feeds, kFeedsPerTenantMax) : kFeedsPerTenantMax;
  // Failed feeds have their own, tighter bound: each has cost requests at the API server and serves
  // no watch.
  return count.all < fair_bound(most, feeds_.size()) && count.failed < kFailedFeedsPerTenantMax;
}

}  // namespace hangar::gateway
