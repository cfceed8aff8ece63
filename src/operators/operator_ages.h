// The oldest Operators of a namespace, for namespaces where only a limited number may run.
//
// The ages of a namespace are collected when they are first asked for, and then updated with
// each change: even if a tenant creates thousands of Operators, each is read only once. Loop
// thread only.
#pragma once

#include "kube/cache/store.h"
#include "kube/object.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::operators {

// All Operators of a namespace.
using ListOperators = std::function<std::vector<kube::ObjectPtr>(std::string_view namespace_name)>;

class OperatorAges {
 public:
  [[nodiscard]] bool knows(const std::string& namespace_name) const {
    return namespaces_.contains(namespace_name);
  }
  // How many Operators of its namespace are older than `key`, at most `most`. Among those of the
  // same second, the first by name is the oldest.
  [[nodiscard]] std::uint64_t position(const kube::ObjectKey& key, std::uint64_t most,
                                       const ListOperators& list);
  // An Operator was added or deleted in a known namespace. Returns the name of the one that has
  // thereby left the `most` oldest, or joined them.
  [[nodiscard]] std::optional<std::string> update(const kube::Delta& delta, std::uint64_t most);
  // An empty name: forgets all namespaces.
  void forget(const std::string& namespace_name);

 private:
  using Ages = std::set<std::pair<std::string, std::string>>;  // Time of creation, name.

  std::map<std::string, Ages> namespaces_;
};

}  // namespace hangar::operators
