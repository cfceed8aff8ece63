// Finds the members that are interested in an object, by its namespace and name, without visiting
// all members.
#pragma once

#include "base/slots.h"
#include "kube/object.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::kube {

// Members are keyed by namespace and name; an empty one matches any. A lookup costs the number of
// members that the object concerns, not the number of all members. Members are returned
// in the order in which they were added.
//
// `place()` of a T returns the namespace and name, which must not change while it is a member.
template <class T>
class Audience {
 public:
  void add(std::shared_ptr<T> who) { members_.insert({.id = next_id_++, .who = std::move(who)}); }

  void remove(const T& who) {
    const auto position = members_.find(&who);
    if (position != members_.end()) members_.erase(position);
  }

  // Returns copies: a callee may add and remove members.
  [[nodiscard]] std::vector<std::shared_ptr<T>> concerned_by(const ObjectKey& key) const {
    std::vector<Member> found;
    const auto collect = [&](const ObjectKey& wanted) {
      const auto [begin, end] = members_.equal_range(wanted);
      found.insert(found.end(), begin, end);
    };
    // Up to four lookups: an object may have no namespace.
    collect({});
    collect({"", key.name});
    if (!key.namespace_.empty()) {
      collect({key.namespace_, ""});
      collect(key);
    }
    return people_of(std::move(found));
  }

  [[nodiscard]] std::vector<std::shared_ptr<T>> all() const {
    return people_of({members_.begin(), members_.end()});
  }

  [[nodiscard]] std::size_t size() const { return members_.size(); }

 private:
  struct Member {
    std::uint64_t id = 0;
    std::shared_ptr<T> who;
  };
  // By place, then by address, so that removing one of many at a place costs no search.
  struct Order {
    using is_transparent = void;
    bool operator()(const Member& one, const Member& other) const {
      return is_before(one.who.get(), other.who.get());
    }
    bool operator()(const Member& one, const T* who) const { return is_before(one.who.get(), who); }
    bool operator()(const T* who, const Member& one) const { return is_before(who, one.who.get()); }
    bool operator()(const Member& one, const ObjectKey& place) const {
      return one.who->place() < place;
    }
    bool operator()(const ObjectKey& place, const Member& one) const {
      return place < one.who->place();
    }
    static bool is_before(const T* one, const T* other) {
      return std::tie(one->place(), one) < std::tie(other->place(), other);
    }
  };

  [[nodiscard]] static std::vector<std::shared_ptr<T>> people_of(std::vector<Member> members) {
    std::ranges::sort(members, {}, &Member::id);
    std::vector<std::shared_ptr<T>> out;
    out.reserve(members.size());
    for (Member& member : members)
      out.push_back(std::move(member.who));
    return out;
  }

  std::set<Member, Order, slots::Allocator<Member>> members_;
  std::uint64_t next_id_ = 0;
};

}  // namespace hangar::kube
