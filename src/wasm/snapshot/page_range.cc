#include "wasm/snapshot/page_range.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace hangar::wasm {

namespace {

constexpr std::uint32_t kGapPagesMin = 16;

}  // namespace

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

PageRanges common(std::span<const PageRange> left, std::span<const PageRange> right) {
  PageRanges result;
  for (auto a = left.begin(), b = right.begin(); a != left.end() && b != right.end();) {
    const std::uint32_t first = std::max(a->first, b->first);
    const std::uint32_t end = std::min(a->end(), b->end());
    if (first < end) result.push_back({.first = first, .count = end - first});
    ++(a->end() < b->end() ? a : b);
  }
  return result;
}

PageRanges without(std::span<const PageRange> ranges, std::span<const PageRange> others) {
  PageRanges result;
  auto other = others.begin();
  for (PageRange left : ranges) {
    while (left.count > 0) {
      while (other != others.end() && other->end() <= left.first)
        ++other;
      const bool is_inside = other != others.end() && other->first <= left.first;
      const std::uint32_t end = other == others.end() ? left.end()
                                : is_inside           ? std::min(left.end(), other->end())
                                                      : std::min(left.end(), other->first);
      if (!is_inside) result.push_back({.first = left.first, .count = end - left.first});
      left = {.first = end, .count = left.end() - end};
    }
  }
  return result;
}

PageRanges in_few_pieces(std::span<const PageRange> pages, std::size_t pieces_max) {
  for (std::uint32_t gap_min = kGapPagesMin;; gap_min *= 2) {
    PageRanges pieces;
    for (const PageRange& range : pages) {
      if (pieces.empty() || range.first - pieces.back().end() >= gap_min) {
        pieces.push_back(range);
      } else {
        pieces.back().count = range.end() - pieces.back().first;
      }
    }
    if (pieces.size() <= pieces_max) return pieces;
  }
}

}  // namespace hangar::wasm
