#include "http/address_policy.h"

#include "base/result.h"
#include "http/internal/network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::http {
namespace {

AddressPolicy public_and(const std::vector<std::string>& allowed) {
  return AddressPolicy::public_and(allowed).value();
}

// The verdict of every policy on one address.
struct Case {
  std::string_view address;
  bool by_default;    // The policy for strangers.
  bool with_private;  // The same with private ranges.
  bool to_admins;     // The policy for administrators.
};

constexpr Case kCases[] = {
    // Public.
    {"1.1.1.1", true, true, true},
    {"8.8.8.8", true, true, true},
    {"172.15.255.255", true, true, true},
    {"172.32.0.0", true, true, true},
    {"100.63.255.255", true, true, true},
    {"100.128.0.0", true, true, true},
    {"169.253.255.255", true, true, true},
    {"223.255.255.255", true, true, true},
    {"2606:4700::1111", true, true, true},
    {"2a00:1450:4001::1", true, true, true},
    {"::ffff:1.1.1.1", true, true, true},
    {"64:ff9b::1.1.1.1", true, true, true},
    {"2002:0101:0101::1", true, true, true},  // 6to4 of 1.1.1.1.
    // Private.
    {"10.91.37.201", false, true, true},
    {"10.255.255.255", false, true, true},
    {"172.16.91.201", false, true, true},
    {"172.31.255.255", false, true, true},
    {"192.168.91.201", false, true, true},
    {"100.64.0.201", false, true, true},
    {"100.127.255.255", false, true, true},
    {"fc00::1", false, true, true},
    {"fdff::1", false, true, true},
    {"::ffff:10.91.37.201", false, true, true},
    {"::10.91.37.201", false, true, true},
    {"64:ff9b::10.91.37.201", false, true, true},
    {"2002:0a5b:25c9::1", false, true, true},  // 6to4 of 10.91.37.201.
    // This host.
    {"127.0.0.1", false, false, true},
    {"127.255.255.254", false, false, true},
    {"::1", false, false, true},
    {"::ffff:127.0.0.1", false, false, true},
    {"::127.0.0.1", false, false, true},
    {"64:ff9b::127.0.0.1", false, false, true},
    {"64:ff9b::7f00:1", false, false, true},
    {"2002:7f00:0001::", false, false, true},
    {"0.0.0.0", false, false, true},
    {"0.1.2.3", false, false, true},
    {"::", false, false, true},
    {"::ffff:0.0.0.0", false, false, true},
    // Link-local, and where clouds serve credentials.
    {"169.254.169.254", false, false, false},
    {"169.254.0.1", false, false, false},
    {"::ffff:169.254.169.254", false, false, false},
    {"64:ff9b::169.254.169.254", false, false, false},
    {"2002:a9fe:a9fe::", false, false, false},
    {"fe80::1", false, false, false},
    {"febf::1", false, false, false},
    {"fe80::1%lo", false, false, false},
    {"fd00:ec2::254", false, false, false},
    {"100.100.100.200", false, false, false},
    {"168.63.129.16", false, false, false},
    {"192.0.0.192", false, false, false},
    // Addresses that belong to no host.
    {"192.0.0.1", false, false, true},
    {"192.0.2.1", false, false, true},
    {"192.88.99.1", false, false, true},
    {"198.18.0.1", false, false, true},
    {"198.19.255.255", false, false, true},
    {"198.51.100.1", false, false, true},
    {"203.0.113.1", false, false, true},
    {"224.0.0.1", false, false, true},
    {"239.255.255.255", false, false, true},
    {"240.0.0.1", false, false, true},
    {"255.255.255.255", false, false, true},
    {"64:ff9b:1::1", false, false, true},
    {"100::1", false, false, true},
    {"2001::1", false, false, true},
    {"2001:db8::1", false, false, true},
    {"3fff::1", false, false, true},
    {"4000::1", false, false, true},
    {"fec0::1", false, false, true},
    {"ff02::1", false, false, true},
};

TEST(AddressPolicy, KnowsEveryKindOfAddress) {
  const AddressPolicy strangers = public_and({});
  const AddressPolicy with_private = public_and({"private"});
  const AddressPolicy admins = AddressPolicy::no_metadata();
  for (const Case& one : kCases) {
    EXPECT_EQ(strangers.allows(one.address), one.by_default) << one.address;
    EXPECT_EQ(with_private.allows(one.address), one.with_private) << one.address;
    EXPECT_EQ(admins.allows(one.address), one.to_admins) << one.address;
    EXPECT_TRUE(AddressPolicy().allows(one.address)) << one.address;
  }
}

TEST(AddressPolicy, RefusesWhatIsNotAnAddress) {
  for (const char* text :
       {"", "example.com", "1.1.1", "0x7f.1", "2130706433", "1.1.1.1 ", "[::1]"}) {
    EXPECT_FALSE(public_and({}).allows(text)) << text;
    EXPECT_FALSE(AddressPolicy::no_metadata().allows(text)) << text;
  }
}

TEST(AddressPolicy, AllowsWhatTheAdministratorNames) {
  const AddressPolicy services = public_and({"10.96.0.0/12", "fd12:3456::/64", "127.0.0.1"});
  EXPECT_TRUE(services.allows("10.96.0.1"));
  EXPECT_TRUE(services.allows("10.111.255.255"));
  EXPECT_TRUE(services.allows("::ffff:10.96.0.1"));
  EXPECT_TRUE(services.allows("64:ff9b::10.96.0.1"));
  EXPECT_FALSE(services.allows("10.95.255.255"));
  EXPECT_FALSE(services.allows("10.112.0.0"));
  EXPECT_TRUE(services.allows("fd12:3456::1"));
  EXPECT_FALSE(services.allows("fd12:3456:0:1::1"));
  EXPECT_TRUE(services.allows("127.0.0.1"));
  EXPECT_FALSE(services.allows("127.0.0.2"));
  EXPECT_TRUE(services.allows("1.1.1.1"));

  // A range never includes the addresses that serve credentials.
  const AddressPolicy wide = public_and({"0.0.0.0/0", "::/0"});
  EXPECT_TRUE(wide.allows("127.0.0.1"));
  EXPECT_TRUE(wide.allows("100.100.100.100"));
  EXPECT_FALSE(wide.allows("100.100.100.200"));
  EXPECT_FALSE(wide.allows("169.254.169.254"));
  EXPECT_FALSE(wide.allows("::ffff:169.254.169.254"));
  EXPECT_FALSE(wide.allows("fd00:ec2::254"));
  EXPECT_FALSE(wide.allows("fe80::1"));
  EXPECT_TRUE(public_and({"169.254.169.254"}).allows("169.254.169.254"));
}

TEST(AddressPolicy, RefusesTheHostsOwnAddressesAmongPrivateOnes) {
  ifaddrs* found = nullptr;
  ASSERT_EQ(::getifaddrs(&found), 0);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(found, &::freeifaddrs);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                text.data(), text.size());
    EXPECT_FALSE(public_and({"private"}).allows(text.data())) << text.data();
    EXPECT_TRUE(public_and({text.data()}).allows(text.data())) << text.data();
  }
}

TEST(AddressPolicy, RemovesTheAddressesThatItRefuses) {
  const std::vector<std::string> all = {"1.1.1.1", "127.0.0.1", "10.96.0.1", "8.8.8.8", "x"};
  std::vector<std::string> to_strangers = all;
  std::vector<std::string> to_anybody = all;

  public_and({"10.96.0.0/12"}).remove_refused(to_strangers);
  AddressPolicy().remove_refused(to_anybody);

  EXPECT_EQ(to_strangers, (std::vector<std::string>{"1.1.1.1", "10.96.0.1", "8.8.8.8"}));
  EXPECT_EQ(to_anybody, all);
}

TEST(AddressPolicy, SaysWhatIsNotANetwork) {
  for (const std::string text : {"", "public", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "10/8",
                                 "10.0.0.0/-1", "::/129", "example.com", "10.0.0.0/8,private"}) {
    const auto policy = AddressPolicy::public_and(std::vector{text});
    ASSERT_FALSE(policy.has_value()) << text;
    EXPECT_EQ(policy.error().kind(), ErrorKind::InvalidInput);
  }
}

}  // namespace
}  // namespace hangar::http
