#include "recorder/files.h"

#include "io/file.h"
#include "recorder/format.h"
#include "recorder/limits.h"
#include "recorder/record.h"
#include "recorder/story.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::recorder {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
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
  [[nodiscard]] static Block block(std::size_t bytes = 0) {
    return block_of("", bytes, kNow, kWall);
  }
  // A block with requests of at least `bytes`.
  [[nodiscard]] static Block block_of(std::string_view namespace_, std::size_t bytes, Instant now,
                                      WallTime wall_now) {
    const std::string text(500, 'x');
    Block block;
    do {
      const std::string path = std::to_string(block.record_count()) + text;
      block.add(Asked{.guest = {.namespace_ = namespace_}, .at = now, .path = path},
                {.instant = now, .wall = wall_now});
    } while (block.size_bytes() < bytes);
    return block;
  }
  [[nodiscard]] static Block turn_of(std::string_view namespace_, std::uint64_t number,
                                     Instant now = kNow, WallTime wall_now = kWall) {
    Block block;
    block.add(Turn{.guest = {.namespace_ = namespace_, .name = "one"},
                   .number = number,
                   .arrived = now,
                   .began = now,
                   .ended = now},
              {.instant = now, .wall = wall_now});
    return block;
  }
  // Fills the space `times` times over with records of one namespace.
  static void fill(Files& files, std::string_view namespace_, std::uint64_t times,
                   Instant now = kNow, WallTime wall_now = kWall) {
    for (std::uint64_t bytes = 0; bytes < times * kBytesMin; bytes += 30000)
      ASSERT_TRUE(files.append(block_of(namespace_, 30000, now, wall_now), now, wall_now));
  }
  // Numbers of the turns of a namespace, newest first.
  [[nodiscard]] std::vector<std::uint64_t> turns(std::string_view namespace_) {
    std::vector<std::uint64_t> numbers;
    read_ = read_directory(directory(), [&](const Story& story) {
              if (story.namespace_ == namespace_) numbers.push_back(story.number);
              return true;
            }).value();
    EXPECT_THAT(read_.problems, IsEmpty());
    return numbers;
  }
  [[nodiscard]] std::uint64_t bytes_on_disk() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory()))
      bytes += entry.file_size();
    return bytes;
  }
  // Bytes of the records of a namespace.
  [[nodiscard]] std::uint64_t held(std::string_view namespace_) const {
    std::uint64_t bytes = 0;
    for (const std::filesystem::path& path : listed())
      bytes += held_by(measure(io::read_file(path, kFileBytesMax).value())->held, namespace_);
    return bytes;
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

  ReadDirectory read_;  // Result of the last turns().

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

  // The open file no longer has a name. The next file cannot be created, which makes the one after
  // it create the directory.
  (void)files.append(block(), kNow + 3h, kWall);
  ASSERT_TRUE(files.append(block(), kNow + 6h, kWall));
  EXPECT_THAT(listed(), SizeIs(1));
}

TEST_F(FilesTest, KeepAQuietNamespaceHoweverMuchAnotherOneWrites) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 1; number <= 10; ++number) {
    ASSERT_TRUE(files.append(turn_of("shy", number), kNow, kWall));
    numbers.insert(numbers.begin(), number);
    fill(files, "loud", 1);
    ASSERT_LE(bytes_on_disk(), kBytesMin);
    ASSERT_EQ(bytes_on_disk(), files.bytes());
  }
  ASSERT_TRUE(files.append(turn_of("loud", 99), kNow, kWall));

  EXPECT_EQ(turns("shy"), numbers);
  EXPECT_THAT(turns("loud"), ElementsAre(99));
  ASSERT_THAT(read_.shortened, SizeIs(1));
  EXPECT_EQ(read_.shortened.front().namespace_, "loud");
  EXPECT_EQ(read_.shortened.front().records, files.given_up());
  EXPECT_GT(files.given_up(), 0U);
  // The namespace uses the space, because no other one needs it.
  EXPECT_GT(files.bytes(), kBytesMin * 3 / 4);
}

TEST_F(FilesTest, TakeNothingFromANamespaceThatHoldsLessThanAnEqualShare) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(turn_of("shy", 1), kNow, kWall));
  while (held("shy") < kBytesMin / 3)
    ASSERT_TRUE(files.append(block_of("shy", 30000, kNow, kWall), kNow, kWall));
  const std::uint64_t before = held("shy");
  fill(files, "loud", 3);
  EXPECT_THAT(turns("shy"), ElementsAre(1));
  EXPECT_EQ(held("shy"), before);
}

