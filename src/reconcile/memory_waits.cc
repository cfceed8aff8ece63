#include "reconcile/memory_waits.h"

#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hangar::reconcile {

MemoryWaits::Waiting* MemoryWaits::find(const kube::ObjectKey& key) {
  const auto found = waiting_.find(key);
  return found == waiting_.end() ? nullptr : &found->second;
}

bool MemoryWaits::has_any(const std::string& namespace_name) const {
  const auto first = waiting_.lower_bound({.namespace_ = namespace_name, .name = {}});
  return first != waiting_.end() && first->first.namespace_ == namespace_name;
}

std::vector<kube::ObjectKey> MemoryWaits::with_room(const std::string& namespace_name,
                                                    const HasRoom& has_room) {
  std::vector<kube::ObjectKey> keys;
  if (!has_any(namespace_name)) return keys;
  const auto begin = waiting_.lower_bound({.namespace_ = namespace_name, .name = {}});
  auto at = last_.namespace_ == namespace_name ? waiting_.upper_bound(last_) : begin;
  std::string first_name;  // Empty: none was looked at.
  std::uint64_t bytes = 0;
  for (std::size_t looks = 0; looks < kLooksMax; ++looks, ++at) {
    if (at == waiting_.end() || at->first.namespace_ != namespace_name) at = begin;
    if (at->first.name == first_name) break;  // All were looked at.
    if (first_name.empty()) first_name = at->first.name;
    last_ = at->first;
    if (!has_room(namespace_name, bytes + at->second.bytes)) continue;
    bytes += at->second.bytes;
    keys.push_back(at->first);
  }
  return keys;
}

}  // namespace hangar::reconcile
