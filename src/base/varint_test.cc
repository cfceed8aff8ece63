#include "base/varint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace hangar {
namespace {

TEST(Varint, ComesBackAsItWasAppended) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                                    std::uint64_t{1} << 62U, std::uint64_t{1} << 63U, kMost}) {
    std::string bytes;
    append_varint(bytes, value);
    bytes += "rest";
    std::string_view rest = bytes;

    EXPECT_EQ(take_varint(rest), value);
    EXPECT_EQ(rest, "rest");
  }
}

TEST(Varint, IsNotTakenFromWhatEndsBefore) {
  for (const std::string_view bytes : {std::string_view(), std::string_view("\x80\x80")}) {
    std::string_view rest = bytes;
    EXPECT_EQ(take_varint(rest), std::nullopt);
    EXPECT_EQ(rest, bytes);
  }
}

TEST(Varint, HasOneFormOnly) {
  std::string_view padded("\x81\x00", 2);
  EXPECT_EQ(take_varint(padded), std::nullopt);
}

TEST(Varint, HasNoMoreThan64Bits) {
  std::string_view large = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
  EXPECT_EQ(take_varint(large), std::nullopt);
}

}  // namespace
}  // namespace hangar
