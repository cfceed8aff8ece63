// Counters of metrics by namespace: a bounded number of series, of which none ever shrinks.
//
// Prometheus takes a counter that shrinks for one that was reset, and adds its whole value once
// more. So a namespace that has a series keeps it, and the namespaces without one share kOthers, to
// which each look adds only what they have counted since the last one. A namespace that gets a
// series later starts at zero: what it counted before remains in kOthers.
//
// Guarantees: all series together grow by what all namespaces count. There are no more than
// kNamespaceSeriesMax and kOthers. The first namespaces get one; of those that are new in the same
// look, those with the most processor time. The series of a namespace that has counted nothing for
// kNamespaceIdle ends when another one needs it.
#pragma once

#include "base/time.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::budget {

inline constexpr std::size_t kNamespaceSeriesMax = 100;
// A namespace cannot have this name.
inline constexpr std::string_view kOtherNamespaces = "(others)";
inline constexpr std::chrono::hours kNamespaceIdle{1};

// `Counts` has `cpu`, `+=`, `==` and growth_since(), which returns zero for what has shrunk. One
// thread.
template <class Counts>
class NamespaceSeries {
 public:
  using PerNamespace = std::map<std::string, Counts, std::less<>>;

  static constexpr std::string_view kOthers = kOtherNamespaces;

  // `counted`: what each namespace has counted so far. What is counted under the name kOthers has
  // no series of its own. A namespace that is missing has been forgotten, and counts from zero.
  void look(PerNamespace counted, Instant now) {
    std::vector<std::pair<std::string, Counts>> growths;
    for (auto& [name, counts] : counted) {
      const auto before = seen_.find(name);
      Counts most = before == seen_.end() ? Counts() : before->second;
      const Counts growth = counts.growth_since(most);
      most += growth;
      counts = most;
      if (growth == Counts()) continue;
      const auto own = own_.find(name);
      if (own == own_.end()) {
        growths.emplace_back(name, growth);
      } else {
        own->second.counts += growth;
        own->second.grown = now;
      }
    }
    seen_ = std::move(counted);

    std::ranges::sort(growths, [](const auto& left, const auto& right) {
      return std::tie(right.second.cpu, left.first) < std::tie(left.second.cpu, right.first);
    });
    bool has_room = true;
    for (const auto& [name, growth] : growths) {
      if (name != kOthers && has_room) has_room = make_room(now);
      if (name != kOthers && has_room) {
        own_.emplace(name, Own{.counts = growth, .grown = now});
      } else {
        others_ += growth;
      }
    }
  }

  // kOthers is missing until it counts something.
  [[nodiscard]] PerNamespace values() const {
    PerNamespace values;
    for (const auto& [name, own] : own_)
      values.emplace(name, own.counts);
    if (others_ != Counts()) values.emplace(kOthers, others_);
    return values;
  }

 private:
  struct Own {
    Counts counts;
    Instant grown;  // The last look that added something.
  };

  // Returns whether another namespace may have a series.
  [[nodiscard]] bool make_room(Instant now) {
    if (own_.size() < kNamespaceSeriesMax) return true;
    const auto idle =
        std::ranges::min_element(own_, {}, [](const auto& one) { return one.second.grown; });
    if (now - idle->second.grown < kNamespaceIdle) return false;
    own_.erase(idle);
    return true;
  }

  PerNamespace seen_;  // The most that each namespace has counted.
  std::map<std::string, Own, std::less<>> own_;
  Counts others_;
};

}  // namespace hangar::budget
