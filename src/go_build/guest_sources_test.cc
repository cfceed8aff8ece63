#include "go_build/guest_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::go_build {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// No assembly: the assembler runs in the directory of the package, which exists only in
// the overlay.
TEST(GuestSources, AreAllGoFilesOfThePackageAndNoTests) {
  std::vector<std::string_view> names;
  for (const GuestSource& source : guest_sources()) {
    names.push_back(source.name);
    EXPECT_TRUE(source.name.ends_with(".go")) << source.name;
    EXPECT_TRUE(source.text.contains("\npackage guest\n") ||
                source.text.starts_with("package guest\n"))
        << source.name;
  }

  EXPECT_THAT(names, AllOf(Contains("guest_wasip1.go"), Contains("transport_wasip1.go"),
                           Contains("hook_wasip1.go")));
  EXPECT_THAT(names, Not(Contains(HasSubstr("_test.go"))));
}

TEST(GuestSources, HaveTheOptionsAsAFileOfPackageManager) {
  const std::string text = in_package_manager(manager_options_source());

  EXPECT_THAT(text, AllOf(HasSubstr("package manager\n"),
                          HasSubstr("func hangarOptions(options Options) Options {")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("package hangar\n")), Not(HasSubstr("manager.Options")),
                          Not(HasSubstr("controller-runtime/pkg/manager\""))));
}

TEST(GuestSources, AskForNoOtherToolchainThanTheProgram) {
  EXPECT_EQ(guest_go_mod(), "module hangar.dev/sdk/go/hangar\n\ngo 1.24\n");
}

TEST(GuestSources, TellTheGuestWhereMainIs) {
  EXPECT_THAT(main_source(),
              AllOf(HasSubstr("\nimport hangarGuest \"hangar.dev/sdk/go/hangar/guest\"\n"),
                    HasSubstr("hangarGuest.Main = main")));
}

}  // namespace
}  // namespace hangar::go_build
