// Which Operators of a namespace are the oldest, for namespaces where only so many run.
//
// What is known of a namespace is made when it is first asked for, and kept up with its changes: a
// tenant that makes thousands of Operators costs one look at each of them. Loop thread only.
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
  // How many of its namespace are older than `key`; `most` where there are as many or more. Of
  // those of one second, the first by name is the oldest.
  [[nodiscard]] std::uint64_t position(const kube::ObjectKey& key, std::uint64_t most,
                                       const ListOperators& list);
  // One was added or deleted in a namespace that is known. The name of the one that by this is not
  // among the `most` oldest any more, or is now.
  [[nodiscard]] std::optional<std::string> update(const kube::Delta& delta, std::uint64_t most);
  // All of them where the name is empty.
  void forget(const std::string& namespace_name);

 private:
  using Ages = std::set<std::pair<std::string, std::string>>;  // Time of creation, name.

  std::map<std::string, Ages> namespaces_;
};

}  // namespace hangar::operators
