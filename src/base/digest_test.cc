#include "base/digest.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace hangar {
namespace {

// FIPS 180-4, appendices A and B.
constexpr std::string_view kAbcSha256 =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kAbcSha1 = "a9993e364706816aba3e25717850c26c9cd0d89d";

TEST(Digest, AgreesWithThePublishedVectors) {
  EXPECT_EQ(sha256_hex("abc"), kAbcSha256);
  EXPECT_EQ(sha1_hex("abc"), kAbcSha1);
}

TEST(Digest, DoesNotDependOnTheCutsBetweenPieces) {
  Sha256 hash;
  hash.add("a");
  Sha256 moved = std::move(hash);
  moved.add("");
  moved.add("bc");

  EXPECT_EQ(to_hex(moved.finish()), kAbcSha256);
}

// RFC 4231, test case 2.
TEST(Digest, AgreesWithThePublishedHmac) {
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", {"what do ya want ", "for nothing?"})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Digest, KnowsItsOwnHexadecimalForm) {
  EXPECT_TRUE(is_sha256_hex(kAbcSha256));
  EXPECT_FALSE(is_sha256_hex(kAbcSha256.substr(1)));
  EXPECT_FALSE(is_sha256_hex(std::string(kAbcSha256) + "0"));
  EXPECT_FALSE(is_sha256_hex(std::string(63, '0') + "A"));
  EXPECT_FALSE(is_sha256_hex(std::string(63, '0') + "g"));
}

}  // namespace
}  // namespace hangar
