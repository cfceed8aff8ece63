#include "go_build/program_place.h"

#include "base/result.h"
#include "go_build/build.h"
#include "io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp() is POSIX's.

#include <filesystem>
#include <string>

namespace hangar::go_build {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;

TEST(PossibleModules, AreTheLongestFirst) {
  EXPECT_THAT(possible_modules("example.com/a/b/cmd"),
              ElementsAre("example.com/a/b/cmd", "example.com/a/b", "example.com/a"));
  EXPECT_THAT(possible_modules("example.com/a"), ElementsAre("example.com/a"));
  EXPECT_THAT(possible_modules("example.com"), ElementsAre("example.com"));
  EXPECT_THAT(possible_modules(""), ElementsAre(""));
}

TEST(NameOf, IsTheLastPartOfThePlaceThatSaysSomething) {
  EXPECT_EQ(name_of("./cmd/manager"), "manager");
  EXPECT_EQ(name_of("./cmd/manager/"), "manager");
  EXPECT_EQ(name_of("/src/memo/cmd"), "memo");
  EXPECT_EQ(name_of("example.com/operator/v2/cmd@v2.1.0"), "operator");
  EXPECT_EQ(name_of("example.com/operator/v2/cmd/manager@v2.1.0"), "manager");
  EXPECT_EQ(name_of("example.com/operator/v2@latest"), "operator");
  EXPECT_EQ(name_of("v2"), "v2");
  EXPECT_EQ(name_of("cmd"), "cmd");
  EXPECT_EQ(name_of(".."), "operator");
  EXPECT_EQ(name_of("/"), "operator");
}

TEST(CopyTree, MakesFilesThatMayBeWrittenTo) {
  std::string pattern = (fs::temp_directory_path() / "hangar-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path place(pattern);
  fs::create_directories(place / "from/sub");
  ASSERT_TRUE(io::write_file(place / "from/go.mod", "module x\n"));
  ASSERT_TRUE(io::write_file(place / "from/sub/a.go", "package sub\n"));
  // With the permissions of the module cache.
  fs::permissions(place / "from/sub/a.go", fs::perms::owner_read);
  fs::permissions(place / "from/sub", fs::perms::owner_read | fs::perms::owner_exec);

  const Result<> copied = copy_tree(place / "from", place / "to");

  ASSERT_TRUE(copied) << copied.error().message();
  EXPECT_EQ(io::read_file(place / "to/sub/a.go", 100).value(), "package sub\n");
  EXPECT_TRUE(io::write_file(place / "to/sub/b.go", "package sub\n"));
  EXPECT_TRUE(io::write_file(place / "to/sub/a.go", "package other\n"));
  EXPECT_EQ(io::read_file(place / "from/sub/a.go", 100).value(), "package sub\n");
  EXPECT_FALSE(copy_tree(place / "nowhere", place / "to"));
  fs::permissions(place / "from/sub", fs::perms::owner_all);
  fs::remove_all(place);
}

}  // namespace
}  // namespace hangar::go_build
