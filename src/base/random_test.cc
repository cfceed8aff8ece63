#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace hangar {
namespace {

TEST(Random, KeysAndNumbersDiffer) {
  std::set<RandomKey> keys;
  std::set<std::uint64_t> numbers;
  constexpr std::size_t kDraws = 1000;

  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    keys.insert(random_key());
    numbers.insert(random_number());
  }

  // Two equal numbers of 64 bits among a thousand are seen once in 10^13 runs.
  EXPECT_EQ(keys.size(), kDraws);
  EXPECT_EQ(numbers.size(), kDraws);
}

TEST(Random, EachByteOfAKeyVaries) {
  RandomKey all_bits{};

  // Each byte lacks one bit of 64 draws once in 10^16 runs.
  for (int draw = 0; draw < 64; ++draw) {
    const RandomKey key = random_key();
    std::ranges::transform(all_bits, key, all_bits.begin(), std::bit_or());
  }

  EXPECT_TRUE(std::ranges::all_of(all_bits, [](unsigned byte) { return byte == 0xff; }));
}

TEST(Random, FillsExactlyWhatItIsGiven) {
  constexpr std::byte kMark{0x5a};
  std::array<std::byte, 66> bytes;
  bytes.fill(kMark);

  for (int draw = 0; draw < 64; ++draw)
    fill_random(std::span(bytes).subspan(1, 64));

  EXPECT_EQ(bytes.front(), kMark);
  EXPECT_EQ(bytes.back(), kMark);
  EXPECT_TRUE(std::ranges::any_of(std::span(bytes).subspan(1, 64),
                                  [](std::byte byte) { return byte != kMark; }));
  fill_random({});
}

// The kernel may return fewer bytes than requested.
TEST(Random, FillsMegabytesToTheirEnd) {
  std::vector<std::byte> bytes(std::size_t{8} << 20U);

  fill_random(bytes);

  constexpr std::size_t kPart = 64;
  for (std::size_t at = 0; at < bytes.size(); at += kPart) {
    const auto part = std::span(bytes).subspan(at, kPart);
    ASSERT_TRUE(std::ranges::any_of(part, [](std::byte byte) { return byte != std::byte{0}; }))
        << at;
  }
}

}  // namespace
}  // namespace hangar
