#include "modules/module_policy.h"

#include "base/result.h"
#include "modules/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {
namespace {

using testing::HasSubstr;

// The rule that decides about a reference: its prefix, "default", or the error.
std::string rule_of(std::string_view reference, const std::vector<std::string_view>& prefixes) {
  std::vector<PolicyRule> rules;
  rules.reserve(prefixes.size());
  for (const std::string_view prefix : prefixes)
    rules.push_back({.prefix = policy_prefix(prefix).value()});
  const ModulePolicy policy(std::move(rules), {});
  const Result<std::size_t> found = policy.find(Reference::parse(reference).value());
  if (!found) return found.error().message();
  const std::string& prefix = policy.rule(*found).prefix;
  return prefix.empty() ? "default" : prefix;
}

TEST(ModulePolicy, ThePrefixFitsAtTheEndOfASegmentOnly) {
  constexpr std::string_view kTeam = "oci://r.example/team";
  EXPECT_EQ(rule_of("oci://r.example/team/web:v1", {kTeam}), kTeam);
  EXPECT_EQ(rule_of("oci://r.example/team/web:v1", {"oci://r.example/team/"}), kTeam);
  EXPECT_EQ(rule_of("oci://r.example/team:v1", {kTeam}), kTeam);
  EXPECT_EQ(rule_of("oci://r.example/team@sha256:" + std::string(64, 'a'), {kTeam}), kTeam);
  EXPECT_EQ(rule_of("oci://r.example/teams/web", {kTeam}), "default");
  EXPECT_EQ(rule_of("oci://r.example/tea/team", {kTeam}), "default");
  EXPECT_EQ(rule_of("oci://r.example.org/team", {"oci://r.example"}), "default");
  EXPECT_EQ(rule_of("oci://r.example:5000/team", {"oci://r.example"}), "default");
  EXPECT_EQ(rule_of("https://r.example/team", {kTeam}), "default");
  EXPECT_EQ(rule_of("configmap://team/m/key", {"configmap://team"}), "configmap://team");
  EXPECT_EQ(rule_of("configmap://teams/m", {"configmap://team"}), "default");
  EXPECT_EQ(rule_of("/srv/modules/m.wasm", {"file:///srv/modules"}), "file:///srv/modules");
}

TEST(ModulePolicy, TheLongestPrefixDecides) {
  const std::vector<std::string_view> prefixes = {"oci://", "oci://r.example/team/web",
                                                  "oci://r.example", "oci://r.example/team"};
  EXPECT_EQ(rule_of("oci://r.example/team/web:v1", prefixes), "oci://r.example/team/web");
  EXPECT_EQ(rule_of("oci://r.example/team/api:v1", prefixes), "oci://r.example/team");
  EXPECT_EQ(rule_of("oci://r.example/other", prefixes), "oci://r.example");
  EXPECT_EQ(rule_of("oci://other.example/team", prefixes), "oci://");
  EXPECT_EQ(rule_of("https://r.example/team", prefixes), "default");
}

TEST(ModulePolicy, NoSpellingOfTheSameServerEvadesARule) {
  for (const std::string_view spelling :
       {"oci://R.Example/team/web", "OCI://r.example:443/team/web", "oci://r.example./team/web"})
    EXPECT_EQ(rule_of(spelling, {"oci://r.example/team"}), "oci://r.example/team") << spelling;
  EXPECT_EQ(rule_of("oci://nginx", {"oci://docker.io"}), "oci://docker.io");
  EXPECT_EQ(rule_of("oci://docker.io/team/web", {"oci://index.docker.io/team"}),
            "oci://docker.io/team");
  for (const std::string_view spelling :
       {"https://M.example/team/x.wasm", "https://user:pass@m.example/team/x.wasm",
        "https://m.example:443/team/x.wasm", "HTTPS://m.example./team/x.wasm?a=/b",
        "https://m.example/t%65am/x.wasm"})
    EXPECT_EQ(rule_of(spelling, {"https://m.example/team"}), "https://m.example/team") << spelling;
  EXPECT_EQ(rule_of("https://m.example:8443/team/x", {"https://m.example/team"}), "default");
  for (const std::string_view spelling : {"https://[fd00::1]/x", "https://[FD00:0:0::01]:443/x"})
    EXPECT_EQ(rule_of(spelling, {"https://[FD00::1]/"}), "https://[fd00::1]") << spelling;
  // As libcurl reads them, these are spellings of the same server, too.
  for (const std::string_view spelling :
       {"https://m.example:0443/team/x", "https://127.1/x", "https://2130706433/x",
        "oci://r.example:00443/team/web", "oci://0x7f.0.0.1/team/web"})
    EXPECT_FALSE(Reference::parse(spelling)) << spelling;
}

TEST(ModulePolicy, RefusesUrlsThatCanBeReadInTwoWays) {
  for (const std::string_view url :
       {"https://m.example/other/../team/x", "https://m.example//team/x",
        "https://m.example/./team/x", "https://m.example/a%2Fteam", "https://m.example/%2e%2e/team",
        "https://m.example/a%5cteam", "https://m.example/a%252fteam", "https://m.example/%zz"}) {
    EXPECT_THAT(rule_of(url, {"https://m.example/team"}), HasSubstr("read in two ways")) << url;
    EXPECT_EQ(rule_of(url, {"oci://r.example"}), "default") << "no rule is about such URLs";
  }
}

TEST(ModulePolicy, SaysWhatIsWrongWithAPrefix) {
  const auto refusal = [](std::string_view text) {
    const Result<std::string> prefix = policy_prefix(text);
    return prefix ? "accepted as " + *prefix : prefix.error().message();
  };
  EXPECT_EQ(refusal("HTTPS://M.example:443/Team/"), "accepted as https://m.example/Team");
  EXPECT_EQ(refusal("configmap://"), "accepted as configmap://");
  EXPECT_THAT(refusal("registry.example.com/team"), HasSubstr("must begin with oci://"));
  EXPECT_THAT(refusal("ftp://x"), HasSubstr("must begin with oci://"));
  EXPECT_THAT(refusal("oci://team/web"), HasSubstr("must name the registry"));
  EXPECT_THAT(refusal("oci://r.example/team:v1"), HasSubstr("without a tag"));
  EXPECT_THAT(refusal("oci://r.example/team@sha256:aa"), HasSubstr("a tag or a digest"));
  EXPECT_THAT(refusal("oci://r.example/*"), HasSubstr("without *"));
  EXPECT_THAT(refusal("https://m.example/a/../b"), HasSubstr("plain path"));
  EXPECT_THAT(refusal("https:///team"), HasSubstr("has no host"));
  EXPECT_THAT(refusal("https://m.example:0443/team"), HasSubstr("the port is not"));
  EXPECT_THAT(refusal("oci://127.1/team"), HasSubstr("the host is neither"));
  EXPECT_THAT(refusal("file://srv"), HasSubstr("file:///absolute/path"));
  EXPECT_THAT(refusal("https://m.example/a b"), HasSubstr("without spaces"));
}

}  // namespace
}  // namespace hangar::modules
