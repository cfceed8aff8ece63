#include "http/internal/proxy.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

namespace hangar::http::internal {
namespace {

ProxyEnvironment environment(std::map<std::string, std::string> variables) {
  return ProxyEnvironment([variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST(ProxyEnvironment, HasOneForEachProtocol) {
  const auto both = environment({{"http_proxy", "http://a:1"}, {"HTTPS_PROXY", "http://b:1"}});
  const auto all = environment({{"ALL_PROXY", "http://c:1"}, {"https_proxy", "http://d:1"}});
  const auto none = environment({{"HTTP_PROXY", "http://from-a-header:1"}});

  EXPECT_EQ(both.proxy_for("http", "example.com"), "http://a:1");
  EXPECT_EQ(both.proxy_for("https", "example.com"), "http://b:1");
  EXPECT_EQ(all.proxy_for("http", "example.com"), "http://c:1");
  EXPECT_EQ(all.proxy_for("https", "example.com"), "http://d:1");
  EXPECT_EQ(none.proxy_for("http", "example.com"), "");
}

TEST(ProxyEnvironment, ExemptsWhatNoProxyNames) {
  struct Case {
    std::string_view no_proxy;
    std::string_view host;
    bool is_exempt;
  };
  for (const Case& one : {
           Case{"", "example.com", false},
           Case{"*", "example.com", true},
           Case{"example.com", "example.com", true},
           Case{"example.com", "EXAMPLE.com", true},
           Case{"example.com", "example.com.", true},
           Case{"example.com", "a.example.com", true},
           Case{".example.com", "a.example.com", true},
           Case{".example.com", "example.com", true},
           Case{"example.com", "badexample.com", false},
           Case{"a.example.com", "example.com", false},
           Case{"other.com, example.com", "example.com", true},
           Case{"other.com example.com", "example.com", true},
           Case{",,", "example.com", false},
           Case{".", "example.com", false},
           Case{"10.0.0.0/8", "10.96.0.1", true},
           Case{"10.0.0.0/8", "11.0.0.1", false},
           Case{"10.96.0.1", "10.96.0.1", true},
           Case{"10.96.0.1", "10.96.0.10", false},
           Case{"0.1", "10.96.0.1", false},
           Case{"fd00::/8", "fd12::1", true},
           Case{"10.0.0.0/33", "10.0.0.1", false},
           Case{".svc,.cluster.local", "registry.team.svc", true},
       }) {
    const auto tested =
        environment({{"http_proxy", "http://p"}, {"no_proxy", std::string(one.no_proxy)}});

    EXPECT_EQ(tested.proxy_for("http", one.host).empty(), one.is_exempt)
        << one.no_proxy << " " << one.host;
  }
}

}  // namespace
}  // namespace hangar::http::internal
