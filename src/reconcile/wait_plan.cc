#include "reconcile/wait_plan.h"

#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace hangar::reconcile {

void WaitPlan::update(const budget::Consumer& consumer, const budget::Shortage* shortage,
                      Instant now) {
  const auto known = waits_.find(consumer);
  if (shortage == nullptr && known == waits_.end()) return;
  const auto found = known == waits_.end() ? waits_.try_emplace(consumer).first : known;
  Wait& wait = found->second;
  const bool is_turn = wait.shortage.has_value() != (shortage != nullptr);
  wait.shortage = shortage == nullptr ? std::nullopt : std::optional(*shortage);
  if (is_turn) wait.due = now + told_after_;
  if (!wait.shortage && !wait.told) waits_.erase(found);
}

std::vector<budget::Consumer> WaitPlan::look(Instant now) {
  std::vector<budget::Consumer> changed;
  for (auto at = waits_.begin(); at != waits_.end();) {
    auto& [consumer, wait] = *at;
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
    wait.told = wait.shortage;
    changed.push_back(consumer);
    at = wait.told ? std::next(at) : waits_.erase(at);
  }
  for (auto at = tells_.begin(); at != tells_.end();)
    at = at->second.is_full(now) ? tells_.erase(at) : std::next(at);
  return changed;
}

std::optional<Instant> WaitPlan::next_look() const {
  std::optional<Instant> next;
  for (const auto& [consumer, wait] : waits_) {
    if (wait.is_news() && (!next || wait.due < *next)) next = wait.due;
  }
  return next;
}

const budget::Shortage* WaitPlan::told(const budget::Consumer& consumer) const {
  const auto found = waits_.find(consumer);
  return found == waits_.end() || !found->second.told ? nullptr : &*found->second.told;
}

}  // namespace hangar::reconcile
