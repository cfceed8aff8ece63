#include "wasm/snapshot/base_image.h"

#include "base/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/varint.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/snapshot/rewrite.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

// The mappings for one memory: the kernel allows some 65,000 for all memories together.
constexpr std::size_t kExtentsMax = 8;

// Neighbouring pages are written together, up to this size.
constexpr std::size_t kWriteBytes = 256 * limits::kKiB;

// Numbers of images that their content decides have this bit; others count from one.
constexpr std::uint64_t kOfContent = std::uint64_t{1} << 63;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

struct BaseImage::Parts {
  // Maps the file, which has `pages`.
  static Result<std::shared_ptr<const BaseImage>> make(PrivateFile file, std::uint64_t number,
                                                       PageRanges pages) {
    Parts parts{.number = number, .file = std::move(file), .pages = std::move(pages)};
    if (!parts.pages.empty()) {
      // A guest process may not map anything shared. For a file that is no longer written, a
      // private mapping shows the same pages of the page cache.
      void* const address = ::mmap(nullptr, std::size_t{parts.pages.back().end()} * kPageBytes,
                                   PROT_READ, MAP_PRIVATE, parts.file.descriptor(), 0);
      if (address == MAP_FAILED) {
        return fail(ErrorKind::Unavailable,
                    fmt::format("map an image: {}", std::generic_category().message(errno)));
      }
      parts.view = static_cast<const std::byte*>(address);
    }
    return std::allocate_shared<const BaseImage>(slots::Allocator<BaseImage>(), std::move(parts));
  }

  std::uint64_t number = 0;
  PrivateFile file;
  PageRanges pages;
  const std::byte* view = nullptr;  // The whole file; null when it is empty.
};

// Writes pages in ascending order.
class BaseImage::Writer {
 public:
  enum class Number : std::uint8_t { Next, ByContent };
  Writer(PrivateFile file, Number number) : file_(std::move(file)) {
    if (number == Number::ByContent) content_.emplace();
  }

  Result<> add(std::uint32_t page, std::span<const std::byte> bytes) {
    if (std::memcmp(bytes.data(), zero_page(), kPageBytes) == 0) return {};
    const bool continues = !pages_.empty() && pages_.back().end() == page;
    if (!continues || pending_.size() >= kWriteBytes) HANGAR_TRY(flush());
    if (pending_.empty()) pending_page_ = page;
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    append_page(pages_, page);
    return {};
  }

  Result<std::shared_ptr<const BaseImage>> finish() && {
    HANGAR_TRY(flush());
    const std::uint64_t number = content_ ? number_of_content() : next_number();
    return Parts::make(std::move(file_), number, std::move(pages_));
  }

 private:
  Result<> flush() {
    if (pending_.empty()) return {};
    HANGAR_TRY(file_.write(std::uint64_t{pending_page_} * kPageBytes, pending_));
    if (content_) {
      std::string place;
      append_varint(place, pending_page_);
      content_->add(place);
      content_->add({reinterpret_cast<const char*>(pending_.data()), pending_.size()});
    }
    pending_.clear();
    return {};
  }

  [[nodiscard]] std::uint64_t number_of_content() {
    const Sha256Bytes digest = content_->finish();
    std::uint64_t number = 0;
    std::memcpy(&number, digest.data(), sizeof number);
    return number | kOfContent;
  }

  PrivateFile file_;
  std::optional<Sha256> content_;  // What was written, and where that is.
  PageRanges pages_;
  std::uint32_t pending_page_ = 0;
  std::vector<std::byte> pending_;
};

Result<std::shared_ptr<const BaseImage>> BaseImage::of_data(const std::filesystem::path& directory,
                                                            std::span<const DataPiece> data) {
  Writer writer(HANGAR_TRY(PrivateFile::open(directory)), Writer::Number::ByContent);
  std::array<std::byte, kPageBytes> page{};
  std::uint64_t page_number = 0;
  for (const DataPiece& piece : data) {
    for (std::size_t done = 0; done < piece.bytes.size();) {
      const std::uint64_t address = piece.address + done;
      if (address / kPageBytes != page_number) {
        HANGAR_TRY(writer.add(static_cast<std::uint32_t>(page_number), page));
        page.fill(std::byte{});
        page_number = address / kPageBytes;
      }
      const std::size_t place = address % kPageBytes;
      const std::size_t size = std::min(kPageBytes - place, piece.bytes.size() - done);
      std::memcpy(page.data() + place, piece.bytes.data() + done, size);
      done += size;
    }
  }
  HANGAR_TRY(writer.add(static_cast<std::uint32_t>(page_number), page));
  return std::move(writer).finish();
}

Result<std::shared_ptr<const BaseImage>> BaseImage::of_memory(
    const std::filesystem::path& directory, std::span<const std::byte> memory,
    const PageRanges& pages) {
  Writer writer(HANGAR_TRY(PrivateFile::open(directory)), Writer::Number::Next);
  for (const PageRange& range : pages) {
    for (std::uint32_t page = range.first; page < range.end(); ++page)
      HANGAR_TRY(writer.add(page, memory.subspan(std::size_t{page} * kPageBytes, kPageBytes)));
  }
  return std::move(writer).finish();
}

Result<std::shared_ptr<const BaseImage>> BaseImage::of_file(PrivateFile file, std::uint64_t number,
                                                            PageRanges pages) {
  return Parts::make(std::move(file), number, std::move(pages));
}

BaseImage::BaseImage(Parts&& parts)
    : number_(parts.number),
      view_(parts.view),
      file_(std::move(parts.file)),
      data_count_(static_cast<std::uint32_t>(parts.pages.size())) {
  const PageRanges extents = in_few_pieces(parts.pages, kExtentsMax);
  ranges_.reserve(parts.pages.size() + extents.size());
  ranges_.assign(parts.pages.begin(), parts.pages.end());
  ranges_.insert(ranges_.end(), extents.begin(), extents.end());
}

BaseImage::~BaseImage() {
  if (view_ != nullptr) ::munmap(const_cast<std::byte*>(view_), file_bytes());
}

std::uint64_t BaseImage::file_bytes() const {
  return data_count_ == 0 ? 0 : std::uint64_t{data_pages().back().end()} * kPageBytes;
}

void BaseImage::drop_page_cache() const {
  // The view only reads the file, so its pages can be mapped again at any time.
  if (view_ != nullptr) ::madvise(const_cast<std::byte*>(view_), file_bytes(), MADV_DONTNEED);
  file_.drop_page_cache();
}

const std::byte* BaseImage::page(std::uint32_t number) const {
  const std::span<const PageRange> pages = data_pages();
  const auto after =
      std::ranges::upper_bound(pages, number, std::ranges::less(), &PageRange::first);
  // Holes are not read from the file: that would fill the page cache with zeros.
  if (after == pages.begin() || number >= std::prev(after)->end()) return zero_page();
  return view_ + std::size_t{number} * kPageBytes;
}

const std::byte* zero_page() {
  alignas(kPageBytes) static constexpr std::array<std::byte, kPageBytes> kZeros{};
  return kZeros.data();
}

}  // namespace hangar::wasm
