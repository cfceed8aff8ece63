// One level of a FairQueue: flows, and the order in which waiting flows are served.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace hangar::internal {

// A flow's tag says how far it has been served, in virtual time: the time at which it began to
// wait, plus the cost that it was served since. The current time is the greatest tag that was
// served. A resting flow with a tag in the future is remembered, because it was served more than
// its share. `Content` belongs to the caller, and is kept as long as the flow is known.
template <class Key, class Content>
class FairLevel {
 public:
  // The flow starts to wait, or continues with another rank. Lower ranks are served first, whatever
  // their tags.
  void wait(const Key& key, std::uint32_t rank) {
    const auto flow = take_out(key);
    if (!flow->second.rank) {
      flow->second.is_new = flow->second.tag <= time_;
      flow->second.tag = std::max(flow->second.tag, time_);
      flow->second.since = ++changes_;
    }
    flow->second.rank = rank;
    put_in(flow);
  }
  // The flow has no more waiting items.
  void rest(const Key& key) {
    const auto flow = take_out(key);
    flow->second.rank.reset();
    put_in(flow);
    forget();
  }
  // The flow waits, and is served now.
  void serve(const Key& key, std::uint64_t cost) {
    time_ = std::max(time_, flows_.at(key).tag);
    charge(key, cost);
  }
  // Cost that became known after the service.
  void charge(const Key& key, std::uint64_t cost) {
    const auto flow = take_out(key);
    flow->second.tag = std::max(flow->second.tag, time_) + std::min(cost, kCostMax);
    flow->second.is_new = false;
    flow->second.since = ++changes_;
    put_in(flow);
  }

  // True when another flow waits that has been served less, and for which `counts(key)` is true.
  template <class Counts>
  [[nodiscard]] bool is_ahead(const Key& key, Counts counts) const {
    const auto flow = flows_.find(key);
    if (flow == flows_.end()) return false;
    return std::ranges::any_of(waiting_, [&](const Place& place) {
      return place.tag < flow->second.tag && place.flow->first != key && counts(place.flow->first);
    });
  }

  // Null for an unknown flow.
  [[nodiscard]] Content* find(const Key& key) {
    const auto flow = flows_.find(key);
    return flow == flows_.end() ? nullptr : &flow->second.content;
  }
  [[nodiscard]] const Content* find(const Key& key) const {
    const auto flow = flows_.find(key);
    return flow == flows_.end() ? nullptr : &flow->second.content;
  }
  // Makes the flow known. Call wait() for it before any other use of this object.
  [[nodiscard]] Content& operator[](const Key& key) { return flows_[key].content; }

  // The first result of `pick(key, content)` that is a value, over the waiting flows in order.
  template <class Result, class Pick>
  [[nodiscard]] std::optional<Result> find_next(Pick pick) const {
    for (const Place& place : waiting_) {
      if (std::optional<Result> picked = pick(place.flow->first, place.flow->second.content)) {
        return picked;
      }
    }
    return std::nullopt;
  }

  // How many flows are known.
  [[nodiscard]] std::size_t size() const { return flows_.size(); }

 private:
  // Small enough that a single cost cannot overflow a tag; in nanoseconds it is 18 minutes.
  static constexpr std::uint64_t kCostMax = std::uint64_t{1} << 40;
  // How many resting flows are remembered: some 150 bytes each.
  static constexpr std::size_t kRestingMax = 1024;

  struct Flow {
    std::uint64_t tag = 0;
    // Among equal tags: first those that were not served lately, then the one that has
    // waited longest.
    bool is_new = false;
    std::uint64_t since = 0;
    std::optional<std::uint32_t> rank;  // std::nullopt: the flow rests.
    Content content;
  };
  using Flows = std::map<Key, Flow>;
  struct Place {
    std::uint32_t rank;
    std::uint64_t tag;
    bool is_old;
    std::uint64_t since;
    Flows::iterator flow;

    bool operator<(const Place& other) const {
      return std::tie(rank, tag, is_old, since) <
             std::tie(other.rank, other.tag, other.is_old, other.since);
    }
  };

  static Place place_of(Flows::iterator flow) {
    return {.rank = flow->second.rank.value_or(0),
            .tag = flow->second.tag,
            .is_old = !flow->second.is_new,
            .since = flow->second.since,
            .flow = flow};
  }
  std::set<Place>& order_of(Flows::iterator flow) {
    return flow->second.rank ? waiting_ : resting_;
  }
  Flows::iterator take_out(const Key& key) {
    const auto flow = flows_.try_emplace(key).first;
    order_of(flow).erase(place_of(flow));
    return flow;
  }
  void put_in(Flows::iterator flow) { order_of(flow).insert(place_of(flow)); }
  void forget() {
    while (!resting_.empty() && (resting_.begin()->tag <= time_ || resting_.size() > kRestingMax)) {
      const auto flow = resting_.begin()->flow;
      resting_.erase(resting_.begin());
      flows_.erase(flow);
    }
  }

  Flows flows_;
  std::set<Place> waiting_;
  std::set<Place> resting_;
  std::uint64_t time_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace hangar::internal
