#include "http/authority.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace hangar::http {
namespace {

TEST(Authority, HasOneFormForEachSpelling) {
  for (const auto& [text, form] :
       {std::pair<std::string_view, std::string_view>{"acme.example.org", "acme.example.org"},
        {"ACME.Example.org", "acme.example.org"},
        {"acme.example.org.", "acme.example.org."},
        {"acme.example.org:443", "acme.example.org:443"},
        {"acme.example.org.:65535", "acme.example.org.:65535"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"my_host:1", "my_host:1"},
        {"registry:5000", "registry:5000"},
        {"1and1.example", "1and1.example"},
        {"10.example", "10.example"},
        {"10.0.0.7:80", "10.0.0.7:80"},
        {"[::1]", "[::1]"},
        {"[FD00:0:0::01]:8443", "[fd00::1]:8443"},
        {"[::FFFF:127.0.0.1]", "[::ffff:127.0.0.1]"},
        {"[::ffff:7f00:1]", "[::ffff:127.0.0.1]"}}) {
    const Result<Authority> authority = parse_authority(text);
    ASSERT_TRUE(authority) << text << ": " << authority.error().message();
    EXPECT_EQ(authority->to_string(), form);
    EXPECT_EQ(parse_authority(form).value(), *authority) << text;
  }
}

TEST(Authority, TellsItsParts) {
  const Authority name = parse_authority("Acme.example.org:8443").value();
  EXPECT_EQ(name.host, "acme.example.org");
  EXPECT_EQ(name.port, 8443);
  EXPECT_EQ(name.kind, Authority::Kind::Name);

  const Authority address = parse_authority("[fd00::1]").value();
  EXPECT_EQ(address.host, "fd00::1");
  EXPECT_FALSE(address.port);
  EXPECT_EQ(address.kind, Authority::Kind::Ipv6);
  EXPECT_EQ(parse_authority("10.0.0.7").value().kind, Authority::Kind::Ipv4);
}

TEST(Authority, IsNotWhatParsersReadDifferently) {
  const std::string label(64, 'a');
  for (const std::string& text :
       {std::string(), std::string("."), std::string(":443"), std::string("a..b"),
        std::string("a.b.."), std::string("-a.example.org"), std::string("a-.example.org"), label,
        std::string("me@acme.example.org"), std::string("acme.example.org@evil.example.org"),
        std::string("acme.example.org:"), std::string("acme.example.org:0"),
        std::string("acme.example.org:0443"), std::string("acme.example.org:65536"),
        std::string("acme.example.org:443:1"), std::string("acme.example.org:+1"),
        std::string("acme.example.org:-1"), std::string("acme.example.org:80junk"),
        std::string("acme%2eexample.org"), std::string("acme.example.org\\"),
        std::string("acme.example.org/"), std::string("acme.example.org?"),
        std::string("acme.example.org#"), std::string("acme example.org"),
        std::string("acme.example.org\r\n"), std::string("acme.example.org\0", 17),
        std::string("b\xc3\xbc"
                    "cher.example"),
        std::string("*.example.org"),
        // Unusual forms of 127.0.0.1 and other addresses.
        std::string("2130706433"), std::string("0x7f000001"), std::string("127.1"),
        std::string("127.0.0.01"), std::string("0177.0.0.1"), std::string("127.0.0.256"),
        std::string("127.0.0.1."), std::string("a.0x7f"), std::string("a.1"), std::string("0x"),
        // Not an IPv6 address in brackets.
        std::string("::1"), std::string("["), std::string("[]"), std::string("[::1"),
        std::string("::1]"), std::string("[::1]x"), std::string("[::1]x:443"),
        std::string("[::1]:"), std::string("[::1]:0443"), std::string("[[::1]]"),
        std::string("[::.1]"), std::string("[::."), std::string("[v1.a]"),
        std::string("[127.0.0.1]"), std::string("[fe80::1%25eth0]"), std::string("[fe80::1%eth0]"),
        std::string("[::1\0]", 6), std::string("[example.org]")}) {
    const Result<Authority> authority = parse_authority(text);
    ASSERT_FALSE(authority) << text;
    EXPECT_EQ(authority.error().kind(), ErrorKind::InvalidInput) << text;
  }
}

TEST(Authority, TakesNamesUpToTheBoundsOfDns) {
  const std::string label(63, 'a');
  const std::string name = label + "." + label + "." + label + "." + std::string(61, 'a');

  ASSERT_EQ(name.size(), 253U);
  EXPECT_TRUE(parse_authority(name));
  EXPECT_TRUE(parse_authority(name + "."));
  EXPECT_FALSE(parse_authority(name + "a"));
}

TEST(Authority, RepeatsNoPasswordInAnError) {
  const Result<Authority> authority = parse_authority("me:hunter2@acme.example.org");

  ASSERT_FALSE(authority);
  EXPECT_EQ(authority.error().message().find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace hangar::http
