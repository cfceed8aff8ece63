// Pages of the host, the unit in which memories of guests are shared, compared and written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hangar::wasm {

// On machines with larger pages no guest can sleep (SleepableModule::obstacle).
inline constexpr std::size_t kPageBytes = 4096;

struct PageRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  [[nodiscard]] std::uint32_t end() const { return first + count; }
  friend bool operator==(const PageRange&, const PageRange&) = default;
};

// Ascending; ranges neither overlap nor touch.
using PageRanges = std::vector<PageRange>;

// Adds a page that comes after all others.
inline void append_page(PageRanges& ranges, std::uint32_t page) {
  if (!ranges.empty() && ranges.back().end() == page) {
    ++ranges.back().count;
  } else {
    ranges.push_back({.first = page, .count = 1});
  }
}

[[nodiscard]] inline std::uint64_t page_count(std::span<const PageRange> ranges) {
  std::uint64_t total = 0;
  for (const PageRange& range : ranges)
    total += range.count;
  return total;
}

// All pages that are in either.
[[nodiscard]] PageRanges united(std::span<const PageRange> left, std::span<const PageRange> right);
// All pages that are in both.
[[nodiscard]] PageRanges common(std::span<const PageRange> left, std::span<const PageRange> right);
// All pages of `ranges` that are not in `others`.
[[nodiscard]] PageRanges without(std::span<const PageRange> ranges,
                                 std::span<const PageRange> others);
// `pages` merged across their gaps, the smallest gaps first, until at most `pieces_max` pieces
// remain. Gaps of less than 16 pages are always merged: one more mapping costs about as much as
// reading this many pages.
[[nodiscard]] PageRanges in_few_pieces(std::span<const PageRange> pages, std::size_t pieces_max);

}  // namespace hangar::wasm
