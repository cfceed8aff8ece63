#include "base/base64.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar {
namespace {

TEST(Base64, EncodesTheExamplesOfTheRfc) {
  EXPECT_EQ(base64_encode(""), "");
  EXPECT_EQ(base64_encode("f"), "Zg==");
  EXPECT_EQ(base64_encode("fo"), "Zm8=");
  EXPECT_EQ(base64_encode("foo"), "Zm9v");
  EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int value = 0; value < 256; ++value) {
    bytes += static_cast<char>(value);
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
  }
}

TEST(Base64, SkipsWhiteSpaceAndGoesOnAfterPadding) {
  EXPECT_EQ(base64_decode("Zm9v\r\n YmFy\n"), "foobar");
  EXPECT_EQ(base64_decode("Zg==Zm8="), "ffo");
}

TEST(Base64, RefusesWhatItIsNot) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zg=x", "====", "Z===", "Zm9v!", "Zm-_"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hangar
