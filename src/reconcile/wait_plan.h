// Decides when a status starts and stops to say that a guest waits for something (memory, processor
// time). No I/O: the caller reports waits, and writes what is due.
//
// Guarantees: a wait, or the time between two waits, that is shorter than `told_after` is not
// reported. Waits of one consumer with less than `joined` between them count as one. The changes of
// all consumers of one namespace are reported at the rate of kWaitTells, because each of them is a
// write; further ones are reported later, or never if they are over by then.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <chrono>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace hangar::reconcile {

inline constexpr std::chrono::seconds kWaitToldAfter{1};
inline constexpr TokenBucket::Options kWaitTells{.per_second = 1, .burst = 20};

// `Cause`: what a status says about a wait.
template <class Cause = budget::Shortage>
class WaitPlan {
 public:
  explicit WaitPlan(Duration told_after = kWaitToldAfter, Duration joined = Duration::zero())
      : told_after_(told_after), joined_(joined) {}

  // The consumer waits; null: it does not, or no longer.
  void update(const budget::Consumer& consumer, const Cause* cause, Instant now);
  // The consumer's waits are no longer to be reported.
  void forget(const budget::Consumer& consumer) { waits_.erase(consumer); }

  // The consumers whose told() changes now.
  [[nodiscard]] std::vector<budget::Consumer> look(Instant now);
  // When to call look() again; nothing: no change is to be reported.
  [[nodiscard]] std::optional<Instant> next_look() const;

  // The wait that the consumer's status should report; null when it should report none.
  [[nodiscard]] const Cause* told(const budget::Consumer& consumer) const;
  // Consumers that wait, or whose status says that they do.
  [[nodiscard]] std::size_t size() const { return waits_.size(); }

 private:
  struct Wait {
    std::optional<Cause> cause;  // Nothing: it does not wait.
    std::optional<Cause> told;
    Instant due;      // Counts while only one of the two is set.
    Instant kept_to;  // Counts while neither is set: until then another wait is joined to it.

    [[nodiscard]] bool is_news() const { return cause.has_value() != told.has_value(); }
  };

  const Duration told_after_;
  const Duration joined_;
  std::map<budget::Consumer, Wait> waits_;
  std::map<budget::Tenant, TokenBucket> tells_;  // Only those that are not full.
};

template <class Cause>
void WaitPlan<Cause>::update(const budget::Consumer& consumer, const Cause* cause, Instant now) {
  const auto known = waits_.find(consumer);
  if (cause == nullptr && known == waits_.end()) return;
  const auto found = known == waits_.end() ? waits_.try_emplace(consumer).first : known;
  Wait& wait = found->second;
  // A turn is the start or the end of a wait. A wait that starts again within `joined` keeps its
  // old due time, so that many short waits are reported like one long wait.
  const bool is_turn = wait.cause.has_value() != (cause != nullptr);
  wait.cause = cause == nullptr ? std::nullopt : std::optional(*cause);
  const bool is_joined = is_turn && wait.cause && !wait.told && now < wait.kept_to;
  if (is_turn && !is_joined && (wait.cause || wait.told)) wait.due = now + told_after_;
  if (wait.cause || wait.told) return;
  if (is_turn) wait.kept_to = now + joined_;
  if (wait.kept_to <= now) waits_.erase(found);
}

template <class Cause>
std::vector<budget::Consumer> WaitPlan<Cause>::look(Instant now) {
  std::vector<budget::Consumer> changed;
  for (auto at = waits_.begin(); at != waits_.end();) {
    auto& [consumer, wait] = *at;
    if (!wait.cause && !wait.told && wait.kept_to <= now) {
      at = waits_.erase(at);
      continue;
    }
    if (!wait.is_news() || wait.due > now) {
      ++at;
      continue;
    }
    TokenBucket& tells = tells_.try_emplace(consumer.tenant, TokenBucket(kWaitTells)).first->second;
    if (!tells.try_take(now)) {
      wait.due = now + told_after_;
      ++at;
      continue;
    }
    wait.told = wait.cause;
    changed.push_back(consumer);
    at = wait.told ? std::next(at) : waits_.erase(at);
  }
  for (auto at = tells_.begin(); at != tells_.end();)
    at = at->second.is_full(now) ? tells_.erase(at) : std::next(at);
  return changed;
}

template <class Cause>
std::optional<Instant> WaitPlan<Cause>::next_look() const {
  std::optional<Instant> next;
  for (const auto& [consumer, wait] : waits_) {
    const bool is_kept = !wait.cause && !wait.told;
    if (!wait.is_news() && !is_kept) continue;
    const Instant at = is_kept ? wait.kept_to : wait.due;
    if (!next || at < *next) next = at;
  }
  return next;
}

template <class Cause>
const Cause* WaitPlan<Cause>::told(const budget::Consumer& consumer) const {
  const auto found = waits_.find(consumer);
  return found == waits_.end() || !found->second.told ? nullptr : &*found->second.told;
}

}  // namespace hangar::reconcile
