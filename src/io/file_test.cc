#include "io/file.h"

#include "base/result.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace hangar::io {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "hangar-file-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(root_); }

  [[nodiscard]] fs::path path(const std::string& name) const { return root_ / name; }
  static mode_t mode(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  [[nodiscard]] long entry_count() const {
    return std::distance(fs::directory_iterator(root_), fs::directory_iterator());
  }

  fs::path root_;
};

TEST_F(FileTest, ReadsWhatItWrote) {
  const std::string bytes = std::string(200'000, 'x') + std::string(1, '\0') + "end";

  ASSERT_TRUE(write_file(path("a"), "old").has_value());
  ASSERT_TRUE(write_file(path("a"), bytes).has_value());

  EXPECT_EQ(read_file(path("a"), bytes.size()).value(), bytes);
  EXPECT_EQ(mode(path("a")), 0600U);
  EXPECT_EQ(entry_count(), 1);  // No temporary file remains.
}

TEST_F(FileTest, ReadsInPieces) {
  const std::string bytes = std::string(200'000, 'x') + std::string(1, '\0') + "end";
  ASSERT_TRUE(write_file(path("a"), bytes).has_value());

  FilePieces pieces = FilePieces::open(path("a")).value();
  std::string read;
  for (std::string_view piece = pieces.next().value(); !piece.empty();
       piece = pieces.next().value()) {
    EXPECT_LT(piece.size(), bytes.size());
    read += piece;
  }

  EXPECT_EQ(read, bytes);
  EXPECT_EQ(pieces.next().value(), "");
}

TEST_F(FileTest, WaitsForTheDiskUnlessItIsACache) {
  const std::uint64_t before = sync_count();

  ASSERT_TRUE(write_file(path("a"), "cached", Durability::None).has_value());
  EXPECT_EQ(sync_count(), before);
  EXPECT_EQ(read_file(path("a"), 10).value(), "cached");

  ASSERT_TRUE(write_file(path("a"), "kept").has_value());
  EXPECT_EQ(sync_count(), before + 1);
}

TEST_F(FileTest, ReadsEmptyFiles) {
  ASSERT_TRUE(write_file(path("a"), "").has_value());

  EXPECT_EQ(read_file(path("a"), 0).value(), "");
}

TEST_F(FileTest, RefusesFilesBeyondTheBound) {
  ASSERT_TRUE(write_file(path("a"), "12345").has_value());

  EXPECT_TRUE(read_file(path("a"), 5).has_value());
  EXPECT_EQ(read_file(path("a"), 4).error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(read_file("/dev/zero", 1'000'000).error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(FileTest, TellsWhyItCannotRead) {
  EXPECT_EQ(read_file(path("none"), 10).error().kind(), ErrorKind::NotFound);
  EXPECT_EQ(read_file(root_, 10).error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(FilePieces::open(path("none")).error().kind(), ErrorKind::NotFound);
}

TEST_F(FileTest, KeepsTheOldFileWhenItCannotWrite) {
  ASSERT_TRUE(make_private_directory(path("dir")).has_value());

  EXPECT_EQ(write_file(path("none") / "a", "x").error().kind(), ErrorKind::NotFound);
  EXPECT_FALSE(write_file(path("dir"), "x").has_value());

  EXPECT_TRUE(fs::is_directory(path("dir")));
  EXPECT_EQ(entry_count(), 1);
}

TEST_F(FileTest, MakesPrivateDirectories) {
  const fs::path deep = path("a") / "b" / "c";

  ASSERT_TRUE(make_private_directory(deep).has_value());
  ASSERT_TRUE(make_private_directory(deep).has_value());

  EXPECT_EQ(mode(deep), 0700U);
}

TEST_F(FileTest, RefusesDirectoriesThatOthersMayWriteTo) {
  ASSERT_TRUE(make_private_directory(path("a")).has_value());
  ASSERT_EQ(::chmod(path("a").c_str(), 0770), 0);

  EXPECT_EQ(make_private_directory(path("a")).error().kind(), ErrorKind::Denied);
}

TEST_F(FileTest, RefusesWhatIsNoDirectoryOfItsOwn) {
  ASSERT_TRUE(make_private_directory(path("real")).has_value());
  fs::create_directory_symlink(path("real"), path("link"));
  ASSERT_TRUE(write_file(path("file"), "x").has_value());

  EXPECT_EQ(make_private_directory(path("link")).error().kind(), ErrorKind::Denied);
  EXPECT_EQ(make_private_directory(path("file")).error().kind(), ErrorKind::Denied);
}

}  // namespace
}  // namespace hangar::io
