#include "modules/allow_list.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::modules {
namespace {

TEST(AllowList, WithoutGlobsAllowsEverything) {
  EXPECT_TRUE(AllowList().check("https://example.com/a.wasm"));
}

TEST(AllowList, AllowsWhatOneOfItsGlobsFits) {
  const AllowList list({"oci://registry.example.com/flights/*", "configmap://team/*/*"});

  EXPECT_TRUE(list.check("oci://registry.example.com/flights/backend:1"));
  EXPECT_TRUE(list.check("configmap://team/machines/machine.js"));
  for (const std::string_view other :
       {"oci://registry.example.com/flights/deeper/backend", "oci://registry.example.com/other/it",
        "configmap://team/machines", "configmap://others/machines/machine.js",
        "https://example.com/oci://registry.example.com/flights/backend", ""}) {
    const Result<> checked = list.check(other);
    ASSERT_FALSE(checked) << other;
    EXPECT_EQ(checked.error().kind(), ErrorKind::InvalidInput);
    EXPECT_EQ(checked.error().message(), "module \"" + std::string(other) + "\" not allowed");
  }
}

TEST(AllowList, SeesAllOfTheReference) {
  EXPECT_FALSE(AllowList({"a/*"}).check(std::string_view("a/b\0/c", 6)));
}

}  // namespace
}  // namespace hangar::modules
