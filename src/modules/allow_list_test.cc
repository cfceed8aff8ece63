#include "modules/allow_list.h"

#include "base/result.h"
#include "modules/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::modules {
namespace {

using testing::HasSubstr;

Result<> check(const AllowList& list, std::string_view text) {
  return list.check(HANGAR_TRY(Reference::parse(text)));
}

TEST(AllowList, WithoutGlobsAllowsEverything) {
  EXPECT_TRUE(check(AllowList(), "https://example.com/a.wasm"));
}

TEST(AllowList, AllowsWhatOneOfItsGlobsFits) {
  const AllowList list({"oci://registry.example.com/flights/*", "configmap://team/*/*"});

  EXPECT_TRUE(check(list, "oci://registry.example.com/flights/backend:1"));
  EXPECT_TRUE(check(list, "configmap://team/machines/machine.js"));
  for (const std::string_view other :
       {"oci://registry.example.com/flights/deeper/backend", "oci://registry.example.com/other/it",
        "configmap://team/machines", "configmap://others/machines/machine.js",
        "https://example.com/oci://registry.example.com/flights/backend"}) {
    const Result<> checked = check(list, other);
    ASSERT_FALSE(checked) << other;
    EXPECT_EQ(checked.error().kind(), ErrorKind::InvalidInput);
    EXPECT_EQ(checked.error().message(), "module \"" + std::string(other) + "\" not allowed");
  }
}

TEST(AllowList, ComparesWhatAReferenceMeansAndNotHowItIsSpelt) {
  const AllowList hosts({"https://*.example.com/*", "oci://*.example.com/*"});
  EXPECT_TRUE(check(hosts, "https://files.example.com/a.wasm"));
  EXPECT_TRUE(check(hosts, "HTTPS://files.example.com/a.wasm"));
  EXPECT_TRUE(check(hosts, "https://user:secret@files.example.com/a.wasm"));
  for (const std::string_view other :
       {"https://evil.example.net?.example.com/a.wasm", "https://evil.example.net#.example.com/a",
        "https://evil.example.net/.example.com/a.wasm", "https://a.example.com@evil.example.net/a",
        "https://evil.example.net:1?x=.example.com/a.wasm"}) {
    EXPECT_FALSE(check(hosts, other)) << other;
  }
}

TEST(AllowList, NoSpellingOfAPathLeavesTheFolderOfAGlob) {
  const AllowList list(
      {"https://h.example/modules/*", "https://h.example/modules/*/*/*", "file:///modules/*"});
  EXPECT_TRUE(check(list, "file:///modules/a.wasm"));
  EXPECT_TRUE(check(list, "https://h.example/modules/a%20b.wasm"));
  EXPECT_TRUE(check(list, "https://h.example/modules/a/b/c.wasm"));
  for (const std::string_view other :
       {"https://h.example/modules/../uploads/evil.wasm", "file:///modules/..%2Fevil.wasm",
        "https://h.example/modules/..%2fuploads%2Fevil.wasm",
        "https://h.example/modules/%2e%2e/uploads/evil.wasm",
        "https://h.example/modules/..%5cevil.wasm", "https://h.example/modules/..%252fevil.wasm",
        "https://h.example/modules/..\\evil.wasm", "https://h.example/modules/a//evil.wasm"}) {
    const Result<> checked = check(list, other);
    ASSERT_FALSE(checked) << other;
    EXPECT_THAT(checked.error().message(), HasSubstr("not allowed: its path can be read in two"));
  }
  const std::string_view escaped = "https://h.example/projects/team%2Fweb/a.wasm";
  EXPECT_TRUE(check(AllowList({std::string(escaped)}), escaped)) << "named as it is";
  EXPECT_FALSE(check(AllowList({"https://h.example/projects/team%2Fweb/*"}), escaped));
}

TEST(AllowList, MatchesAPathByItsPathAndNotByItsQuery) {
  const AllowList list({"https://h.example/*/stable.wasm", "https://h.example/team/*-v1"});
  EXPECT_TRUE(check(list, "https://h.example/team/stable.wasm"));
  for (const std::string_view other :
       {"https://h.example/evil?/stable.wasm", "https://h.example/team/evil?x=-v1"})
    EXPECT_FALSE(check(list, other)) << other;

  // A signed URL, for example.
  EXPECT_TRUE(
      check(AllowList({"https://h.example/team/*"}), "https://h.example/team/a.wasm?expires=1"));
  EXPECT_TRUE(
      check(AllowList({"https://h.example/get?name=*"}), "https://h.example/get?name=a.wasm"));
}

TEST(AllowList, OfPlacesKnowsNoTagsAndNoQueries) {
  const AllowList list = AllowList({"oci://r.example:5000/team/a:1.*", "oci://r.example/b@sha256:*",
                                    "oci://r.example/c/*", "https://h.example/get?name=*"})
                             .of_places();

  for (const std::string_view place : {"oci://r.example:5000/team/a", "oci://r.example/b",
                                       "oci://r.example/c/d", "https://h.example/get"})
    EXPECT_TRUE(check(list, place)) << place;
  for (const std::string_view place : {"oci://r.example:5000/team", "oci://r.example/team/a",
                                       "oci://r.example/c", "https://h.example/put"})
    EXPECT_FALSE(check(list, place)) << place;
  EXPECT_TRUE(check(AllowList().of_places(), "https://h.example/put"));
}

TEST(AllowList, ShowsNoSecretOfWhatIsNotAllowed) {
  const auto checked =
      check(AllowList({"oci://*"}), "https://user:secret@host/a.wasm?token=secret");
  EXPECT_EQ(checked.error().message(), "module \"https://host/a.wasm?...\" not allowed");
}

TEST(AllowList, SeesAllOfAPath) {
  EXPECT_FALSE(check(AllowList({"a/*"}), std::string_view("a/b\0/c", 6)));
}

}  // namespace
}  // namespace hangar::modules
