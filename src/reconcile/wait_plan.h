// Decides when a status says that a guest waits for memory, and when it says so no more. No I/O:
// the caller reports waits, and writes what is due.
//
// Guarantees: a wait, or the time between two waits, that is shorter than `told_after` is not told.
// The consumers of one namespace together have kWaitTells changes told, because each of them
// is a write; further ones come later, or never if they are over by then.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace hangar::reconcile {

inline constexpr std::chrono::seconds kWaitToldAfter{1};
inline constexpr TokenBucket::Options kWaitTells{.per_second = 1, .burst = 20};

class WaitPlan {
 public:
  explicit WaitPlan(Duration told_after = kWaitToldAfter) : told_after_(told_after) {}

  // The consumer waits; null: it does not, or no longer.
  void update(const budget::Consumer& consumer, const budget::Shortage* shortage, Instant now);
  // Nobody is to be told about the consumer any more.
  void forget(const budget::Consumer& consumer) { waits_.erase(consumer); }

  // Those for whom told() is another from now on.
  [[nodiscard]] std::vector<budget::Consumer> look(Instant now);
  // When to look again; nothing: no change is to be told.
  [[nodiscard]] std::optional<Instant> next_look() const;

  // What the consumer waits for, as its status should say it; null when it should not.
  [[nodiscard]] const budget::Shortage* told(const budget::Consumer& consumer) const;
  // Consumers that wait, or whose status says that they do.
  [[nodiscard]] std::size_t size() const { return waits_.size(); }

 private:
  struct Wait {
    std::optional<budget::Shortage> shortage;  // Nothing: it does not wait.
    std::optional<budget::Shortage> told;
    Instant due;  // Counts while only one of the two is set.

    [[nodiscard]] bool is_news() const { return shortage.has_value() != told.has_value(); }
  };

  const Duration told_after_;
  std::map<budget::Consumer, Wait> waits_;
  std::map<budget::Tenant, TokenBucket> tells_;  // Those that are not full.
};

}  // namespace hangar::reconcile
