#include "gateway/own_writes.h"

#include "base/metrics.h"
#include "base/seconds.h"
#include "base/time.h"
#include "gateway/request_target.h"
#include "kube/object.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

namespace {

// The length of a DNS subdomain, which every name in the path of a collection is.
constexpr std::size_t kNameBytesMax = 253;

bool is_dry_run(const RequestTarget& target) {
  const std::string* const asked = target.parameter("dryRun");
  return asked != nullptr && !asked->empty();
}

// The version of an object after the write. A Status has none; the answer to a deletion has the
// version from before it.
std::uint64_t version_of(const RequestTarget& target, int status, std::string_view body) {
  const bool is_answered = status >= 200 && status < 300;
  if (!is_answered || target.verb == Verb::Delete || target.verb == Verb::DeleteCollection) {
    return OwnWrites::kUnknownVersion;
  }
  const auto object = kube::identify(body);
  if (!object || object->kind == "Status") return OwnWrites::kUnknownVersion;
  return kube::parse_version(object->resource_version).value_or(OwnWrites::kUnknownVersion);
}

// The API server stores Events once and serves them in two groups.
const std::string& stored_group(const RequestTarget& target) {
  static const std::string kCore;
  return target.plural == "events" && target.group == "events.k8s.io" ? kCore : target.group;
}

}  // namespace

OwnWrites::OwnWrites(Metrics& metrics)
    : lag_seconds_(metrics.histogram(
          "hangar_gateway_own_write_lag_seconds",
          "Time from the answer to a guest's write until a watch of the host reports the write.",
          latency_buckets())) {}

void OwnWrites::wrote(const std::string& user, const RequestTarget& target, int status,
                      std::string_view body, Instant now) {
  // A refused write (4xx) has changed nothing. After a server error the write may or may not
  // have happened.
  const bool is_refused = status >= 400 && status < 500;
  if (!target.is_resource() || is_refused || is_dry_run(target)) return;
  // Nothing can be written there, but a write that is cancelled has no answer that says so.
  const bool is_place = target.group.size() <= kNameBytesMax &&
                        target.plural.size() <= kNameBytesMax &&
                        target.namespace_.size() <= kNameBytesMax;
  if (!is_place) return;
  const std::uint64_t version = version_of(target, status, body);
  User& its = users_[user];
  Place place{
      .group = stored_group(target), .plural = target.plural, .namespace_ = target.namespace_};
  // The map is bounded, since a guest chooses where it writes. A write that does not fit still
  // counts: for kOwnWritesKept, every read of this user goes to the API server, as if it had
  // written everywhere.
  if (its.places.size() >= kOwnWritePlacesMax && !its.places.contains(place)) {
    its.has_too_many_at = now;
    return;
  }
  Writes& there = its.places[std::move(place)];
  // No cache can be compared with an unknown version: reads there go to the API server until
  // kOwnWritesKept is over.
  if (version == kUnknownVersion) {
    there.unknown_at = now;
    return;
  }
  // Answers may arrive out of order: the highest version counts.
  there.version = std::max(there.version, version);
  there.at = now;
  // Only for the metric: a watch that reported the version before this answer has no lag.
  if (std::ranges::find(told_, version) != told_.end()) return lag_seconds_.observe(0);
  awaited_.emplace(version, now);
  if (awaited_.size() > kOwnWritesAwaitedMax) awaited_.erase(awaited_.begin());
}

std::uint64_t OwnWrites::oldest_for(const std::string& user, const RequestTarget& read,
                                    Instant now) const {
  const auto known = users_.find(user);
  if (known == users_.end() || !read.is_resource()) return 0;
  const User& its = known->second;
  if (is_kept(its.has_too_many_at, now)) return kUnknownVersion;
  std::uint64_t oldest = 0;
  // A read of one namespace depends on writes there, and on writes without a namespace (a
  // cluster-scoped object, or all namespaces). A read of all namespaces depends on every write.
  const std::string& group = stored_group(read);
  auto at = its.places.lower_bound({.group = group, .plural = read.plural, .namespace_ = {}});
  for (; at != its.places.end(); ++at) {
    const auto& [place, writes] = *at;
    if (place.group != group || place.plural != read.plural) break;
    const bool is_there =
        read.namespace_.empty() || place.namespace_.empty() || place.namespace_ == read.namespace_;
    if (!is_there) continue;
    if (is_kept(writes.unknown_at, now)) return kUnknownVersion;
    if (is_kept(writes.at, now)) oldest = std::max(oldest, writes.version);
  }
  return oldest;
}

void OwnWrites::seen(std::uint64_t version, Instant now) {
  told_.at(std::exchange(told_next_, (told_next_ + 1) % told_.size())) = version;
  const auto awaited = awaited_.find(version);
  if (awaited == awaited_.end()) return;
  lag_seconds_.observe(in_seconds(now - awaited->second));
  awaited_.erase(awaited);
}

void OwnWrites::sweep(Instant now) {
  for (auto& [user, its] : users_) {
    std::erase_if(its.places, [now](const auto& place) {
      return !is_kept(place.second.at, now) && !is_kept(place.second.unknown_at, now);
    });
  }
  std::erase_if(users_, [now](const auto& one) {
    return one.second.places.empty() && !is_kept(one.second.has_too_many_at, now);
  });
  std::erase_if(awaited_, [now](const auto& one) { return !is_kept(one.second, now); });
}

}  // namespace hangar::gateway
