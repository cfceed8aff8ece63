// What the memories of all instances of a module have in common, as a file that they map: its pages
// are the system's to drop and to read again, and nobody has them twice.
#pragma once

#include "base/result.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/snapshot/rewrite.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace hangar::wasm {

// Immutable: any thread. Pages of zeros are holes in the file and no part of data_pages().
class BaseImage {
 public:
  // Blocking. Unavailable when the disk has no room.
  [[nodiscard]] static Result<std::shared_ptr<const BaseImage>> of_data(
      const std::filesystem::path& directory, std::span<const DataPiece> data);
  // Of `memory`, which has zeros outside of `pages`.
  [[nodiscard]] static Result<std::shared_ptr<const BaseImage>> of_memory(
      const std::filesystem::path& directory, std::span<const std::byte> memory,
      const PageRanges& pages);

  BaseImage(const BaseImage&) = delete;
  BaseImage& operator=(const BaseImage&) = delete;
  ~BaseImage();

  // No two images of the process have the same.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] int descriptor() const { return file_.descriptor(); }
  // Of the file, whole pages. What lies behind it is zeros.
  [[nodiscard]] std::uint64_t file_bytes() const;
  [[nodiscard]] const PageRanges& data_pages() const { return data_pages_; }
  // What of the file is worth mapping: all data, in few pieces. The rest is zeros, which as a part
  // of the file would come to lie in the page cache when they are touched.
  [[nodiscard]] const PageRanges& extents() const { return extents_; }
  [[nodiscard]] std::uint64_t disk_bytes() const { return file_.disk_bytes(); }
  // The content of a page, kPageBytes of it.
  [[nodiscard]] const std::byte* page(std::uint32_t number) const;

 private:
  class Writer;
  BaseImage(PrivateFile file, PageRanges data_pages, const std::byte* view);

  std::uint64_t number_;
  PrivateFile file_;
  PageRanges data_pages_;
  PageRanges extents_;
  const std::byte* view_;  // The whole file; null when it is empty.
};

// A page of zeros.
[[nodiscard]] const std::byte* zero_page();

}  // namespace hangar::wasm
