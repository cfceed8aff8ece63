// The common part of the memories of all instances of a module, as a file that they map: the kernel
// can drop its pages and read them again, and keeps only one copy of each.
#pragma once

#include "base/result.h"
#include "base/slots.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/snapshot/rewrite.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace hangar::wasm {

// Immutable: any thread. Pages of zeros are holes in the file and not part of data_pages().
class BaseImage {
  class Writer;
  struct Parts;

 public:
  // Blocking. Unavailable when the disk has no room. The number depends on the content only: it is
  // the same for a host that replaces this one.
  [[nodiscard]] static Result<std::shared_ptr<const BaseImage>> of_data(
      const std::filesystem::path& directory, std::span<const DataPiece> data);
  // An image of `memory`, which must be zero outside of `pages`.
  [[nodiscard]] static Result<std::shared_ptr<const BaseImage>> of_memory(
      const std::filesystem::path& directory, std::span<const std::byte> memory,
      const PageRanges& pages);

  // An image that another process of this host has made, with its number there. `file` has `pages`,
  // and is trusted completely. Unavailable when it cannot be mapped.
  [[nodiscard]] static Result<std::shared_ptr<const BaseImage>> of_file(PrivateFile file,
                                                                        std::uint64_t number,
                                                                        PageRanges pages);

  explicit BaseImage(Parts&& parts);
  BaseImage(const BaseImage&) = delete;
  BaseImage& operator=(const BaseImage&) = delete;
  ~BaseImage();

  // Unique among the images of one module that this process has made.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] int descriptor() const { return file_.descriptor(); }
  // The size of the file in whole pages. Memory beyond it is zero.
  [[nodiscard]] std::uint64_t file_bytes() const;
  [[nodiscard]] std::span<const PageRange> data_pages() const {
    return std::span(ranges_).first(data_count_);
  }
  // The parts of the file that instances map: all data, in few pieces. The rest is zero; mapped
  // from the file, it would fill the page cache when it is touched.
  [[nodiscard]] std::span<const PageRange> extents() const {
    return std::span(ranges_).subspan(data_count_);
  }
  [[nodiscard]] std::uint64_t disk_bytes() const { return file_.disk_bytes(); }
  // As PrivateFile::drop_page_cache(). Pages that instances have mapped stay.
  void drop_page_cache() const;
  // The content of a page, kPageBytes of it.
  [[nodiscard]] const std::byte* page(std::uint32_t number) const;

 private:
  const std::uint64_t number_;
  const std::byte* const view_;
  const PrivateFile file_;
  std::uint32_t data_count_ = 0;  // The first ranges are data, the others are extents.
  std::vector<PageRange, slots::Allocator<PageRange>> ranges_;
};

// A page of zeros.
[[nodiscard]] const std::byte* zero_page();

}  // namespace hangar::wasm
