#include "wasm/snapshot/page_range.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace hangar::wasm {

PageRanges united(std::span<const PageRange> left, std::span<const PageRange> right) {
  PageRanges all;
  all.reserve(left.size() + right.size());
  std::ranges::merge(left, right, std::back_inserter(all), {}, &PageRange::first,
                     &PageRange::first);
  PageRanges result;
  for (const PageRange& range : all) {
    if (!result.empty() && range.first <= result.back().end()) {
      PageRange& last = result.back();
      last.count = std::max(last.end(), range.end()) - last.first;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

PageRanges common(const PageRanges& left, const PageRanges& right) {
  PageRanges result;
  for (auto a = left.begin(), b = right.begin(); a != left.end() && b != right.end();) {
    const std::uint32_t first = std::max(a->first, b->first);
    const std::uint32_t end = std::min(a->end(), b->end());
    if (first < end) result.push_back({.first = first, .count = end - first});
    ++(a->end() < b->end() ? a : b);
  }
  return result;
}

}  // namespace hangar::wasm
