#include "wasm/internal/usual_pages.h"

#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/written_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace hangar::wasm::internal {
namespace {

constexpr std::size_t kPages = 64;

// Memory as at the start of a run: none of it written.
class Memory {
 public:
  Memory()
      : address_(::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    ::madvise(address_, kPages * kPageBytes, MADV_NOHUGEPAGE);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::munmap(address_, kPages * kPageBytes); }

  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(address_), kPages * kPageBytes};
  }
  void write(std::initializer_list<std::uint32_t> pages) const {
    for (const std::uint32_t page : pages)
      bytes()[page * kPageBytes] = std::byte{1};
  }

 private:
  void* address_;
};

class UsualPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (written_.method() == WrittenPages::Method::None) GTEST_SKIP() << "no /proc";
  }
  void learn(std::initializer_list<std::uint32_t> pages) {
    const Memory memory;
    memory.write(pages);
    usual_.learn(written_, memory.bytes(), 8 * kPageBytes);
  }
  [[nodiscard]] PageRanges ready(std::size_t memory_bytes = kPages * kPageBytes) const {
    const Memory memory;
    usual_.make_ready(memory.bytes().first(memory_bytes));
    for (const std::byte byte : memory.bytes())
      EXPECT_EQ(byte, std::byte{0});
    return written_.find(memory.bytes());
  }

  const WrittenPages written_{WrittenPages::Method::Scan};
  UsualPages usual_;
};

TEST_F(UsualPagesTest, AreThoseThatTwoRunsWroteTo) {
  learn({3, 4, 9, 20});
  EXPECT_EQ(ready(), PageRanges{}) << "one run is no habit";
  learn({4, 9, 10, 21});

  EXPECT_EQ(ready(), (PageRanges{{4, 1}, {9, 1}}));

  learn({30});
  EXPECT_EQ(ready(), (PageRanges{{4, 1}, {9, 1}})) << "it asks twice and no more";
}

TEST_F(UsualPagesTest, BeyondTheMemoryAreLeftToTheGuest) {
  learn({1, 40});
  learn({1, 40});

  EXPECT_EQ(ready(20 * kPageBytes), (PageRanges{{1, 1}}));
}

TEST_F(UsualPagesTest, AreNoneIfTheyAreMany) {
  const auto many = {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U};
  learn(many);
  learn(many);

  EXPECT_EQ(ready(), PageRanges{});
}

}  // namespace
}  // namespace hangar::wasm::internal
