#include "recorder/files.h"

#include "io/file.h"
#include "recorder/format.h"
#include "recorder/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace hangar::recorder {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Instant kNow{100h};
constexpr WallTime kWall{std::chrono::hours(500000)};
constexpr FileLimits kLimits{.bytes_max = 1000, .age_max = 24h};

TEST(CountToRemove, IsNothingWhileAllFits) {
  const std::vector<KnownFile> files = {{.sequence = 1, .bytes = 400, .written = kWall - 23h},
                                        {.sequence = 2, .bytes = 500, .written = kWall - 1h}};
  EXPECT_EQ(count_to_remove(files, 100, kLimits, kNow, kWall), 0U);
}

TEST(CountToRemove, IsTheOldestWhenThereIsTooMuch) {
  const std::vector<KnownFile> files = {{.sequence = 1, .bytes = 400, .written = kWall},
                                        {.sequence = 2, .bytes = 400, .written = kWall},
                                        {.sequence = 3, .bytes = 100, .written = kWall}};
  EXPECT_EQ(count_to_remove(files, 101, kLimits, kNow, kWall), 1U);
  EXPECT_EQ(count_to_remove(files, 501, kLimits, kNow, kWall), 2U);
}

TEST(CountToRemove, IsWhatIsTooOld) {
  const std::vector<KnownFile> files = {{.sequence = 1, .bytes = 1, .written = kWall - 25h},
                                        {.sequence = 2, .bytes = 1, .written = kWall - 23h}};
  EXPECT_EQ(count_to_remove(files, 0, kLimits, kNow, kWall), 1U);
}

TEST(CountToRemove, DoesNotBelieveAClockThatJumps) {
  // The clock was set forward by a year: a file that this process wrote an hour ago is an hour old.
  const std::vector<KnownFile> here = {
      {.sequence = 1, .bytes = 1, .written = kWall, .written_here = kNow - 1h}};
  EXPECT_EQ(count_to_remove(here, 0, kLimits, kNow, kWall + 24h * 365), 0U);
  // It was set back: files with a time in the future stay as long as there is room.
  const std::vector<KnownFile> future = {
      {.sequence = 1, .bytes = 600, .written = kWall + 24h * 365}};
  EXPECT_EQ(count_to_remove(future, 400, kLimits, kNow, kWall), 0U);
  EXPECT_EQ(count_to_remove(future, 401, kLimits, kNow, kWall), 1U);
}

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FilesTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::filesystem::path directory() const { return root_ / "recorder"; }
  [[nodiscard]] std::vector<std::filesystem::path> listed() const {
    return list_files(directory()).value();
  }
  [[nodiscard]] static std::string block(std::size_t bytes = 0) {
    const std::string text(512, 'x');
    Block block;
    do {
      const std::string path = std::to_string(block.record_count()) + text;
      block.add(Asked{.path = path}, {.instant = kNow, .wall = kWall});
    } while (block.size_bytes() < bytes);
    return block.take();
  }
  [[nodiscard]] std::uint64_t records() const {
    std::uint64_t count = 0;
    for (const std::filesystem::path& path : listed()) {
      const std::string bytes = io::read_file(path, kFileBytesMax).value();
      const Result<ReadFile> file = read(bytes, [](const Place&, const Record&) { return true; });
      EXPECT_TRUE(file);
      EXPECT_EQ(file->cut, "");
      count += file->records;
    }
    return count;
  }

 private:
  std::filesystem::path root_;
};

TEST_F(FilesTest, ArePrivateToTheirUser) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(block(), kNow, kWall));

  struct ::stat status{};
  ASSERT_THAT(listed(), SizeIs(1));
  ASSERT_EQ(::stat(listed().front().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(directory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(FilesTest, NeverTakeMoreThanTheyMay) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(files.append(block(30000), kNow, kWall));
    std::uint64_t bytes = 0;
    for (const std::filesystem::path& path : listed())
      bytes += std::filesystem::file_size(path);
    ASSERT_LE(bytes, kBytesMin);
    ASSERT_EQ(bytes, files.bytes());
  }
  EXPECT_GT(files.bytes(), kBytesMin * 3 / 4);
}

TEST_F(FilesTest, GoWhenTheyAreTooOldThoughNothingHappens) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(block(), kNow, kWall));
  ASSERT_TRUE(files.append(block(), kNow + 2h, kWall));
  EXPECT_THAT(listed(), SizeIs(2));

  ASSERT_TRUE(files.sweep(kNow + 25h, kWall));
  EXPECT_THAT(listed(), SizeIs(1));
  ASSERT_TRUE(files.sweep(kNow + 27h, kWall));
  EXPECT_THAT(listed(), IsEmpty());
  ASSERT_TRUE(files.append(block(), kNow + 28h, kWall));
  EXPECT_THAT(listed(), SizeIs(1));
}

TEST_F(FilesTest, OfAnotherProcessGoOn) {
  const FileLimits limits{.bytes_max = kBytesMin, .age_max = 24h};
  Files one(directory(), limits, 1);
  Files other(directory(), limits, 2);
  ASSERT_TRUE(one.append(block(), kNow, kWall));
  ASSERT_TRUE(other.append(block(), kNow, kWall));
  ASSERT_TRUE(one.append(block(), kNow, kWall));
  EXPECT_THAT(listed(), SizeIs(2));
  EXPECT_EQ(records(), 3U);

  // A file that another process is writing stays, whatever its age.
  ASSERT_TRUE(other.sweep(kNow, kWall + 48h));
  EXPECT_THAT(listed(), SizeIs(2));
}

TEST_F(FilesTest, BeginAnewAfterWhatWasCut) {
  const FileLimits limits{.bytes_max = kBytesMin, .age_max = 24h};
  const WallTime wall = std::chrono::system_clock::now();  // The file system uses the real clock.
  {
    Files files(directory(), limits, 1);
    ASSERT_TRUE(files.append(block(), kNow, wall));
    ASSERT_TRUE(files.append(block(), kNow, wall));
  }
  std::filesystem::resize_file(listed().front(), std::filesystem::file_size(listed().front()) - 1);
  Files files(directory(), limits, 2);
  ASSERT_TRUE(files.append(block(), kNow, wall));

  ASSERT_THAT(listed(), SizeIs(2));
  std::uint64_t count = 0;
  for (const std::filesystem::path& path : listed()) {
    const std::string bytes = io::read_file(path, kFileBytesMax).value();
    count += read(bytes, [](const Place&, const Record&) { return true; })->records;
  }
  EXPECT_EQ(count, 2U);
}

TEST_F(FilesTest, HaveNothingOfABlockThatDidNotFit) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(block(), kNow, kWall));
  const std::uint64_t before = files.bytes();

  // Imitates a full disk: a part of the block fits.
  struct ::rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct ::rlimit small{.rlim_cur = before + 100, .rlim_max = old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<> refused = files.append(block(), kNow, kWall);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(std::filesystem::file_size(listed().front()), before);
  ASSERT_TRUE(files.append(block(), kNow, kWall));
  EXPECT_EQ(records(), 2U);
}

TEST_F(FilesTest, ComeBackWhenTheDirectoryIsGone) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(block(), kNow, kWall));
  std::filesystem::remove_all(directory());

  // The open file has no name any more. The next file cannot be created, which makes the one after
  // it create the directory.
  (void)files.append(block(), kNow + 3h, kWall);
  ASSERT_TRUE(files.append(block(), kNow + 6h, kWall));
  EXPECT_THAT(listed(), SizeIs(1));
}

}  // namespace
}  // namespace hangar::recorder
