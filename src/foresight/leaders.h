// The recent wakes of operators, and which operator follows which: the data that the forecasters of
// one host share.
//
// Operators see only wakes of their group (a namespace). One thread.
#pragma once

#include "base/time.h"
#include "foresight/leader_lag.h"

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hangar::foresight {

class Leaders {
 public:
  // How many wakes of a group are remembered.
  static constexpr std::size_t kRecentMax = 8;
  // Bound of the followers of one operator: each of its wakes visits all of them.
  static constexpr std::size_t kFollowersMax = 64;

  [[nodiscard]] OperatorId join(const std::string& group);
  void leave(OperatorId id);

  // Wakes of others in its group, the latest first. Valid until the next on_wake().
  [[nodiscard]] std::span<const RecentWake> recent(OperatorId id);
  // The operator woke. Returns its followers.
  [[nodiscard]] std::vector<OperatorId> on_wake(OperatorId id, Instant now);
  // From now on `id` follows only `leader`; zero: it follows no operator. Ignored if the leader has
  // left, is of another group, or has too many followers.
  void follow(OperatorId id, OperatorId leader);

 private:
  struct Group {
    std::size_t members = 0;
    std::vector<RecentWake> recent;  // The latest first.
  };
  struct Member {
    std::map<std::string, Group>::iterator group;
    OperatorId leader = 0;
    std::vector<OperatorId> followers;
  };

  OperatorId last_id_ = 0;
  std::map<std::string, Group> groups_;
  std::map<OperatorId, Member> members_;
  std::array<RecentWake, kRecentMax> others_{};
};

}  // namespace hangar::foresight
