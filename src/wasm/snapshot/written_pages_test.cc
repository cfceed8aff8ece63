#include "wasm/snapshot/written_pages.h"

#include "wasm/digest.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/rewrite.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hangar::wasm {
namespace {

// An image of 4 pages, followed by zeros.
class WrittenPagesTest : public ::testing::TestWithParam<WrittenPages::Method> {
 protected:
  static constexpr std::size_t kPages = 3000;

  WrittenPagesTest() {
    const DataPiece piece{.address = 3 * kPageBytes, .bytes = std::as_bytes(std::span(text_))};
    image_ = BaseImage::of_data(directory_.path(), {&piece, 1}).value();
    void* const address = ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ::mmap(address, image_->file_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
           image_->descriptor(), 0);
    ::madvise(address, kPages * kPageBytes, MADV_NOHUGEPAGE);
    memory_ = {static_cast<std::byte*>(address), kPages * kPageBytes};
  }
  ~WrittenPagesTest() override { ::munmap(memory_.data(), memory_.size()); }

  void write(std::uint32_t page) { memory_[page * kPageBytes + 5] = std::byte{1}; }
  void read(std::uint32_t page) const {
    static_cast<void>(*static_cast<const volatile std::byte*>(&memory_[page * kPageBytes]));
  }

  TemporaryDirectory directory_;
  const std::string text_ = "text";
  std::shared_ptr<const BaseImage> image_;
  std::span<std::byte> memory_;
};

const char* name_of_test(const ::testing::TestParamInfo<WrittenPages::Method>& test) {
  switch (test.param) {
    case WrittenPages::Method::Scan:
      return "Scan";
    case WrittenPages::Method::Entries:
      return "Entries";
    case WrittenPages::Method::None:
      return "None";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Methods, WrittenPagesTest,
                         ::testing::Values(WrittenPages::Method::Scan,
                                           WrittenPages::Method::Entries,
                                           WrittenPages::Method::None),
                         name_of_test);

TEST_P(WrittenPagesTest, LeavesNoWrittenPageOut) {
  const WrittenPages pages(GetParam());
  PageRanges written;
  for (const std::uint32_t page : {1U, 3U, 4U, 700U, 701U, 2999U}) {
    write(page);
    append_page(written, page);
  }
  for (std::uint32_t page = 800; page < 2800; page += 2) {
    write(page);
    written = united(written, PageRanges{{page, 1}});
  }
  read(2);
  const PageRanges found = pages.find(memory_);
  EXPECT_EQ(united(found, written), found);
}

// Without /proc all other pages count as well.
class FoundPagesTest : public WrittenPagesTest {};
INSTANTIATE_TEST_SUITE_P(Methods, FoundPagesTest,
                         ::testing::Values(WrittenPages::Method::Scan,
                                           WrittenPages::Method::Entries),
                         name_of_test);

TEST_P(FoundPagesTest, AreThoseThatWereWritten) {
  const WrittenPages pages(GetParam());
  ASSERT_NE(pages.method(), WrittenPages::Method::None);
  read(3);
  write(1);
  write(2000);
  EXPECT_EQ(pages.find(memory_), (PageRanges{{1, 1}, {2000, 1}}));
  EXPECT_EQ(pages.find({}), PageRanges{});
}

TEST(WrittenPagesMethod, IsTheBestThatIsAllowed) {
  EXPECT_EQ(WrittenPages(WrittenPages::Method::None).method(), WrittenPages::Method::None);
  EXPECT_NE(WrittenPages(WrittenPages::Method::Entries).method(), WrittenPages::Method::Scan);
}

TEST(BaseImage, HasHolesWhereItIsZero) {
  const TemporaryDirectory directory;
  std::vector<std::byte> memory(64 * kPageBytes);
  memory[10 * kPageBytes] = std::byte{1};
  memory[40 * kPageBytes + 7] = std::byte{2};
  const auto image = BaseImage::of_memory(directory.path(), memory, {{0, 64}}).value();
  EXPECT_EQ(image->file_bytes(), 41 * kPageBytes);
  EXPECT_THAT(image->data_pages(), testing::ElementsAre(PageRange{10, 1}, PageRange{40, 1}));
  EXPECT_LE(image->disk_bytes(), 3 * kPageBytes);
  EXPECT_EQ(image->page(10)[0], std::byte{1});
  EXPECT_EQ(image->page(40)[7], std::byte{2});
  EXPECT_EQ(image->page(11), zero_page());
  EXPECT_EQ(image->page(1000), zero_page());
}

TEST(BaseImage, IsMappedInFewPiecesThatHaveAllOfItsData) {
  const TemporaryDirectory directory;
  const auto extents_of = [&directory](const PageRanges& pages) {
    std::vector<std::byte> memory(std::size_t{pages.back().end()} * kPageBytes);
    for (const PageRange& range : pages)
      for (std::uint32_t page = range.first; page < range.end(); ++page)
        memory[std::size_t{page} * kPageBytes] = std::byte{1};
    const auto image = BaseImage::of_memory(directory.path(), memory, pages).value();
    return PageRanges(image->extents().begin(), image->extents().end());
  };
  // A run of zeros in front is left out, small gaps are not.
  EXPECT_EQ(extents_of({{256, 6}, {265, 2}}), (PageRanges{{256, 11}}));
  EXPECT_EQ(extents_of({{3, 1}, {256, 6}}), (PageRanges{{3, 1}, {256, 6}}));
  PageRanges scattered;
  for (std::uint32_t index = 0; index < 100; ++index)
    scattered.push_back({.first = 40 * index + (index < 50 ? 0 : 4000), .count = 1});
  EXPECT_EQ(extents_of(scattered), (PageRanges{{0, 1961}, {6000, 1961}}));
}

TEST(BaseImage, PutsDataWhereItBelongs) {
  const TemporaryDirectory directory;
  const std::string first(5000, 'a');
  const std::string second = "b";
  const std::vector<DataPiece> pieces = {
      {.address = 4000, .bytes = std::as_bytes(std::span(first))},
      {.address = 9000, .bytes = std::as_bytes(std::span(second))}};
  const auto image = BaseImage::of_data(directory.path(), pieces).value();
  const auto at = [&image](std::uint64_t address) {
    return static_cast<char>(
        image->page(static_cast<std::uint32_t>(address / kPageBytes))[address % kPageBytes]);
  };
  EXPECT_EQ(at(3999), '\0');
  EXPECT_EQ(at(4000), 'a');
  EXPECT_EQ(at(8999), 'a');
  EXPECT_EQ(at(9000), 'b');
  EXPECT_EQ(at(9001), '\0');
}

TEST(BaseImage, OfNothingIsEmpty) {
  const TemporaryDirectory directory;
  const auto image = BaseImage::of_data(directory.path(), {}).value();
  EXPECT_EQ(image->file_bytes(), 0U);
  EXPECT_EQ(image->disk_bytes(), 0U);
}

}  // namespace
}  // namespace hangar::wasm
