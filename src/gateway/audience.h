// Who looks at which objects: finds those that one object concerns without asking all.
#pragma once

#include "kube/object.h"

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
    ids_.emplace(member.get(), next_id_);
    members_[key].emplace(next_id_++, std::move(member));
  }

  void remove(const kube::ObjectKey& key, const T* member) {
    const auto id = ids_.find(member);
    const auto found = members_.find(key);
    if (id == ids_.end() || found == members_.end()) return;
    found->second.erase(id->second);
    if (found->second.empty()) members_.erase(found);
    ids_.erase(id);
  }

  // As values: whoever is called may come and go.
  [[nodiscard]] std::vector<std::shared_ptr<T>> concerned_by(const kube::ObjectKey& key) const {
    std::map<std::uint64_t, std::shared_ptr<T>> found;
    const auto collect = [&](const kube::ObjectKey& wanted) {
      if (const auto position = members_.find(wanted); position != members_.end()) {
        found.insert(position->second.begin(), position->second.end());
      }
    };
    collect({});
    collect({"", key.name});
    collect({key.namespace_, ""});
    collect(key);
    std::vector<std::shared_ptr<T>> out;
    out.reserve(found.size());
    for (auto& [id, member] : found)
      out.push_back(std::move(member));
    return out;
  }

  [[nodiscard]] std::vector<std::shared_ptr<T>> all() const {
    std::vector<std::shared_ptr<T>> out;
    out.reserve(ids_.size());
    for (const auto& [key, members] : members_)
      for (const auto& [id, member] : members)
        out.push_back(member);
    return out;
  }

  [[nodiscard]] std::size_t size() const { return ids_.size(); }

 private:
  std::map<kube::ObjectKey, std::map<std::uint64_t, std::shared_ptr<T>>> members_;
  std::map<const T*, std::uint64_t> ids_;
  std::uint64_t next_id_ = 0;
};

}  // namespace hangar::gateway
