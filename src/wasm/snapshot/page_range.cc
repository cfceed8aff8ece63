#include "wasm/snapshot/page_range.h"

#include <algorithm>
#include <iterator>

namespace hangar::wasm {

PageRanges united(const PageRanges& left, const PageRanges& right) {
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

}  // namespace hangar::wasm
