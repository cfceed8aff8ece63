#include "operators/operator_ages.h"

#include "json/value.h"
#include "kube/cache/store.h"
#include "kube/object.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace hangar::operators {

namespace {

// Timestamps of one form and zone (RFC 3339, seconds, Z) sort as texts.
std::pair<std::string, std::string> age_of(const kube::Object& object) {
  return {std::string(json::string_at(object.to_value(), {"metadata", "creationTimestamp"})),
          object.key().name};
}

}  // namespace

std::uint64_t OperatorAges::position(const kube::ObjectKey& key, std::uint64_t most,
                                     const ListOperators& list) {
  const auto [found, is_new] = namespaces_.try_emplace(key.namespace_);
  Ages& ages = found->second;
  if (is_new) {
    for (const kube::ObjectPtr& object : list(key.namespace_))
      ages.insert(age_of(*object));
  }
  std::uint64_t position = 0;
  for (auto one = ages.begin(); one != ages.end() && position < most; ++one, ++position)
    if (one->second == key.name) break;
  return position;
}

std::optional<std::string> OperatorAges::update(const kube::Delta& delta, std::uint64_t most) {
  const auto found = namespaces_.find(delta.object->key().namespace_);
  if (found == namespaces_.end()) return std::nullopt;
  Ages& ages = found->second;
  const bool is_gone = delta.type == kube::Delta::Type::Deleted;
  if (is_gone) {
    ages.erase(age_of(*delta.object));
  } else {
    ages.insert(age_of(*delta.object));
  }
  // The last Operator that may run now, or the first that no longer may.
  if (is_gone && most == 0) return std::nullopt;
  const std::uint64_t place = is_gone ? most - 1 : most;
  if (place >= ages.size()) return std::nullopt;
  return std::next(ages.begin(), static_cast<std::ptrdiff_t>(place))->second;
}

void OperatorAges::forget(const std::string& namespace_name) {
  if (namespace_name.empty()) {
    namespaces_.clear();
  } else {
    namespaces_.erase(namespace_name);
  }
}

}  // namespace hangar::operators
