#include "wasm/snapshot/written_pages.h"

#include "wasm/snapshot/page_range.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hangar::wasm {

namespace {

// The interface of linux/fs.h; the headers of older systems lack it.
struct PageRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanArgument {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t vec;
  std::uint64_t vec_len;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t kIsFile = 1U << 2U;
constexpr std::uint64_t kIsPresent = 1U << 3U;
constexpr std::uint64_t kIsSwapped = 1U << 4U;
constexpr std::uint64_t kIsZero = 1U << 5U;

// Bits of an entry of /proc/self/pagemap. Bit 61: a page of a file, or a shared one.
constexpr std::uint64_t kEntryFile = std::uint64_t{1} << 61U;
constexpr std::uint64_t kEntrySwapped = std::uint64_t{1} << 62U;
constexpr std::uint64_t kEntryPresent = std::uint64_t{1} << 63U;

void append_range(PageRanges& ranges, PageRange range) {
  if (!ranges.empty() && ranges.back().end() == range.first) {
    ranges.back().count += range.count;
  } else {
    ranges.push_back(range);
  }
}

PageRange all_of(std::span<const std::byte> memory) {
  return {.first = 0, .count = static_cast<std::uint32_t>(memory.size() / kPageBytes)};
}

}  // namespace

WrittenPages::WrittenPages(Method best, int pagemap)
    : opened_(pagemap >= 0 ? -1 : ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
      pagemap_(pagemap >= 0 ? pagemap : opened_) {
  if (pagemap_ < 0 || best == Method::None) return;
  // Tries the methods on one page: the kernel may be too old for the ioctl, or refuse the file.
  alignas(kPageBytes) static std::array<std::byte, kPageBytes> probe;
  PageRanges ignored;
  if (best == Method::Scan && scan(probe, ignored)) {
    method_ = Method::Scan;
  } else if (read_entries(probe, ignored)) {
    method_ = Method::Entries;
  }
}

WrittenPages::~WrittenPages() {
  if (opened_ >= 0) ::close(opened_);
}

PageRanges WrittenPages::find(std::span<const std::byte> memory) const {
  PageRanges found;
  if (memory.empty()) return found;
  if (method_ == Method::Scan && scan(memory, found)) return found;
  found.clear();
  if (method_ != Method::None && read_entries(memory, found)) return found;
  return {all_of(memory)};
}

bool WrittenPages::scan(std::span<const std::byte> memory, PageRanges& into) const {
  const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint64_t end = start + memory.size();
  std::array<PageRegion, 256> regions{};
  for (std::uint64_t position = start; position < end;) {
    ScanArgument argument{};
    argument.size = sizeof argument;
    argument.start = position;
    argument.end = end;
    argument.vec = reinterpret_cast<std::uintptr_t>(regions.data());
    argument.vec_len = regions.size();
    // Selects pages that are present or swapped, and are neither a file's nor the page of zeros: an
    // inverted category must be absent.
    argument.category_mask = kIsFile | kIsZero;
    argument.category_inverted = kIsFile | kIsZero;
    argument.category_anyof_mask = kIsPresent | kIsSwapped;
    const int count = ::ioctl(pagemap_, kPagemapScan, &argument);
    if (count < 0 || argument.walk_end <= position) return false;
    for (const PageRegion& region : std::span(regions).first(static_cast<std::size_t>(count))) {
      append_range(into,
                   {.first = static_cast<std::uint32_t>((region.start - start) / kPageBytes),
                    .count = static_cast<std::uint32_t>((region.end - region.start) / kPageBytes)});
    }
    position = argument.walk_end;
  }
  return true;
}

bool WrittenPages::read_entries(std::span<const std::byte> memory, PageRanges& into) const {
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(memory.data()) / kPageBytes;
  const std::uint32_t pages = all_of(memory).count;
  std::array<std::uint64_t, 2048> entries{};
  for (std::uint32_t page = 0; page < pages;) {
    const std::size_t want = std::min<std::size_t>(entries.size(), pages - page);
    const ssize_t got = ::pread(pagemap_, entries.data(), want * sizeof(std::uint64_t),
                                static_cast<off_t>((first + page) * sizeof(std::uint64_t)));
    if (got < static_cast<ssize_t>(sizeof(std::uint64_t))) return false;
    const std::size_t count = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
    for (std::size_t index = 0; index < count; ++index) {
      const std::uint64_t entry = entries[index];
      // A swapped page has bit 61 only if it is shared. The page of zeros counts as written: its
      // entry looks the same.
      const bool is_own =
          (entry & (kEntryPresent | kEntrySwapped)) != 0 && (entry & kEntryFile) == 0;
      if (is_own) append_page(into, page + static_cast<std::uint32_t>(index));
    }
    page += static_cast<std::uint32_t>(count);
  }
  return true;
}

}  // namespace hangar::wasm
