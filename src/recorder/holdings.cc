#include "recorder/holdings.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace hangar::recorder {

void add(Holdings& holdings, std::string_view namespace_, std::uint64_t bytes) {
  if (bytes == 0) return;
  const auto held = holdings.find(namespace_);
  if (held != holdings.end()) {
    held->second += bytes;
  } else {
    holdings.emplace(namespace_, bytes);
  }
}

void add(Holdings& holdings, const Holdings& more) {
  for (const auto& [namespace_, bytes] : more)
    add(holdings, namespace_, bytes);
}

void subtract(Holdings& holdings, const Holdings& less) {
  for (const auto& [namespace_, bytes] : less) {
    const auto held = holdings.find(namespace_);
    if (held == holdings.end()) continue;
    held->second -= std::min(held->second, bytes);
    if (held->second == 0) holdings.erase(held);
  }
  if (holdings.empty()) holdings = {};
}

std::uint64_t held_by(const Holdings& holdings, std::string_view namespace_) {
  const auto held = holdings.find(namespace_);
  return held == holdings.end() ? 0 : held->second;
}

Holdings debts(const Holdings& held, std::uint64_t bytes) {
  std::vector<std::uint64_t> amounts;
  amounts.reserve(held.size());
  for (const auto& [namespace_, amount] : held)
    amounts.push_back(amount);
  std::ranges::sort(amounts, std::greater());
  // The level to which the `count` largest come down together; the next one is not above it.
  std::uint64_t level = 0;
  std::uint64_t sum = 0;
  for (std::size_t count = 1; count <= amounts.size(); ++count) {
    sum += amounts[count - 1];
    const std::uint64_t next = count < amounts.size() ? amounts[count] : 0;
    if (sum < bytes) continue;
    level = (sum - bytes) / count;
    if (level >= next) break;
  }
  Holdings owed;
  for (const auto& [namespace_, amount] : held)
    if (amount > level) owed.emplace(namespace_, amount - level);
  return owed;
}

}  // namespace hangar::recorder
