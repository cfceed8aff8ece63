// What the API server has said about its API groups: the resources of those that exist, and for a
// moment the names of those that do not. No I/O.
#pragma once

#include "base/consumer.h"
#include "base/time.h"
#include "kube/internal/discovery_documents.h"
#include "kube/object.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::kube::internal {

// Users choose the names of groups that do not exist, so the number of these is bounded for each
// tenant that has asked. Their names displace neither a group that exists nor a name for which
// another tenant has asked. One thread.
class KnownGroups {
 public:
  // A resource of the group; std::nullopt when none is known.
  [[nodiscard]] std::optional<Resource> find(
      std::string_view group, const std::function<bool(const Resource&)>& wanted) const;
  // Whether the server has answered so recently that it would give the same answer again.
  [[nodiscard]] bool is_recent(std::string_view group, Instant now) const;

  // The server's answer at `now`.
  void add(std::string group, ServedGroup versions, Instant now);
  // The server has answered that there is no such group, to a request for `asker`.
  void add_missing(std::string group, const Tenant& asker, Instant now);

  void forget(std::string_view group);

  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] std::size_t missing_count() const { return missing_.size(); }

 private:
  struct Group {
    ServedGroup versions;
    Instant ask_again_at;
  };
  struct Missing {
    std::string group;
    Tenant asker;
    Instant ask_again_at;
  };

  std::map<std::string, Group, std::less<>> groups_;
  std::deque<Missing> missing_;  // Oldest first.
};

}  // namespace hangar::kube::internal
