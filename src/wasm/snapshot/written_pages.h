// Which pages of a memory hold something of their own: written since they were mapped, and so
// neither of the file that is mapped there nor the system's page of zeros.
#pragma once

#include "wasm/snapshot/page_range.h"

#include <cstddef>
#include <span>

namespace hangar::wasm {

// Asks the kernel about the memory of this process. Any thread.
class WrittenPages {
 public:
  enum class Method : std::uint8_t {
    Scan,     // One request, Linux 6.7 and later.
    Entries,  // An entry of 8 bytes for every page, any Linux.
    None,     // No /proc: every page counts as written.
  };
  // The best that the system has, or at most `best`.
  // `pagemap`: that file of /proc/self, of its owner; negative: it is opened here.
  explicit WrittenPages(Method best = Method::Scan, int pagemap = -1);
  WrittenPages(const WrittenPages&) = delete;
  WrittenPages& operator=(const WrittenPages&) = delete;
  ~WrittenPages();

  [[nodiscard]] Method method() const { return method_; }

  // Numbered from the beginning of `memory`, which begins at a page. May name pages that hold
  // nothing of their own; never leaves one out.
  [[nodiscard]] PageRanges find(std::span<const std::byte> memory) const;

 private:
  [[nodiscard]] bool scan(std::span<const std::byte> memory, PageRanges& into) const;
  [[nodiscard]] bool read_entries(std::span<const std::byte> memory, PageRanges& into) const;

  const int opened_;  // Negative: none.
  const int pagemap_;
  Method method_ = Method::None;
};

}  // namespace hangar::wasm
