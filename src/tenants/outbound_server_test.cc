#include "tenants/outbound_server.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace hangar::tenants {
namespace {

TEST(OutboundServer, HasOneFormForEachSpelling) {
  for (const auto& [text, form] :
       {std::pair<std::string_view, std::string_view>{"acme.example.org", "acme.example.org"},
        {"ACME.Example.org", "acme.example.org"},
        {"acme.example.org.", "acme.example.org"},
        {"acme.example.org:443", "acme.example.org"},
        {"acme.example.org:8443", "acme.example.org:8443"},
        {"acme.example.org.:8443", "acme.example.org:8443"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"my_host", "my_host"},
        {"10.0.0.7:1", "10.0.0.7:1"}}) {
    const Result<OutboundServer> server = parse_outbound_server(text);
    ASSERT_TRUE(server) << text << ": " << server.error().message();
    EXPECT_EQ(server->to_string(), form);
  }
}

TEST(OutboundServer, IsNotWhatParsersReadDifferently) {
  const std::string long_label(64, 'a');
  for (const std::string_view text :
       {std::string_view(""), std::string_view("."), std::string_view(":443"),
        std::string_view("a..b"), std::string_view("a.b.."), std::string_view("-a.example.org"),
        std::string_view("a-.example.org"), std::string_view(long_label),
        std::string_view("me@acme.example.org"),
        std::string_view("acme.example.org@evil.example.org"),
        std::string_view("acme.example.org:"), std::string_view("acme.example.org:0"),
        std::string_view("acme.example.org:0443"), std::string_view("acme.example.org:65536"),
        std::string_view("acme.example.org:443:1"), std::string_view("acme.example.org:+1"),
        std::string_view("acme%2eexample.org"), std::string_view("acme.example.org\\"),
        std::string_view("b\xc3\xbc"
                         "cher.example"),
        std::string_view("*.example.org"),
        // Unusual forms of 127.0.0.1.
        std::string_view("2130706433"), std::string_view("0x7f000001"), std::string_view("127.1"),
        std::string_view("127.0.0.01"), std::string_view("0177.0.0.1"),
        std::string_view("127.0.0.256"), std::string_view("a.0x7f"), std::string_view("[::1]"),
        std::string_view("[::ffff:127.0.0.1]:443"), std::string_view("::1")}) {
    const Result<OutboundServer> server = parse_outbound_server(text);
    ASSERT_FALSE(server) << text;
    EXPECT_EQ(server.error().kind(), ErrorKind::InvalidInput) << text;
  }
}

bool matches(std::string_view pattern, std::string_view server) {
  return OutboundPattern::parse(pattern).value().matches(parse_outbound_server(server).value());
}

TEST(OutboundPattern, MeansOneServerAndOnePort) {
  EXPECT_TRUE(matches("acme.example.org", "ACME.example.org.:443"));
  EXPECT_TRUE(matches("Acme.Example.org.", "acme.example.org"));
  EXPECT_FALSE(matches("acme.example.org", "acme.example.org:8443"));
  EXPECT_TRUE(matches("acme.example.org:8443", "acme.example.org:8443"));
  EXPECT_FALSE(matches("acme.example.org:8443", "acme.example.org"));
  EXPECT_FALSE(matches("acme.example.org", "not-acme.example.org"));
  EXPECT_FALSE(matches("acme.example.org", "www.acme.example.org"));
  EXPECT_FALSE(matches("acme.example.org", "acme.example.org.evil.example"));
  EXPECT_TRUE(matches("10.0.0.7", "10.0.0.7"));
}

TEST(OutboundPattern, HasAStarForOneLabel) {
  EXPECT_TRUE(matches("*.example.org", "a.example.org"));
  EXPECT_TRUE(matches("*.example.org:8200", "A.example.org.:8200"));
  EXPECT_FALSE(matches("*.example.org", "a.example.org:8200"));
  EXPECT_FALSE(matches("*.example.org", "example.org"));
  EXPECT_FALSE(matches("*.example.org", "a.b.example.org"));
  EXPECT_FALSE(matches("*.example.org", "aexample.org"));
  EXPECT_FALSE(matches("*.example.org", "a.example.org.evil.example"));
  EXPECT_EQ(OutboundPattern::parse("*.Example.org:8200")->to_string(), "*.example.org:8200");
}

TEST(OutboundPattern, HasAStarInNoOtherPlace) {
  for (const std::string_view text :
       {"*", "*.", "a.*.example.org", "a*.example.org", "**.example.org", "*.*.example.org",
        "*.10.0.0.7", "https://acme.example.org", "acme.example.org/path", "10.0.0.0/8", ""}) {
    EXPECT_FALSE(OutboundPattern::parse(text)) << text;
  }
}

}  // namespace
}  // namespace hangar::tenants
