#include "base/packing.h"

#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace hangar {
namespace {

enum class Color : std::uint8_t { Red, Blue };

TEST(Packing, EveryTypeComesOutAsItWentIn) {
  Packer packer;
  packer(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
         std::numeric_limits<std::int64_t>::min(), -1, true, Color::Blue, -0.5,
         Duration(std::chrono::seconds(-3)), std::string("a\0b", 3), std::string_view());

  std::uint64_t zero = 1;
  std::uint64_t largest = 0;
  std::int64_t smallest = 0;
  int negative = 0;
  bool yes = false;
  Color color = Color::Red;
  double real = 0;
  Duration duration{};
  std::string text;
  std::string nothing = "x";
  const PackedBytes bytes = packer.bytes();
  Unpacker unpacker(bytes);
  unpacker(zero, largest, smallest, negative, yes, color, real, duration, text, nothing);

  EXPECT_EQ(zero, 0U);
  EXPECT_EQ(largest, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(smallest, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(negative, -1);
  EXPECT_TRUE(yes);
  EXPECT_EQ(color, Color::Blue);
  EXPECT_EQ(real, -0.5);
  EXPECT_EQ(duration, std::chrono::seconds(-3));
  EXPECT_EQ(text, std::string("a\0b", 3));
  EXPECT_EQ(nothing, "");
}

TEST(Packing, ListsHaveTheirLength) {
  const std::vector<std::string> list = {"one", "", "three"};
  Packer packer;
  packer.each(list, [&](const std::string& item) { packer(item); });
  packer(7);

  std::vector<std::string> unpacked = {"before"};
  int behind = 0;
  const PackedBytes bytes = packer.bytes();
  Unpacker unpacker(bytes);
  unpacker.each(unpacked, [&](std::string& item) { unpacker(item); });
  unpacker(behind);

  EXPECT_EQ(unpacked, list);
  EXPECT_EQ(behind, 7);
}

TEST(Packing, SmallNumbersAreOneByte) {
  Packer packer;
  packer(127, 0, true);
  EXPECT_EQ(packer.bytes().size(), 3U);
}

TEST(Packing, ATextIsReadWhereItLies) {
  Packer packer;
  packer(std::string_view("key"));
  const PackedBytes bytes = packer.bytes();

  std::string_view key;
  Unpacker unpacker(bytes);
  unpacker(key);

  EXPECT_EQ(key, "key");
  EXPECT_EQ(key.data(), bytes.data() + 1);
}

}  // namespace
}  // namespace hangar
