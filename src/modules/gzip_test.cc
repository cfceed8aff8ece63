#include "modules/internal/gzip.h"

#include "base/limits.h"
#include "base/result.h"
#include "io/file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace hangar::modules {
namespace {

// Bytes that do not compress well, the same on every run.
std::string noise(std::size_t size) {
  std::string bytes;
  unsigned state = 1;
  for (std::size_t index = 0; index < size; ++index) {
    state = state * 1103515245U + 12345U;
    bytes += static_cast<char>(state >> 24U);
  }
  return bytes;
}

TEST(Gzip, ComesBackWhole) {
  constexpr std::size_t kSizes[] = {0, 1, 255, 256 * 1024, 256 * 1024 + 1, 3'000'000};
  for (const std::size_t size : kSizes) {
    const std::string bytes = noise(size);

    const Result<std::string> back = gunzip(gzip(bytes), size);

    ASSERT_TRUE(back.has_value()) << size << ": " << back.error().message();
    EXPECT_EQ(*back, bytes);
  }
}

class GzipFileTest : public testing::Test {
 protected:
  GzipFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "gzip.XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~GzipFileTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] Result<std::string> gunzip_as_file(const std::string& packed,
                                                   std::uint64_t bytes_max) const {
    EXPECT_TRUE(io::write_file(path(), packed, io::Durability::None).has_value());
    return gunzip_file(path(), bytes_max);
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_ / "a.gz"; }

 private:
  std::filesystem::path directory_;
};

TEST_F(GzipFileTest, ComesBackWhole) {
  constexpr std::size_t kSizes[] = {0, 1, 64 * 1024, 3'000'000};
  for (const std::size_t size : kSizes) {
    const std::string bytes = noise(size);
    EXPECT_EQ(gunzip_as_file(gzip(bytes), size).value(), bytes) << size;
  }
}

// Members that end with a piece, and others.
TEST_F(GzipFileTest, ReadsAllMembers) {
  const std::string empty = gzip("");
  std::string packed;
  while (packed.size() < 300'000)
    packed += empty;
  EXPECT_EQ(gunzip_as_file(packed + gzip("first ") + gzip("second"), 100).value(), "first second");
}

TEST_F(GzipFileTest, IsBounded) {
  const std::string packed = gzip(std::string(1'000'000, 'x'));
  EXPECT_EQ(gunzip_as_file(packed, 999'999).error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(GzipFileTest, SaysWhatIsWrongWithIt) {
  const std::string packed = gzip(noise(200'000));
  constexpr std::size_t kSizes[] = {0, 1, 64 * 1024, 128 * 1024};
  for (const std::size_t size : kSizes) {
    const Error error = gunzip_as_file(packed.substr(0, size), 200'000).error();
    EXPECT_EQ(error.kind(), ErrorKind::InvalidInput) << size;
    EXPECT_NE(error.message().find("cut off"), std::string::npos) << error.message();
  }
  EXPECT_EQ(gunzip_as_file(packed + "more", 200'000).error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(gunzip_file(path().parent_path() / "none", 10).error().kind(), ErrorKind::NotFound);
}

TEST(Gunzip, ReadsAllMembers) {
  EXPECT_EQ(gunzip(gzip("first ") + gzip("second"), 100).value(), "first second");
}

TEST(Gunzip, StopsABombAtTheLimit) {
  const std::string bomb = gzip(std::string(64 * limits::kMiB, '\0'));
  ASSERT_LT(bomb.size(), limits::kMiB);

  const Result<std::string> inflated = gunzip(bomb, limits::kMiB);

  ASSERT_FALSE(inflated.has_value());
  EXPECT_EQ(inflated.error().kind(), ErrorKind::LimitExceeded);
}

TEST(Gunzip, AllowsExactlyTheLimit) {
  const std::string packed = gzip(std::string(1000, 'x'));

  EXPECT_TRUE(gunzip(packed, 1000).has_value());
  EXPECT_FALSE(gunzip(packed, 999).has_value());
}

TEST(Gunzip, NamesACutAtEveryPlace) {
  const std::string packed = gzip(noise(2000));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const Result<std::string> inflated = gunzip(packed.substr(0, size), 10'000);

    ASSERT_FALSE(inflated.has_value()) << size;
    EXPECT_EQ(inflated.error().kind(), ErrorKind::InvalidInput);
    EXPECT_NE(inflated.error().message().find("cut off"), std::string::npos)
        << size << ": " << inflated.error().message();
  }
}

TEST(Gunzip, NoticesEveryFlippedBitOfTheContent) {
  const std::string bytes = noise(300);
  const std::string packed = gzip(bytes);
  constexpr std::size_t kHeaderBytes = 10;  // The time and the system in the header may differ.
  for (std::size_t at = kHeaderBytes; at < packed.size(); ++at) {
    std::string flipped = packed;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);

    const Result<std::string> inflated = gunzip(flipped, 10'000);

    EXPECT_FALSE(inflated.has_value() && *inflated != bytes) << at;
  }
}

TEST(Gunzip, RefusesWhatFollowsTheEnd) {
  const Result<std::string> inflated = gunzip(gzip("x") + "trailing", 100);

  ASSERT_FALSE(inflated.has_value());
  EXPECT_EQ(inflated.error().kind(), ErrorKind::InvalidInput);
}

}  // namespace
}  // namespace hangar::modules
