#include "gateway/feeds.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/feed.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

Feeds::Feeds(io::Loop& loop, kube::Cache& cache, Metrics& metrics)
    : loop_(loop),
      cache_(cache),
      shown_(metrics.counter("hangar_gateway_events_total",
                             "Events of watches that were shown to guests.")) {}

io::Task<Result<std::shared_ptr<Feed>>> Feeds::open(kube::Resource resource, std::string namespace_,
                                                    std::string fields, std::stop_token stop) {
  kube::Scope scope{.resource = std::move(resource), .field_selector = std::move(fields)};
  std::shared_ptr<Feed> feed = at(scope);
  Result<> ready = co_await feed->wait_ready(stop);
  const bool may_be_narrower = scope.resource.namespaced && !namespace_.empty();
  if (!ready && ready.error().kind() == ErrorKind::Denied && may_be_narrower) {
    scope.namespace_ = std::move(namespace_);
    feed = at(scope);
    ready = co_await feed->wait_ready(stop);
  }
  if (!ready) co_return std::unexpected(std::move(ready).error());
  co_return feed;
}

std::shared_ptr<Feed> Feeds::find(std::string_view group, std::string_view version,
                                  std::string_view plural, std::string_view namespace_,
                                  std::string_view fields) {
  for (const auto& [scope, feed] : feeds_) {
    const kube::Resource& resource = scope.resource;
    const bool is_it = resource.group == group && resource.version == version &&
                       resource.plural == plural && scope.field_selector == fields &&
                       (scope.namespace_.empty() || scope.namespace_ == namespace_);
    if (!is_it || !feed->is_ready()) continue;
    feed->touch();
    return feed;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Feed>> Feeds::all() const {
  std::vector<std::shared_ptr<Feed>> out;
  for (const auto& [scope, feed] : feeds_)
    out.push_back(feed);
  return out;
}

void Feeds::sweep() {
  const Instant now = io::Loop::now();
  std::erase_if(feeds_, [now](const auto& entry) {
    const auto unused_since = entry.second->unused_since();
    return unused_since && now - *unused_since >= limits::kGatewayLinger;
  });
}

std::shared_ptr<Feed> Feeds::at(const kube::Scope& scope) {
  std::shared_ptr<Feed>& feed = feeds_[scope];
  if (feed && !feed->error()) {
    feed->touch();
    return feed;
  }
  // What the server refused it will refuse again; what it could not do it may do now.
  const bool is_settled = feed && feed->error()->kind() != ErrorKind::Unavailable &&
                          io::Loop::now() - *feed->unused_since() < limits::kGatewayRetry;
  if (!is_settled) {
    feed = std::make_shared<Feed>(loop_, cache_, scope, shown_);
    feed->start();
  }
  return feed;
}

}  // namespace hangar::gateway
