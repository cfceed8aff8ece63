// All feeds: at most one for each scope, from its first use until it has been unused for a while.
//
// A feed holds all objects that it covers and is opened with the host's rights. So it is no wider
// than the place that an identity is authorised for, and only as wide as its selectors while few
// selectors are in use there. A feed for guests that want bare metadata holds only that; where a
// feed of whole objects exists, it serves them as well. The cache plans how many upstream watches
// serve all feeds.
//
// The number of feeds that one tenant pays for is bounded, failed ones included, and more tightly
// where all tenants together have very many (fair_bound()); beyond it, each watch of the tenant
// goes upstream by itself. The bytes of a tenant's feeds are bounded too: a feed that would exceed
// them fails while its objects are being read. It has failed for that tenant only: the next tenant
// that wants it opens it anew, on its own account. A feed that is ready changes its payer before it
// fails (Feed::payer()). The processor time that changes take is charged to the tenants that watch.
//
// A feed reads its objects in a slot that is fair between tenants: the first that any of the
// tenants gets that wait for it.
#pragma once

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/beneficiaries.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "gateway/feed.h"
#include "gateway/limits.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/tenant_bounds.h"
#include "gateway/view.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstddef>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

// Feeds of one tenant that failed recently: the resource is gone, or the host may not watch it.
inline constexpr std::size_t kFailedFeedsPerTenantMax = 8;

// Feeds with different selectors in one place. Each selector is evaluated for each change there; a
// watch with yet another selector is served from a feed of the whole place.
inline constexpr std::size_t kSelectingFeedsPerPlaceMax = 4;

// Concurrent first reads of feeds: of one tenant, and of all tenants. While a page of objects is
// read, it is in memory twice, in addition to the objects that the feed already holds.
inline constexpr std::size_t kFeedStartsPerTenantMax = 2;
inline constexpr std::size_t kFeedStartsMax = 8;

class Feeds {
 public:
  // `rates` outlives the feeds; null: nothing is charged.
  Feeds(io::Loop& loop, kube::Cache& cache, OwnWrites& own_writes, Metrics& metrics,
        std::shared_ptr<budget::Accounts> memory, budget::Rates* rates = nullptr);
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;
  ~Feeds() { stop_.request_stop(); }

  // Opens or finds a feed of `resource` that covers `scope`, for `tenant`. `scope` fits
  // `resource`. Errors: that of the feed's first request (Denied, NotFound, Unavailable, ...),
  // LimitExceeded (with the reason kTooLargeToWatch, about this tenant; or because of too many
  // feeds), Cancelled.
  [[nodiscard]] io::Task<Result<std::shared_ptr<Feed>>> open(kube::Resource resource,
                                                             const ReadScope& scope,
                                                             std::string tenant,
                                                             std::stop_token stop);
  void limit_tenants(BoundsOf bounds) { bounds_ = std::move(bounds); }
  // Feeds that this tenant pays for, failed ones included.
  [[nodiscard]] std::size_t count(const std::string& tenant) const { return count_of(tenant).all; }

  // A feed that covers the scope and is ready; null when there is none.
  [[nodiscard]] std::shared_ptr<Feed> find(const ReadScope& scope);

  [[nodiscard]] std::vector<std::shared_ptr<Feed>> all() const;
  [[nodiscard]] bool empty() const { return feeds_.empty() && too_large_.empty(); }
  // Drops feeds that have been unused for a while, or that a wider feed covers.
  void sweep();
  void clear() {
    stop_.request_stop();
    feeds_.clear();
    too_large_.clear();
  }

 private:
  struct Count {
    std::size_t all = 0;
    std::size_t failed = 0;
  };

  // The narrowest scope that deserves its own feed.
  [[nodiscard]] kube::Scope scope_for(const kube::Resource& resource, const View& view) const;
  // Whether a wider feed that is ready covers the scope.
  [[nodiscard]] bool is_covered(const kube::Scope& scope) const;
  // The feed of the scope, opened if there is none; null when the tenant has too many.
  [[nodiscard]] std::shared_ptr<Feed> at(const kube::Scope& scope, const std::string& tenant);
  [[nodiscard]] Count count_of(const std::string& tenant) const;
  [[nodiscard]] bool has_room(const std::string& tenant) const;
  // Whether a feed of this scope exists that serves, or will serve, watches of narrower ones too.
  [[nodiscard]] bool has_wide(const kube::Scope& wide) const;
  static io::Task<void> start(std::shared_ptr<budget::FairSlots> starts, std::shared_ptr<Feed> feed,
                              budget::Beneficiaries wanted_by, std::stop_token stop);
  [[nodiscard]] bool is_forgotten(const kube::Scope& scope, const Feed& feed, Instant now) const;

  io::Loop& loop_;
  const io::SharedSlice slice_{loop_, limits::kGatewaySliceChanges};
  kube::Cache& cache_;
  OwnWrites& own_writes_;
  Counter& shown_;
  Counter& refused_;
  BoundsOf bounds_;
  const std::shared_ptr<budget::Accounts> memory_;
  budget::Rates* const rates_;
  const std::shared_ptr<budget::FairSlots> starts_;
  std::stop_source stop_;
  struct Opened {
    std::shared_ptr<Feed> feed;
    budget::Beneficiaries wanted_by;  // Who has asked for it before it was ready.
  };
  std::map<kube::Scope, Opened> feeds_;
  // Feeds that were too large for a tenant, once another tenant has asked for the scope, or this
  // one again.
  std::map<std::pair<kube::Scope, budget::Tenant>, std::shared_ptr<Feed>> too_large_;
};

}  // namespace hangar::gateway
