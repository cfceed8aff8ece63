#include "foresight/leaders.h"

#include <algorithm>

namespace hangar::foresight {

OperatorId Leaders::join(const std::string& group) {
  // Ids wrap around after four thousand million operators.
  do {
    ++last_id_;
  } while (last_id_ == 0 || members_.contains(last_id_));
  const auto entry = groups_.try_emplace(group).first;
  ++entry->second.members;
  members_.emplace(last_id_, Member{.group = entry});
  return last_id_;
}

void Leaders::leave(OperatorId id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  follow(id, 0);
  for (const OperatorId follower : found->second.followers)
    members_.at(follower).leader = 0;
  Group& group = found->second.group->second;
  std::erase_if(group.recent, [id](const RecentWake& wake) { return wake.id == id; });
  if (--group.members == 0) groups_.erase(found->second.group);
  members_.erase(found);
}

std::span<const RecentWake> Leaders::recent(OperatorId id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return {};
  const auto end = std::ranges::copy_if(found->second.group->second.recent, others_.begin(),
                                        [id](const RecentWake& wake) { return wake.id != id; })
                       .out;
  return {others_.begin(), end};
}

std::vector<OperatorId> Leaders::on_wake(OperatorId id, Instant now) {
  const auto found = members_.find(id);
  if (found == members_.end()) return {};
  std::vector<RecentWake>& recent = found->second.group->second.recent;
  std::erase_if(recent, [id](const RecentWake& wake) { return wake.id == id; });
  recent.insert(recent.begin(), {.id = id, .at = now});
  if (recent.size() > kRecentMax) recent.pop_back();
  return found->second.followers;
}

void Leaders::follow(OperatorId id, OperatorId leader) {
  const auto found = members_.find(id);
  if (found == members_.end() || found->second.leader == leader) return;
  if (const auto old = members_.find(found->second.leader); old != members_.end()) {
    std::erase(old->second.followers, id);
  }
  found->second.leader = 0;
  const auto next = members_.find(leader);
  if (leader == 0 || leader == id || next == members_.end() ||
      next->second.group != found->second.group || next->second.followers.size() >= kFollowersMax) {
    return;
  }
  next->second.followers.push_back(id);
  found->second.leader = leader;
}

}  // namespace hangar::foresight
