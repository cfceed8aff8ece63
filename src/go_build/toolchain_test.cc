#include "go_build/toolchain.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::go_build {
namespace {

using testing::HasSubstr;

TEST(Toolchain, ThatWasTestedIsTakenWithoutAWord) {
  for (const char* version : {"go1.26", "go1.26.8", "go1.26rc1"}) {
    EXPECT_EQ(check_toolchain(version).value(), "") << version;
  }
}

TEST(Toolchain, ThatWasNotTestedIsTakenWithAWarning) {
  for (const char* version : {"go1.24", "go1.25.3", "go1.27rc2", "devel go1.28-0123abcd"}) {
    const Result<std::string> warning = check_toolchain(version);

    ASSERT_TRUE(warning) << version;
    EXPECT_THAT(*warning, HasSubstr(version));
    EXPECT_THAT(*warning, HasSubstr("Go 1.26"));
  }
}

TEST(Toolchain, ThatCannotMakeGuestsIsRefused) {
  for (const char* version : {"go1.23.4", "go1.2", "go2.0", "go1.", "go1.x", "", "gccgo"}) {
    const Result<std::string> refused = check_toolchain(version);

    ASSERT_FALSE(refused) << version;
    EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(refused.error().message(), HasSubstr("Go 1.26")) << version;
  }
}

}  // namespace
}  // namespace hangar::go_build
