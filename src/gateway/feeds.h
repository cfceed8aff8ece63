// The feeds there are: at most one a scope, from the first look until nobody has looked for a
// while.
#pragma once

#include "base/metrics.h"
#include "base/result.h"
#include "gateway/feed.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::gateway {

class Feeds {
 public:
  Feeds(io::Loop& loop, kube::Cache& cache, Metrics& metrics);

  // A feed that covers `namespace_` (empty: all of them): that of all namespaces where the host may
  // watch them. `fields` are terms of a field selector that only the server evaluates. Errors: of
  // the first request for it (Denied, NotFound, Unavailable, ...), Cancelled.
  [[nodiscard]] io::Task<Result<std::shared_ptr<Feed>>> open(kube::Resource resource,
                                                             std::string namespace_,
                                                             std::string fields,
                                                             std::stop_token stop);
  // The same if there is one that is ready; null otherwise.
  [[nodiscard]] std::shared_ptr<Feed> find(std::string_view group, std::string_view version,
                                           std::string_view plural, std::string_view namespace_,
                                           std::string_view fields);

  [[nodiscard]] std::vector<std::shared_ptr<Feed>> all() const;
  [[nodiscard]] bool empty() const { return feeds_.empty(); }
  // Lets go of those that nobody has used for a while.
  void sweep();
  void clear() { feeds_.clear(); }

 private:
  [[nodiscard]] std::shared_ptr<Feed> at(const kube::Scope& scope);

  io::Loop& loop_;
  kube::Cache& cache_;
  Counter& shown_;
  std::map<kube::Scope, std::shared_ptr<Feed>> feeds_;
};

}  // namespace hangar::gateway
