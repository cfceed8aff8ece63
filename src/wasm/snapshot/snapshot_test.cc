#include "wasm/snapshot/snapshot.h"

#include "base/result.h"
#include "wasm/digest.h"
#include "wasm/snapshot/page_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

constexpr std::uint64_t kMemoryBytes = 64 * 65536;

Snapshot make_snapshot(PageRanges pages) {
  return {.module = Digest::of("module"),
          .base_number = 7,
          .memory_bytes = kMemoryBytes,
          .globals = {{std::byte{1}}, {std::byte{2}, std::byte{3}}},
          .pages = std::move(pages)};
}

SnapshotExpectation expectation() {
  return {.module = Digest::of("module"),
          .base_number = 7,
          .global_count = 2,
          .memory_bytes_max = kMemoryBytes};
}

// A page that does not compress to almost nothing.
std::vector<std::byte> page_content(std::uint32_t page) {
  std::vector<std::byte> content(kPageBytes);
  std::uint32_t value = page + 1;
  for (std::byte& byte : content) {
    value = value * 1664525 + 1013904223;
    byte = static_cast<std::byte>(value >> 24U);
  }
  return content;
}

std::vector<std::byte> encoded(const Snapshot& snapshot) {
  return encode(snapshot,
                [](std::uint32_t page, std::span<std::byte> into) {
                  std::ranges::copy(page_content(page), into.begin());
                })
      .value();
}

// The message of the error; empty when there is none.
std::string complaint(std::vector<std::byte> bytes, const SnapshotExpectation& expected) {
  const Result<SnapshotReader> reader = SnapshotReader::open(std::move(bytes), expected);
  if (!reader) {
    EXPECT_EQ(reader.error().kind(), ErrorKind::Unavailable);
    return reader.error().message();
  }
  const Result<> read = reader->read_pages([](std::uint32_t, std::span<const std::byte>) {});
  return read ? "" : read.error().message();
}

TEST(SnapshotFormat, ReadsWhatWasWritten) {
  for (const PageRanges& pages : std::vector<PageRanges>{
           {}, {{0, 1}}, {{3, 2}, {9, 1}}, {{0, 64}}, {{0, 65}, {100, 63}}, {{1, 1000}}}) {
    const Snapshot snapshot = make_snapshot(pages);
    const Result<SnapshotReader> reader = SnapshotReader::open(encoded(snapshot), expectation());
    ASSERT_TRUE(reader.has_value()) << reader.error().message();
    EXPECT_EQ(reader->snapshot(), snapshot);
    PageRanges seen;
    const Result<> read =
        reader->read_pages([&seen](std::uint32_t page, std::span<const std::byte> difference) {
          append_page(seen, page);
          EXPECT_TRUE(std::ranges::equal(difference, page_content(page))) << page;
        });
    EXPECT_TRUE(read.has_value()) << read.error().message();
    EXPECT_EQ(seen, pages);
  }
}

TEST(SnapshotFormat, RefusesEveryBitThatFlips) {
  const std::vector<std::byte> whole = encoded(make_snapshot({{2, 1}}));
  for (std::size_t index = 0; index < whole.size(); ++index) {
    std::vector<std::byte> broken = whole;
    broken[index] ^= std::byte{1} << (index % 8);
    EXPECT_NE(complaint(std::move(broken), expectation()), "") << "byte " << index;
  }
}

TEST(SnapshotFormat, RefusesEveryLengthButItsOwn) {
  const std::vector<std::byte> whole = encoded(make_snapshot({{2, 1}}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(complaint({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)},
                        expectation()),
              "");
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{});
  EXPECT_EQ(complaint(std::move(longer), expectation()),
            "the snapshot is broken: it has another size than it says");
}

