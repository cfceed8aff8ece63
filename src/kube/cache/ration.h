// Bounds the memory of cached objects by their namespaces. Whoever may create objects that the host
// watches for itself decides how many and how large they are. Where the namespace has no room for
// an object, only what identifies it is kept (bare_of() of kube/object.h).
#pragma once

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hangar::kube {

// Objects of no namespace have no bound. Any thread.
class Ration {
 public:
  // The bound of a namespace, for all its objects together. It is called under a lock.
  using AllowanceOf = std::function<std::unique_ptr<Allowance>(const std::string& namespace_name)>;
  explicit Ration(AllowanceOf allowance_of);

  // The same object, counted until nobody holds what is returned. LimitExceeded, the allowance's
  // error, if its namespace has no room for it. An object that is counted is not counted again.
  [[nodiscard]] Result<ObjectPtr> hold(ObjectPtr object) const;
  // The same; the bare object in place of an error. It is counted whether it has room or not: while
  // the bare objects of a namespace exceed its bound, hold() takes no other.
  [[nodiscard]] ObjectPtr hold_or_bare(ObjectPtr object) const;
  // Counts that many bytes besides the objects, for what is made of one, until nobody holds what is
  // returned. LimitExceeded like hold(). Null: there is no namespace, or nothing to count.
  [[nodiscard]] Result<std::shared_ptr<const void>> hold_bytes(const std::string& namespace_name,
                                                               std::uint64_t bytes) const;
  // Whether hold() would take an object of that many bytes (Object::size_bytes()) now.
  [[nodiscard]] bool has_room(const std::string& namespace_name, std::uint64_t bytes) const;

 private:
  class Share;
  struct Counted;
  struct State;
  // Counted objects may outlive the Ration.
  const std::shared_ptr<State> state_;
};

}  // namespace hangar::kube
