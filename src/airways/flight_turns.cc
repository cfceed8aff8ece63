#include "airways/flight_turns.h"

#include "base/assert.h"
#include "kube/object.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

std::size_t FlightTurns::held_count(const std::string& namespace_) const {
  const auto found = held_.find(namespace_);
  return found == held_.end() ? 0 : found->second;
}

bool FlightTurns::begin(const kube::ObjectKey& flight) {
  if (may_take(held_count(flight.namespace_), free_)) {
    forget(flight);
    --free_;
    ++held_[flight.namespace_];
    return true;
  }
  std::deque<kube::ObjectKey>& waiting = waiting_[flight.namespace_];
  if (std::ranges::find(waiting, flight) == waiting.end()) waiting.push_back(flight);
  return false;
}

std::vector<kube::ObjectKey> FlightTurns::end(const std::string& namespace_) {
  const auto held = held_.find(namespace_);
  HANGAR_ASSERT(held != held_.end(), "what ends has begun");
  if (--held->second == 0) held_.erase(held);
  ++free_;

  std::vector<kube::ObjectKey> next;
  std::size_t free = free_;
  std::map<std::string, std::size_t> taken;  // By those who are asked to begin here.
  // Each namespace once around, beginning behind the one that was served last, until none may.
  bool has_served = true;
  while (has_served && free > 0) {
    has_served = false;
    std::vector<std::string> round;
    for (auto at = waiting_.upper_bound(last_served_); at != waiting_.end(); ++at)
      round.push_back(at->first);
    for (auto at = waiting_.begin(); at != waiting_.upper_bound(last_served_); ++at)
      round.push_back(at->first);
    for (const std::string& name : round) {
      if (!may_take(held_count(name) + taken[name], free)) continue;
      const auto waiting = waiting_.find(name);
      next.push_back(std::move(waiting->second.front()));
      waiting->second.pop_front();
      if (waiting->second.empty()) waiting_.erase(waiting);
      ++taken[name];
      --free;
      last_served_ = name;
      has_served = true;
    }
  }
  return next;
}

void FlightTurns::forget(const kube::ObjectKey& flight) {
  const auto waiting = waiting_.find(flight.namespace_);
  if (waiting == waiting_.end()) return;
  std::erase(waiting->second, flight);
  if (waiting->second.empty()) waiting_.erase(waiting);
}

}  // namespace hangar::airways
