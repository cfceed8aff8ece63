#include "node_install/files.h"

#include "base/digest.h"
#include "node_install/outcome.h"
#include "node_install/test_doubles.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace hangar::node_install {
namespace {

class NodeFilesTest : public testing::Test {
 protected:
  TempRoot outside_;
  TempRoot root_;
  NodeFiles files_ = NodeFiles::open(root_.path().string()).value();
};

TEST_F(NodeFilesTest, FollowsLinksInsideTheRootOnly) {
  outside_.put("/secret", "of the container");
  root_.put("/srv/config", "the node's");
  std::filesystem::create_symlink("/srv", root_.path() / "absolute");
  std::filesystem::create_symlink("../../../../srv", root_.path() / "upwards");
  std::filesystem::create_symlink(outside_.path(), root_.path() / "outside");
  std::filesystem::create_symlink("loop", root_.path() / "loop");

  EXPECT_EQ(files_.read("/absolute/config", 100), "the node's");
  EXPECT_EQ(files_.read("/upwards/config", 100), "the node's");
  EXPECT_EQ(files_.read("/../../srv/./config", 100), "the node's");
  EXPECT_FALSE(files_.read("/outside/secret", 100));
  EXPECT_FALSE(files_.read("/loop", 100));
  EXPECT_FALSE(files_.write("/outside/secret", "changed", Access::KeepOrPublic));
  EXPECT_EQ(outside_.get("/secret"), "of the container");
}

TEST_F(NodeFilesTest, WritesThroughALinkAndKeepsIt) {
  root_.put("/srv/config", "before");
  std::filesystem::create_symlink("/srv/config", root_.path() / "config");

  ASSERT_TRUE(files_.write("/config", "after", Access::KeepOrPublic));

  EXPECT_TRUE(std::filesystem::is_symlink(root_.path() / "config"));
  EXPECT_EQ(root_.get("/srv/config"), "after");
}

TEST_F(NodeFilesTest, KeepsTheModeOfWhatItReplaces) {
  root_.put("/config", "before");
  std::filesystem::permissions(root_.path() / "config", std::filesystem::perms(0640));

  ASSERT_TRUE(files_.write("/config", "after", Access::KeepOrPublic));
  ASSERT_TRUE(files_.write("/private", "new", Access::KeepOrPrivate));

  EXPECT_EQ(std::filesystem::status(root_.path() / "config").permissions(),
            std::filesystem::perms(0640));
  EXPECT_EQ(std::filesystem::status(root_.path() / "private").permissions(),
            std::filesystem::perms(0600));
}

TEST_F(NodeFilesTest, InstallsOnlyWhatHasTheChecksum) {
  outside_.put("/program", "#!/bin/sh\n");
  const Descriptor wrong(::open((outside_.path() / "program").c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor right(::open((outside_.path() / "program").c_str(), O_RDONLY | O_CLOEXEC));

  const auto refused = files_.install("/program", wrong.value(), sha256_hex("another"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), reason::kChecksumMismatch);
  EXPECT_TRUE(root_.tree().empty());

  ASSERT_TRUE(files_.install("/program", right.value(), sha256_hex("#!/bin/sh\n")));
  EXPECT_EQ(std::filesystem::status(root_.path() / "program").permissions(),
            std::filesystem::perms(0755));
}

TEST_F(NodeFilesTest, SaysThatThereIsNoSpaceAndLeavesTheOldFile) {
  root_.put("/config", "before");
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{.rlim_cur = 4096, .rlim_max = old.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto written = files_.write("/config", std::string(8192, 'x'), Access::KeepOrPublic);
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);

  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason(), reason::kNoSpace);
  EXPECT_EQ(root_.tree().size(), 1);
  EXPECT_EQ(root_.get("/config"), "before");
}

TEST_F(NodeFilesTest, DoesNotWaitForAPipeInAFilesPlace) {
  ASSERT_EQ(::mkfifo((root_.path() / "config").c_str(), 0600), 0);

  EXPECT_FALSE(files_.read("/config", 100));
}

TEST_F(NodeFilesTest, BoundsWhatItReads) {
  root_.put("/config", "12345");

  EXPECT_TRUE(files_.read("/config", 5));
  EXPECT_FALSE(files_.read("/config", 4));
}

TEST_F(NodeFilesTest, TellsWhichDirectoriesItMade) {
  root_.put("/opt/there", "");

  EXPECT_EQ(files_.make_directories("/opt/a/b"), (std::vector<std::string>{"/opt/a", "/opt/a/b"}));
  EXPECT_EQ(files_.make_directories("/opt/a/b"), std::vector<std::string>{});
  files_.remove_empty_directory("/opt");
  files_.remove_empty_directory("/opt/a/b");
  EXPECT_TRUE(root_.has("/opt/a"));
  EXPECT_FALSE(root_.has("/opt/a/b"));
}

TEST_F(NodeFilesTest, IsLockedByOneAtATime) {
  ASSERT_TRUE(files_.make_directories("/opt/hangar-node"));
  NodeFiles other = NodeFiles::open(root_.path().string()).value();
  {
    const auto held = files_.lock("/opt/hangar-node");
    ASSERT_TRUE(held);
    const auto refused = other.lock("/opt/hangar-node");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason(), reason::kBusy);
  }
  EXPECT_TRUE(files_.lock("/opt/hangar-node"));
}

TEST_F(NodeFilesTest, FindsAWordInALargeFileAcrossPieces) {
  root_.put("/program", std::string(256 * 1024 - 3, 'x') + "needle" + std::string(1000, 'x'));

  EXPECT_EQ(files_.find_in("/program", {"needle"}), "needle");
  EXPECT_FALSE(files_.find_in("/program", {"absent"}));
}

}  // namespace
}  // namespace hangar::node_install
