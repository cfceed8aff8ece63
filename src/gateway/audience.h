// Who looks at which objects: finds those that one object concerns without asking all.
#pragma once

#include "kube/object.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

// By namespace and name, either of which may be empty for any. A change costs the number of members
// that it concerns, not of all. Members are found in the order in which they came.
template <class T>
class Audience {
 public:
  void add(const kube::ObjectKey& key, std::shared_ptr<T> member) {
    members_[key].push_back({.id = next_id_++, .who = std::move(member)});
    ++size_;
  }

  void remove(const kube::ObjectKey& key, const T* member) {
    const auto found = members_.find(key);
    if (found == members_.end()) return;
    Members& members = found->second;
    const auto position =
        std::ranges::find(members, member, [](const Member& one) { return one.who.get(); });
    if (position == members.end()) return;
    members.erase(position);
    --size_;
    if (members.empty()) members_.erase(found);
  }

  // As values: whoever is called may come and go.
  [[nodiscard]] std::vector<std::shared_ptr<T>> concerned_by(const kube::ObjectKey& key) const {
    Members found;
    const auto collect = [&](const kube::ObjectKey& wanted) {
      if (const auto position = members_.find(wanted); position != members_.end()) {
        found.insert(found.end(), position->second.begin(), position->second.end());
      }
    };
    // Four different ones, or fewer: an object may have no namespace.
    collect({});
    collect({"", key.name});
    if (!key.namespace_.empty()) {
      collect({key.namespace_, ""});
      collect(key);
    }
    std::ranges::sort(found, {}, &Member::id);
    return people_of(std::move(found));
  }

  [[nodiscard]] std::vector<std::shared_ptr<T>> all() const {
    std::vector<std::shared_ptr<T>> out;
    out.reserve(size_);
    for (const auto& [key, members] : members_)
      for (const Member& member : members)
        out.push_back(member.who);
    return out;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Member {
    std::uint64_t id = 0;
    std::shared_ptr<T> who;
  };
  using Members = std::vector<Member>;  // By id.

  [[nodiscard]] static std::vector<std::shared_ptr<T>> people_of(Members members) {
    std::vector<std::shared_ptr<T>> out;
    out.reserve(members.size());
    for (Member& member : members)
      out.push_back(std::move(member.who));
    return out;
  }

  std::map<kube::ObjectKey, Members> members_;
  std::size_t size_ = 0;
  std::uint64_t next_id_ = 0;
};

}  // namespace hangar::gateway
