#include "airways/matcher.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace hangar::airways {
namespace {

const ResourceRef kDeployment = {{"apps", "Deployment"}, "foo", "test"};
const ResourceRef kSecret = {{"", "Secret"}, "default", "example"};
const ResourceRef kNamespace = {{"", "Namespace"}, "", "foo"};
const ResourceRef kRole = {{"rbac.authorization.k8s.io", "ClusterRole"}, "", "system:basic"};

TEST(Matcher, MatchesWholePartsAndWildcards) {
  struct Case {
    std::string_view matcher;
    const ResourceRef& ref;
    bool matches;
  };
  const Case cases[] = {
      {"*", kDeployment, true},
      {"foo/Deployment.apps:test", kDeployment, true},
      {"Deployment.apps:test", kDeployment, true},
      {"Deployment.apps", kDeployment, true},
      {"*/*", kDeployment, true},
      {"*/Deployment.apps", kDeployment, true},
      {"foo/Deployment.apps:*", kDeployment, true},
      {"*/Deployment.apps:*", kDeployment, true},
      {"foo/*", kDeployment, true},
      {"*:test", kDeployment, true},
      {"Deployment", kDeployment, false},
      {"deployment.apps", kDeployment, false},
      {"bar/Deployment.apps", kDeployment, false},
      {"Deployment.custom:test", kDeployment, false},
      {"Deployment.apps:other", kDeployment, false},
      {"bar/*", kDeployment, false},
      {"Secret", kSecret, true},
      {"default/Secret:example", kSecret, true},
      {"bar/Secret:example", kSecret, false},
      {"default/*", kSecret, true},
      {"*", kNamespace, true},
      {"Namespace", kNamespace, true},
      {"/Namespace:foo", kNamespace, true},
      {"foo/Namespace", kNamespace, false},
      {"/Secret", kSecret, false},
      {"ClusterRole.rbac.authorization.k8s.io:system:basic", kRole, true},
      {"ClusterRole.rbac.authorization.k8s.io:system", kRole, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.matcher);
    const Result<Matcher> matcher = Matcher::parse(c.matcher);
    ASSERT_TRUE(matcher) << matcher.error().message();
    EXPECT_EQ(matcher->matches(c.ref), c.matches);
    EXPECT_EQ(matcher->text(), c.matcher);
  }
}

TEST(Matcher, IsRefusedWhenItCouldNeverMatch) {
  for (const std::string_view text :
       {"", "/", "foo/", "Secret:", "foo/:name", "a/b/c", "Config*", "foo*/Secret", "Secret:a*",
        "**", ".apps", "Deployment.", "a:b/Secret", "foo / Secret", "Secret "}) {
    SCOPED_TRACE(text);
    const Result<Matcher> matcher = Matcher::parse(text);
    ASSERT_FALSE(matcher);
    EXPECT_EQ(matcher.error().kind(), ErrorKind::InvalidInput);
  }
}

TEST(Matcher, SaysWhatIsWrong) {
  EXPECT_EQ(
      Matcher::parse("Config*").error().message(),
      "expected [namespace/]Kind.group[:name], found \"Config*\": kind \"Config*\" is neither "
      "`*` nor a whole kind");
}

TEST(AnyMatches, NeedsOne) {
  const std::vector<Matcher> matchers = {Matcher::parse("bar/*").value(),
                                         Matcher::parse("Secret").value()};

  EXPECT_TRUE(any_matches(matchers, kSecret));
  EXPECT_FALSE(any_matches(matchers, kDeployment));
  EXPECT_FALSE(any_matches({}, kSecret));
}

}  // namespace
}  // namespace hangar::airways
