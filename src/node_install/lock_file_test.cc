#include "node_install/lock_file.h"

#include "base/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace hangar::node_install {
namespace {

Lock example() {
  return {.version = "1.2.3",
          .distribution = "k3s",
          .config = "/etc/containerd/config.toml",
          .config_sha256_before = sha256_hex("before"),
          .files = {{.path = "/opt/hangar-node/bin/x", .sha256 = sha256_hex("x"), .handler = "x"}},
          .directories = {"/opt", "/opt/hangar-node"},
          .restart_pending = true};
}

TEST(LockFile, ReadsWhatItWrites) {
  const auto read = parse_lock(to_text(example()));

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_text(*read), to_text(example()));
  EXPECT_TRUE(read->restart_pending);
}

TEST(LockFile, IsCorruptWhereverItIsCutOff) {
  const std::string text = to_text(example());

  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    const auto read = parse_lock(std::string_view(text).substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().kind(), ErrorKind::Corrupt);
  }
}

TEST(LockFile, SaysWhichFormatItReads) {
  std::string text = to_text(example());
  const std::string format = R"("format": 1)";
  ASSERT_TRUE(text.contains(format)) << text;
  text.replace(text.find(format), format.size(), R"("format": 2)");

  const auto read = parse_lock(text);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::Corrupt);
  EXPECT_EQ(read.error().message(), "the lock file has format 2, this hangar-node reads format 1");
}

TEST(LockFile, DoesNotTakePathsThatAreNone) {
  Lock lock = example();
  lock.files.front().path = "bin/x";
  EXPECT_FALSE(parse_lock(to_text(lock)));
  lock = example();
  lock.directories.front() = "";
  EXPECT_FALSE(parse_lock(to_text(lock)));
}

}  // namespace
}  // namespace hangar::node_install
