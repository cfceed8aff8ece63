// The feeds there are: at most one a scope, from the first look until nobody has looked for a
// while.
//
// A feed holds all objects that it covers, and is opened with the host's rights: so it is no wider
// than somebody may see, and as narrow as the selectors of who looks while these are few. How many
// watches feed all of them is the cache's to plan. What one tenant has opened is bounded, what
// failed included; what goes beyond is not opened, and its watches are the tenant's own.
#pragma once

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/feed.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/tenant_bounds.h"
#include "gateway/view.h"
#include "io/loop.h"
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

// Of the feeds of a tenant, such that failed a moment ago: a resource that is gone, or that the
// host may not see.
inline constexpr std::size_t kFailedFeedsPerTenantMax = 8;

// Feeds of different selectors in one place. Each selector is looked at for each change there; who
// comes with another one takes a feed of the whole place.
inline constexpr std::size_t kSelectingFeedsPerPlaceMax = 4;

class Feeds {
 public:
  Feeds(io::Loop& loop, kube::Cache& cache, OwnWrites& own_writes, Metrics& metrics);

  // A feed that covers `scope`, of `resource` (which it fits), for `tenant`. Errors: of the first
  // request for it (Denied, NotFound, Unavailable, ...), LimitExceeded, Cancelled.
  [[nodiscard]] io::Task<Result<std::shared_ptr<Feed>>> open(kube::Resource resource,
                                                             const ReadScope& scope,
                                                             std::string tenant,
                                                             std::stop_token stop);
  void limit_tenants(BoundsOf bounds) { bounds_ = std::move(bounds); }
  // Those that this tenant looked at first.
  [[nodiscard]] std::size_t count(const std::string& tenant) const;

  // One that covers the scope and is ready; null otherwise.
  [[nodiscard]] std::shared_ptr<Feed> find(const ReadScope& scope);

  [[nodiscard]] std::vector<std::shared_ptr<Feed>> all() const;
  [[nodiscard]] bool empty() const { return feeds_.empty(); }
  // Lets go of those that nobody has used for a while, or that another one covers.
  void sweep();
  void clear() { feeds_.clear(); }

 private:
  struct Entry {
    std::shared_ptr<Feed> feed;
    std::string tenant;  // Who looked first.
  };

  // The narrowest that is worth a feed of its own.
  [[nodiscard]] kube::Scope scope_for(const kube::Resource& resource, const View& view) const;
  // One that is wider, and of use.
  [[nodiscard]] bool is_covered(const kube::Scope& scope) const;
  // One of the scope, opened if need be; null when the tenant has too many.
  [[nodiscard]] std::shared_ptr<Feed> at(const kube::Scope& scope, const std::string& tenant);
  [[nodiscard]] bool has_room(const std::string& tenant) const;
  [[nodiscard]] bool is_forgotten(const kube::Scope& scope, const Feed& feed, Instant now) const;

  io::Loop& loop_;
  kube::Cache& cache_;
  OwnWrites& own_writes_;
  Counter& shown_;
  Counter& refused_;
  BoundsOf bounds_;
  std::map<kube::Scope, Entry> feeds_;
};

}  // namespace hangar::gateway