TEST_F(FilesTest, TakeFromANamespaceThatHoldsMoreThanAnEqualShareDownToIt) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(turn_of("shy", 1), kNow, kWall));
  while (held("shy") < kBytesMin * 6 / 10)
    ASSERT_TRUE(files.append(block_of("shy", 30000, kNow, kWall), kNow, kWall));
  fill(files, "loud", 3);
  EXPECT_THAT(turns("shy"), IsEmpty());
  EXPECT_GT(held("shy"), kBytesMin * 5 / 16);
  EXPECT_LT(held("shy"), kBytesMin * 8 / 16);
}

RawBody body_of(std::string_view namespace_, std::uint64_t id, std::string bytes) {
  return {.namespace_ = std::string(namespace_),
          .name = "one",
          .id = id,
          .at = kNow,
          .bytes = std::move(bytes)};
}

TEST_F(FilesTest, KeepAQuietNamespaceHoweverManyBodiesAnotherOneHas) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(turn_of("shy", 1), kNow, kWall));
  const std::string filler(2 * kBodyBytesMax, 'x');
  const std::vector<RawBody> bodies(3, body_of("loud", 7, R"({"a":")" + filler + R"("})"));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(files.append(turn_of("loud", 2), bodies, kNow, kWall));
    ASSERT_LE(bytes_on_disk(), kBytesMin);
  }
  EXPECT_THAT(turns("shy"), ElementsAre(1));
  EXPECT_GT(held("loud"), kBytesMin / 2);
}

TEST_F(FilesTest, LeaveOutBodiesThatGrewBeyondABlock) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  // Aliases: some bytes become many.
  std::string yaml = "a: &a " + std::string(900, 'x') + "\nb: [*a";
  for (int i = 0; i < 20; ++i)
    yaml += ", *a";
  yaml += "]\n";
  const std::vector<RawBody> bodies(60, body_of("loud", 7, yaml));
  ASSERT_TRUE(files.append(turn_of("loud", 2), bodies, kNow, kWall));
  EXPECT_LT(bytes_on_disk(), kBlockBytesWithBodies + 2 * kBodyBytesMax);
  EXPECT_EQ(records(), 61U);
}

TEST_F(FilesTest, HaveAKeyOfTheirOwnForWhatLooksSecret) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  const auto append = [&](Instant now) {
    const RawBody body = body_of("shop", 7, R"({"password":"hunter2"})");
    return files.append(turn_of("shop", 1, now), {&body, 1}, now, kWall);
  };
  ASSERT_TRUE(append(kNow));
  ASSERT_TRUE(append(kNow));
  ASSERT_TRUE(append(kNow + 2h));
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : listed()) {
    const std::string bytes = io::read_file(path, kFileBytesMax).value();
    EXPECT_EQ(bytes.find("hunter2"), std::string::npos);
    ASSERT_TRUE(read(bytes, [&texts](const Place&, const Record& record) {
      if (const auto* const body = std::get_if<Body>(&record)) texts.emplace_back(body->text);
      return true;
    }));
  }
  EXPECT_THAT(listed(), SizeIs(2));
  ASSERT_THAT(texts, SizeIs(3));
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

TEST_F(FilesTest, TellUntilWhenANamespaceGaveUp) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  fill(files, "loud", 1, kNow, kWall);
  fill(files, "loud", 1, kNow + 1min, kWall + 1min);
  fill(files, "loud", 1, kNow + 2min, kWall + 2min);
  EXPECT_THAT(turns("shy"), IsEmpty());
  ASSERT_THAT(read_.shortened, SizeIs(1));
  EXPECT_EQ(read_.shortened.front().until, kWall + 2min);
  EXPECT_EQ(read_.shortened.front().records, files.given_up());
}

TEST_F(FilesTest, WithFewRecordsEachDoNotBecomeMany) {
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 1; number <= 100; ++number) {
    ASSERT_TRUE(files.append(turn_of("shy", number), kNow, kWall));
    numbers.insert(numbers.begin(), number);
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(files.append(block_of("loud", 30000, kNow, kWall), kNow, kWall));
    ASSERT_LE(listed().size(), 2 * kFilesMin);
  }
  EXPECT_EQ(turns("shy"), numbers);
}

