// The places in which reconciles run: ordinary ones, and further ones in which only deletions run,
// so that a deletion waits for no other work. In both, a namespace holds no more than the rule of
// budget::Shares permits; cluster-scoped objects, which no tenant makes, may take any free place.
// No I/O. Loop thread only; outlives its Places.
#pragma once

#include "base/assert.h"
#include "budget/consumer.h"
#include "budget/shares.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hangar::reconcile {

class Places {
 public:
  // One place that is held, until it is destroyed.
  class Place {
   public:
    Place(Place&& other) noexcept
        : shares_(std::exchange(other.shares_, nullptr)), tenant_(std::move(other.tenant_)) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (shares_ != nullptr) shares_->give_back(tenant_);
    }

   private:
    friend class Places;
    Place(budget::Shares& shares, budget::Tenant tenant)
        : shares_(&shares), tenant_(std::move(tenant)) {
      shares_->take(tenant_);
    }

    budget::Shares* shares_;  // Null once moved from.
    budget::Tenant tenant_;
  };

  explicit Places(std::size_t count)
      : ordinary_(count), deletions_(std::max<std::size_t>(count / kOrdinaryForADeletion, 1)) {
    HANGAR_ASSERT(count > 0, "nothing would ever run");
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  [[nodiscard]] bool may_take(const budget::Tenant& tenant, bool is_deletion) const {
    return may_take(ordinary_, tenant) || (is_deletion && may_take(deletions_, tenant));
  }
  // Requires may_take().
  [[nodiscard]] Place take(budget::Tenant tenant, bool is_deletion) {
    HANGAR_ASSERT(may_take(tenant, is_deletion), "a place is taken by the rule");
    return {may_take(ordinary_, tenant) ? ordinary_ : deletions_, std::move(tenant)};
  }

  [[nodiscard]] std::size_t ordinary_free_count() const { return ordinary_.free_count(); }
  // Including the places for deletions alone.
  [[nodiscard]] std::size_t free_count() const {
    return ordinary_.free_count() + deletions_.free_count();
  }

 private:
  static constexpr std::size_t kOrdinaryForADeletion = 4;

  [[nodiscard]] static bool may_take(const budget::Shares& shares, const budget::Tenant& tenant) {
    return tenant.namespace_name().empty() ? shares.free_count() > 0 : shares.may_take(tenant);
  }

  budget::Shares ordinary_;
  budget::Shares deletions_;
};

}  // namespace hangar::reconcile
