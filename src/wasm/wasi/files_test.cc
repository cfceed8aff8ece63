#include "wasm/wasi/files.h"

#include "base/result.h"
#include "wasm/wasi/errno.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm::wasi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FileTree example() {
  return *FileTree::of({{"/etc/config/key", "value"},
                        {"/etc/config/a", ""},
                        {"/etc/zone", "UTC"},
                        {"/etc.d", "no directory"}});
}

std::vector<std::string> names_in(const FileTree& tree, FileTree::Index directory) {
  std::vector<std::string> names;
  for (const FileTree::Index child : tree.node(directory).children)
    names.push_back(tree.node(child).name);
  return names;
}

TEST(FileTree, MakesTheDirectoriesThatItsPathsName) {
  const FileTree tree = example();
  EXPECT_THAT(names_in(tree, FileTree::kRoot), ElementsAre("etc", "etc.d"));
  const FileTree::Index etc = *tree.find(FileTree::kRoot, "etc");
  EXPECT_TRUE(tree.node(etc).is_directory);
  EXPECT_THAT(names_in(tree, etc), ElementsAre("config", "zone"));
  EXPECT_EQ(tree.node(*tree.find(etc, "config/key")).content, "value");
  EXPECT_FALSE(tree.node(*tree.find(FileTree::kRoot, "etc.d")).is_directory);
}

TEST(FileTree, AnEmptyOneHasARoot) {
  const FileTree tree = *FileTree::of({});
  EXPECT_EQ(tree.find(FileTree::kRoot, "."), FileTree::kRoot);
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc"), std::unexpected(kNotFound));
}

TEST(FileTree, FindsPathsHoweverTheyAreWritten) {
  const FileTree tree = example();
  const FileTree::Index key = *tree.find(FileTree::kRoot, "etc/config/key");
  for (const std::string_view path :
       {"./etc//config/./key", "etc/../etc/config/key", "etc/config/../config/key"}) {
    EXPECT_EQ(tree.find(FileTree::kRoot, path), key) << path;
  }
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc/config/"), tree.find(FileTree::kRoot, "etc/config"));
}

TEST(FileTree, SaysWhyAPathIsNothing) {
  const FileTree tree = example();
  const FileTree::Index config = *tree.find(FileTree::kRoot, "etc/config");
  EXPECT_EQ(tree.find(FileTree::kRoot, ""), std::unexpected(kNotFound));
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc/none/key"), std::unexpected(kNotFound));
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc.d/key"), std::unexpected(kNotDirectory));
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc.d/.."), std::unexpected(kNotDirectory));
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc.d/"), std::unexpected(kNotDirectory));
  EXPECT_EQ(tree.find(FileTree::kRoot, "/etc/zone"), std::unexpected(kNotCapable));
  EXPECT_EQ(tree.find(FileTree::kRoot, ".."), std::unexpected(kNotCapable));
  EXPECT_EQ(tree.find(FileTree::kRoot, "etc/../../etc"), std::unexpected(kNotCapable));
  EXPECT_EQ(tree.find(config, "../zone"), std::unexpected(kNotCapable));
  EXPECT_EQ(tree.find(FileTree::kRoot, std::string(4097, 'a')), std::unexpected(kNameTooLong));
}

TEST(FileTree, RefusesPathsThatAreNoFiles) {
  for (const std::string path :
       {"", "etc", "/", "/etc/", "//etc", "/etc//key", "/./key", "/etc/../key", "/.."}) {
    const Result<FileTree> tree = FileTree::of({{path, ""}});
    ASSERT_FALSE(tree.has_value()) << path;
    EXPECT_EQ(tree.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(tree.error().message(), HasSubstr("file " + path + ": "));
  }
  EXPECT_FALSE(FileTree::of({{std::string("/a\0b", 4), ""}}).has_value());
}

TEST(FileTree, RefusesAFileBelowAFile) {
  const Result<FileTree> tree = FileTree::of({{"/a", "x"}, {"/a.b", ""}, {"/a/b", ""}});
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().message(), "file /a/b: a part of the path is a file itself");
}

}  // namespace
}  // namespace hangar::wasm::wasi