TEST_F(FilesTest, AreNotJoinedIntoOneThatBecomesTooOld) {
  const FileLimits limits{.bytes_max = kBytesMin, .age_max = 16h};
  Files files(directory(), limits, 1);
  for (int hour = 0; hour < 40; ++hour) {
    const Instant now = kNow + std::chrono::hours(hour);
    const WallTime wall_now = kWall + std::chrono::hours(hour);
    ASSERT_TRUE(files.append(turn_of("shy", static_cast<std::uint64_t>(hour), now, wall_now), now,
                             wall_now));
    fill(files, "loud", 1, now, wall_now);
    const std::vector<std::uint64_t> numbers = turns("shy");
    // All records of the last 16 hours exist, and none that are older by more than a file's span.
    ASSERT_EQ(numbers.front(), static_cast<std::uint64_t>(hour));
    ASSERT_LE(numbers.back(), static_cast<std::uint64_t>(std::max(hour - 16, 0)));
    ASSERT_GE(numbers.back() + 18, static_cast<std::uint64_t>(hour));
    ASSERT_EQ(numbers.size(), numbers.front() - numbers.back() + 1);
  }
}

TEST_F(FilesTest, OfTheProcessBeforeAreSharedFairly) {
  const WallTime wall = std::chrono::system_clock::now();
  {
    Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
    ASSERT_TRUE(files.append(turn_of("shy", 1, kNow, wall), kNow, wall));
    fill(files, "loud", 1, kNow, wall);
    ASSERT_TRUE(files.append(turn_of("shy", 2, kNow, wall), kNow, wall));
  }
  std::ofstream(directory() / "turns-0000000002.rec.a1B2c3") << "not finished";
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 2);
  fill(files, "loud", 3, kNow, wall);

  EXPECT_THAT(turns("shy"), ElementsAre(2, 1));
  EXPECT_EQ(bytes_on_disk(), files.bytes());
  EXPECT_LE(files.bytes(), kBytesMin);
  // A rewritten file keeps its age.
  EXPECT_LE(std::filesystem::last_write_time(listed().front()),
            std::filesystem::file_time_type::clock::now());
}

TEST_F(FilesTest, ThatAProcessCopiedAndDidNotDeleteCountOnce) {
  const WallTime wall = std::chrono::system_clock::now();
  const auto write = [this](std::uint64_t sequence, std::uint64_t host, std::uint32_t replaces,
                            std::vector<std::uint64_t> numbers) {
    std::string bytes =
        encode(FileHeader{.replaces = replaces, .host = host, .sequence = sequence});
    for (const std::uint64_t number : numbers)
      bytes += turn_of("shy", number).take();
    std::ofstream(directory() / fmt::format("turns-{:010}.rec", sequence)) << bytes;
  };
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(directory(), std::filesystem::perms::owner_all);
  write(1, 7, 0, {1});
  write(2, 7, 0, {2});
  write(3, 8, 0, {30});
  write(4, 7, 2, {2, 4});
  EXPECT_THAT(turns("shy"), ElementsAre(4, 2, 30, 1));

  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 9);
  for (std::uint64_t number = 5; number <= 9; ++number)
    ASSERT_TRUE(files.append(turn_of("shy", number), kNow, wall));
  EXPECT_THAT(turns("shy"), ElementsAre(9, 8, 7, 6, 5, 4, 2, 30, 1));
  EXPECT_FALSE(std::filesystem::exists(directory() / "turns-0000000002.rec"));
  EXPECT_EQ(bytes_on_disk(), files.bytes());
}

TEST_F(FilesTest, OfAnotherFormatGoFirstWhenSpaceIsShort) {
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(directory(), std::filesystem::perms::owner_all);
  std::ofstream(directory() / "turns-0000000001.rec") << std::string(kBytesMin * 3 / 4, 'x');
  const WallTime wall = std::chrono::system_clock::now();
  Files files(directory(), {.bytes_max = kBytesMin, .age_max = 24h}, 1);
  ASSERT_TRUE(files.append(turn_of("shy", 1, kNow, wall), kNow, wall));
  fill(files, "loud", 2, kNow, wall);
  EXPECT_THAT(turns("shy"), ElementsAre(1));
  EXPECT_FALSE(std::filesystem::exists(directory() / "turns-0000000001.rec"));
  EXPECT_LE(bytes_on_disk(), kBytesMin);
}

}  // namespace
}  // namespace hangar::recorder