TEST(SnapshotFormat, RefusesWhatIsNotOfThisGuest) {
  const std::vector<std::byte> whole = encoded(make_snapshot({{2, 1}}));
  SnapshotExpectation expected = expectation();
  expected.module = Digest::of("another");
  EXPECT_EQ(complaint(whole, expected), "the snapshot is broken: it is of another module");
  expected = expectation();
  expected.base_number = 8;
  EXPECT_EQ(complaint(whole, expected), "the snapshot is broken: it is for another image");
  expected = expectation();
  expected.global_count = 3;
  EXPECT_EQ(complaint(whole, expected), "the snapshot is broken: it has other globals");
  expected = expectation();
  expected.memory_bytes_max = kMemoryBytes - 65536;
  EXPECT_EQ(complaint(whole, expected),
            "the snapshot is broken: its memory has a size that cannot be");
  EXPECT_EQ(complaint(whole, expectation()), "");
}

std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
  const Digest digest = Digest::of(std::span(bytes).first(bytes.size() - 32));
  std::ranges::copy(digest.bytes(), bytes.end() - 32);
  return bytes;
}

TEST(SnapshotFormat, SaysWhichVersionItReads) {
  constexpr std::size_t kVersion = 8;
  constexpr std::uint32_t kNewer = 2;
  std::vector<std::byte> bytes = encoded(make_snapshot({{2, 1}}));
  std::memcpy(bytes.data() + kVersion, &kNewer, sizeof kNewer);

  EXPECT_EQ(complaint(sealed(std::move(bytes)), expectation()),
            "the snapshot is broken: it has version 2 of the format, this hangar reads version 1");
}

TEST(SnapshotFormat, RefusesListsThatContradictEachOtherBehindAGoodChecksum) {
  constexpr std::size_t kRangeCount = 68;
  constexpr std::size_t kPageCount = 72;
  constexpr std::size_t kRanges = 80 + 2 * 16;
  const auto with_number = [&](std::size_t offset, std::uint32_t value) {
    std::vector<std::byte> bytes = encoded(make_snapshot({{2, 1}, {5, 2}}));
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    return complaint(sealed(std::move(bytes)), expectation());
  };
  EXPECT_EQ(with_number(kPageCount, 3), "");
  EXPECT_NE(with_number(kPageCount, 4), "");
  EXPECT_NE(with_number(kRangeCount, 1), "");
  EXPECT_NE(with_number(kRangeCount, 0xffff'ffff), "");
  EXPECT_NE(with_number(kRanges, 5), "") << "overlapping ranges";
  EXPECT_NE(with_number(kRanges + 8, 1023), "") << "beyond the memory";
  EXPECT_NE(with_number(kRanges + 4, 0), "") << "an empty range";
  std::vector<std::byte> cut = encoded(make_snapshot({{2, 1}}));
  cut.resize(cut.size() - 100);
  const auto size = static_cast<std::uint32_t>(cut.size());
  std::memcpy(cut.data() + 12, &size, sizeof size);
  EXPECT_NE(complaint(sealed(std::move(cut)), expectation()), "") << "half a frame";
}

TEST(PageRanges, AreUnited) {
  EXPECT_EQ(united(PageRanges{}, PageRanges{}), PageRanges{});
  EXPECT_EQ(united(PageRanges{{1, 2}}, PageRanges{}), (PageRanges{{1, 2}}));
  EXPECT_EQ(united(PageRanges{{1, 2}, {8, 1}}, PageRanges{{3, 1}, {7, 5}}),
            (PageRanges{{1, 3}, {7, 5}}));
  EXPECT_EQ(united(PageRanges{{0, 10}}, PageRanges{{2, 3}}), (PageRanges{{0, 10}}));
}

TEST(PageRanges, HaveInCommonWhatIsInBoth) {
  EXPECT_EQ(common(PageRanges{}, PageRanges{{1, 2}}), PageRanges{});
  EXPECT_EQ(common(PageRanges{{1, 2}}, PageRanges{{3, 4}}), PageRanges{}) << "adjacent";
  EXPECT_EQ(common(PageRanges{{0, 10}}, PageRanges{{2, 3}, {7, 1}}), (PageRanges{{2, 3}, {7, 1}}));
  EXPECT_EQ(common(PageRanges{{1, 4}, {8, 4}}, PageRanges{{3, 7}, {11, 1}}),
            (PageRanges{{3, 2}, {8, 2}, {11, 1}}));
}

}  // namespace
}  // namespace hangar::wasm
