// Finds the pages of a memory that have been written since they were mapped: those that are neither
// pages of the mapped file nor the kernel's page of zeros.
#pragma once

#include "wasm/snapshot/page_range.h"

#include <cstddef>
#include <span>

namespace hangar::wasm {

// Asks the kernel about the memory of this process. Any thread.
class WrittenPages {
 public:
  enum class Method : std::uint8_t {
    Scan,     // One ioctl, Linux 6.7 and later.
    Entries,  // Reads an entry of 8 bytes for every page, any Linux.
    None,     // Without /proc every page counts as written.
  };
  // Uses the best method that the system has, up to `best`. `pagemap`: an open /proc/self/pagemap,
  // which the caller owns; negative: it is opened here.
  explicit WrittenPages(Method best = Method::Scan, int pagemap = -1);
  WrittenPages(const WrittenPages&) = delete;
  WrittenPages& operator=(const WrittenPages&) = delete;
  ~WrittenPages();

  [[nodiscard]] Method method() const { return method_; }

  // Numbered from the beginning of `memory`, which must be aligned to a page. May include pages
  // that were not written; never misses one that was.
  [[nodiscard]] PageRanges find(std::span<const std::byte> memory) const;

 private:
  [[nodiscard]] bool scan(std::span<const std::byte> memory, PageRanges& into) const;
  [[nodiscard]] bool read_entries(std::span<const std::byte> memory, PageRanges& into) const;

  const int opened_;  // Negative: not opened here.
  const int pagemap_;
  Method method_ = Method::None;
};

}  // namespace hangar::wasm
