#include "kube/cache/watch_plan.h"

#include "kube/scope.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hangar::kube {

namespace {

using Scopes = std::vector<Scope>;

Scope all_of(const Scope& scope, std::string namespace_) {
  return {.resource = scope.resource, .namespace_ = std::move(namespace_), .detail = scope.detail};
}

// The scopes that cover `scope`, the widest first.
std::vector<Scope> wider_than(const Scope& scope) {
  std::vector<Scope> out;
  for (Scope wide : {all_of(scope, {}), all_of(scope, scope.namespace_), scope}) {
    for (const Detail detail : {Detail::Whole, scope.detail}) {
      wide.detail = detail;
      if (wide != scope) out.push_back(wide);
    }
  }
  return out;
}

class Planner {
 public:
  explicit Planner(const std::set<Scope>& denied) : denied_(denied) {}

  // Plans watches for `scopes`, none of which covers another: `count_max` of them where possible.
  void feed(const Scopes& scopes, std::size_t count_max) {
    if (scopes.size() <= count_max) return feed_each(scopes);
    std::map<std::string, Scopes> by_namespace;
    for (const Scope& scope : scopes)
      by_namespace[scope.namespace_].push_back(scope);
    const bool fits = by_namespace.size() <= count_max && !by_namespace.contains("");
    const Scope all = all_of(scopes.front(), {});
    if (!fits && !denied_.contains(all)) {
      for (const Scope& scope : scopes)
        set(scope, all);
      return;
    }
    for (const auto& [namespace_, group] : by_namespace)
      feed_namespace(namespace_, group);
  }

  void feed_each(const Scopes& scopes) {
    for (const Scope& scope : scopes)
      set(scope, scope);
  }

  // A planned watch that covers the scope.
  [[nodiscard]] std::optional<Scope> covering(const Scope& scope) const {
    for (const Scope& watch : watches_)
      if (!denied_.contains(watch) && covers(watch, scope)) return watch;
    return std::nullopt;
  }

  std::map<Scope, Scope> take() { return std::move(plan_); }
  [[nodiscard]] const std::map<Scope, Scope>& plan() const { return plan_; }
  void set(const Scope& scope, const Scope& watch) {
    plan_[scope] = watch;
    watches_.insert(watch);
  }

 private:
  void feed_namespace(const std::string& namespace_, const Scopes& group) {
    const Scope wide = all_of(group.front(), namespace_);
    if (group.size() == 1 || denied_.contains(wide)) return feed_each(group);
    for (const Scope& scope : group)
      set(scope, wide);
  }

  const std::set<Scope>& denied_;
  std::map<Scope, Scope> plan_;
  std::set<Scope> watches_;  // The watches of plan_.
};

}  // namespace

bool covers(const Scope& wide, const Scope& narrow) {
  if (wide.resource != narrow.resource) return false;
  if (wide.detail == Detail::Metadata && narrow.detail == Detail::Whole) return false;
  if (!wide.namespace_.empty() && wide.namespace_ != narrow.namespace_) return false;
  if (wide.label_selector.empty() && wide.field_selector.empty()) return true;
  return wide.namespace_ == narrow.namespace_ && wide.label_selector == narrow.label_selector &&
         wide.field_selector == narrow.field_selector;
}

std::map<Scope, Scope> plan_watches(const std::vector<Scope>& wanted,
                                    const std::set<Scope>& denied) {
  const std::set<Scope> known(wanted.begin(), wanted.end());
  Planner planner(denied);
  std::map<Scope, Scope> covered;  // From a scope to the wanted one that covers it.
  Scopes whole;
  Scopes metadata;
  for (const Scope& scope : known) {
    if (denied.contains(scope)) {
      planner.set(scope, scope);
      continue;
    }
    const std::vector<Scope> wider = wider_than(scope);
    const auto found = std::ranges::find_if(
        wider, [&](const Scope& one) { return known.contains(one) && !denied.contains(one); });
    if (found != wider.end()) {
      covered.emplace(scope, *found);
    } else {
      (scope.detail == Detail::Whole ? whole : metadata).push_back(scope);
    }
  }
  const bool both = !whole.empty() && !metadata.empty();
  planner.feed(whole, both ? kWatchesMax - 1 : kWatchesMax);
  // The watches of whole objects cover these as well.
  std::erase_if(metadata, [&](const Scope& scope) {
    const auto watch = planner.covering(scope);
    if (watch) planner.set(scope, *watch);
    return watch.has_value();
  });
  planner.feed(metadata, both ? kWatchesMax - 1 : kWatchesMax);
  // The widest of the scopes that cover a scope is covered by none.
  for (const auto& [scope, by] : covered)
    planner.set(scope, Scope(planner.plan().at(by)));
  return planner.take();
}

}  // namespace hangar::kube
