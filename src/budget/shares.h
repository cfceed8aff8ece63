// Places that tenants hold for an unknown time, such as the slots of FairSlots and of reconciles.
//
// The rule: a tenant holds no more places than it leaves free, and at least one. One tenant alone
// may hold half of the places, two tenants a third each. A place is never taken back, so only this
// rule lets a tenant that was idle start at once, however long the others hold theirs. No I/O.
// One thread.
#pragma once

#include "base/assert.h"
#include "budget/consumer.h"

#include <cstddef>
#include <map>

namespace hangar::budget {

class Shares {
 public:
  explicit Shares(std::size_t places) : free_(places) {}

  // `freed`: as if that many of other tenants' places were free as well.
  [[nodiscard]] bool may_take(const Tenant& tenant, std::size_t freed = 0) const {
    return held_count(tenant) < free_ + freed;
  }
  // Does not check the rule: the caller does, except for the host's own work, which may take any
  // free place.
  void take(const Tenant& tenant) {
    HANGAR_ASSERT(free_ > 0, "a place that is taken was free");
    --free_;
    ++held_[tenant];
  }
  void give_back(const Tenant& tenant) {
    const auto held = held_.find(tenant);
    HANGAR_ASSERT(held != held_.end(), "a place is given back once");
    if (--held->second == 0) held_.erase(held);
    ++free_;
  }

  [[nodiscard]] std::size_t free_count() const { return free_; }
  [[nodiscard]] std::size_t held_count(const Tenant& tenant) const {
    const auto held = held_.find(tenant);
    return held == held_.end() ? 0 : held->second;
  }

 private:
  std::size_t free_;
  std::map<Tenant, std::size_t> held_;  // Only tenants that hold places.
};

}  // namespace hangar::budget
