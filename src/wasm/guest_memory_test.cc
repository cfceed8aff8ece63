#include "wasm/guest_memory.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hangar::wasm {
namespace {

class GuestMemoryTest : public testing::Test {
 protected:
  std::array<std::byte, 64> bytes_{};
  GuestMemory memory_{bytes_};
};

TEST_F(GuestMemoryTest, ReadsBackWhatItWrites) {
  ASSERT_TRUE(memory_.write_u32(0, 0xdeadbeef).has_value());
  ASSERT_TRUE(memory_.write_u64(56, 0x0123456789abcdef).has_value());
  ASSERT_TRUE(memory_.write(10, "abc").has_value());

  EXPECT_EQ(*memory_.read_u32(0), 0xdeadbeefU);
  EXPECT_EQ(*memory_.read_u32(56), 0x89abcdefU);  // Little-endian: the low half first.
  EXPECT_EQ(*memory_.read_u32(60), 0x01234567U);
  EXPECT_EQ(*memory_.read_string(10, 3), "abc");
  EXPECT_EQ(bytes_[0], std::byte{0xef});  // Little-endian.
}

TEST_F(GuestMemoryTest, RefusesWhatDoesNotLieInsideAtAll) {
  struct Range {
    std::uint32_t address;
    std::uint64_t size;
  };
  for (const Range range :
       {Range{61, 4}, Range{64, 1}, Range{65, 0}, Range{0, 65}, Range{0xffffffff, 1},
        Range{0xfffffff0, 0x10}, Range{1, ~0ULL}, Range{0, 1ULL << 32}}) {
    SCOPED_TRACE(range.address);
    EXPECT_FALSE(memory_.has_range(range.address, range.size));
    const auto got = memory_.range(range.address, range.size);
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().kind(), ErrorKind::GuestFault);
  }
  EXPECT_FALSE(memory_.read_u32(61).has_value());
  EXPECT_FALSE(memory_.write_u64(57, 0).has_value());
}

TEST_F(GuestMemoryTest, TheEndIsAnAddressOfNothing) {
  EXPECT_TRUE(memory_.has_range(64, 0));
  EXPECT_EQ(*memory_.read_string(64, 0), "");
}

}  // namespace
}  // namespace hangar::wasm
