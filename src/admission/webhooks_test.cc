#include "admission/webhooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace hangar::admission {
namespace {

using ::testing::ElementsAre;

TEST(WebhookUrl, NamesAServerInItsOnlySpelling) {
  EXPECT_EQ(parse_url("https://Hangar.example:9443/").value().url, "https://hangar.example:9443");
  EXPECT_EQ(parse_url("https://[FD00:0::01]:9443").value().url, "https://[fd00::1]:9443");
  EXPECT_EQ(parse_url("https://192.0.2.1").value().url, "https://192.0.2.1");
}

TEST(WebhookUrl, IsForACertificateWithTheServersName) {
  EXPECT_THAT(parse_url("https://hangar.example:9443").value().server_names(),
              ElementsAre("hangar.example"));
  EXPECT_THAT(parse_url("https://[fd00::1]:9443").value().server_names(), ElementsAre("fd00::1"));
  EXPECT_THAT(parse_service("system/hangar:9443").value().server_names(),
              ElementsAre("hangar.system.svc"));
}

TEST(WebhookUrl, HasNoPathNoUserAndAnOrdinaryPort) {
  for (const std::string_view text :
       {"", "hangar.example", "http://hangar.example", "https://", "https:///", "https://h/path",
        "https://h//", "https://h?q", "https://h#f", "https://me@h", "https://h:0",
        "https://h:", "https://h:0443", "https://h:65536", "https://h:80:90", "https://[::1]x",
        "https://a%2eb", "https://2130706433"}) {
    const Result<Reach> reach = parse_url(text);
    ASSERT_FALSE(reach) << text;
    EXPECT_EQ(reach.error().kind(), ErrorKind::InvalidInput) << text;
  }
}

}  // namespace
}  // namespace hangar::admission
