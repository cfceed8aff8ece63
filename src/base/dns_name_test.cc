#include "base/dns_name.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar {
namespace {

TEST(DnsName, TakesWhatTheApiServerTakes) {
  for (const std::string_view name : {"a", "0", "a-b", "a.b", "kube-root-ca.crt", "1.2-3.x--y"})
    EXPECT_TRUE(is_dns_subdomain(name)) << name;
  EXPECT_TRUE(is_dns_subdomain(std::string(kDnsNameBytesMax, 'a')));
}

TEST(DnsName, RefusesWhatTheApiServerRefuses) {
  for (const std::string_view name : {"", ".", "-", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a-.b",
                                      "A", "a_b", "a/b", "a b", "\xc3\xa4"})
    EXPECT_FALSE(is_dns_subdomain(name)) << name;
  EXPECT_FALSE(is_dns_subdomain(std::string(kDnsNameBytesMax + 1, 'a')));
}

}  // namespace
}  // namespace hangar
