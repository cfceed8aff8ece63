#include "recorder/story.h"

#include "recorder/files.h"
#include "recorder/format.h"
#include "recorder/limits.h"
#include "recorder/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::recorder {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Instant kInstant{1h};
const WallTime kWall = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());

Guest guest(std::string_view name, std::uint64_t instance) {
  return {.namespace_ = "shop", .name = name, .instance = instance};
}

class StoryTest : public testing::Test {
 protected:
  StoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "story-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~StoryTest() override { std::filesystem::remove_all(root_); }

  template <class... Kinds>
  void append(Files& files, const Kinds&... records) {
    Block block;
    (block.add(records, {.instant = kInstant, .wall = kWall}), ...);
    ASSERT_TRUE(files.append(std::move(block), kInstant, kWall));
  }
  [[nodiscard]] std::vector<Story> stories(std::size_t most = 100) {
    std::vector<Story> found;
    read_ = read_directory(root_, [&](Story story) {
              found.push_back(std::move(story));
              return found.size() < most;
            }).value();
    return found;
  }
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

  ReadDirectory read_;

 private:
  std::filesystem::path root_;
};

constexpr FileLimits kLimits{.bytes_max = kBytesMin, .age_max = std::chrono::hours(24)};

TEST_F(StoryTest, HasWhatCameOfATurn) {
  Files files(root(), kLimits, 7);
  append(files,
         Turn{.guest = guest("web", 1),
              .module = "ab",
              .number = 3,
              .arrived = kInstant,
              .began = kInstant + 1ms,
              .ended = kInstant + 3ms},
         Asked{.guest = guest("web", 1),
               .turn = 3,
               .id = 9,
               .at = kInstant + 4ms,
               .verb = Verb::Create,
               .resource = "configmaps",
               .namespace_ = "shop"},
         Asked{.guest = guest("web", 1),
               .turn = 3,
               .id = 8,
               .at = kInstant + 4ms,
               .verb = Verb::Watch,
               .resource = "configmaps",
               .namespace_ = "shop"});
  // In another block, after a turn of another guest.
  append(
      files, Turn{.guest = guest("other", 1), .number = 1},
      Answered{
          .guest = guest("web", 1),
          .id = 9,
          .at = kInstant + 9ms,
          .status = 201,
          .bytes = 50,
          .has_object = true,
          .object = {.kind = "ConfigMap", .namespace_ = "shop", .name = "made-1", .version = 44}},
      Slept{.guest = guest("web", 1), .turn = 3, .took = 2ms, .disk_bytes = 10, .is_asleep = true});

  const std::vector<Story> found = stories();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].name, "other");
  EXPECT_THAT(found[0].requests, IsEmpty());
  const Story& story = found[1];
  EXPECT_EQ(story.host, 7U);
  EXPECT_EQ(story.module, "ab");
  EXPECT_EQ(story.waited, 1ms);
  EXPECT_EQ(story.ran, 2ms);
  EXPECT_EQ(story.suspend, 2ms);
  ASSERT_THAT(story.requests, SizeIs(2));
  EXPECT_EQ(story.requests[0].id, 8U);
  EXPECT_FALSE(story.requests[0].took);
  const Request& created = story.requests[1];
  EXPECT_EQ(created.status, 201U);
  EXPECT_EQ(created.took, 5ms);
  EXPECT_EQ(created.object.name, "made-1");
  EXPECT_EQ(created.object.version, 44U);
  EXPECT_TRUE(created.may_have_changed());
  EXPECT_EQ(read_.since, kWall);
}

TEST_F(StoryTest, KeepsTheGroupThatWasAskedWhereTheAnswerIsOfAnother) {
  Files files(root(), kLimits, 7);
  append(files, Turn{.guest = guest("web", 1), .number = 3},
         Asked{.guest = guest("web", 1),
               .turn = 3,
               .id = 9,
               .verb = Verb::Update,
               .group = "apps",
               .resource = "deployments",
               .namespace_ = "shop",
               .name = "front",
               .subresource = "scale"},
         Answered{.guest = guest("web", 1),
                  .id = 9,
                  .status = 200,
                  .has_object = true,
                  .object = {.group = "autoscaling",
                             .kind = "Scale",
                             .namespace_ = "shop",
                             .name = "front",
                             .version = 44}});

  const std::vector<Story> found = stories();
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_THAT(found[0].requests, SizeIs(1));
  EXPECT_EQ(found[0].requests[0].object,
            (ObjectVersion{.group = "apps", .namespace_ = "shop", .name = "front", .version = 44}));
}

TEST_F(StoryTest, KnowsTheVersionsThatWereRead) {
  Files files(root(), kLimits, 7);
  const auto asked = [](std::uint64_t id, Verb verb, std::string_view name) {
    return Asked{.guest = guest("web", 1),
                 .turn = 3,
                 .id = id,
                 .verb = verb,
                 .resource = "configmaps",
                 .namespace_ = "shop",
                 .name = name};
  };
  append(files, Turn{.guest = guest("web", 1), .number = 3}, asked(8, Verb::Get, "front"),
         asked(9, Verb::List, ""),
         Answered{
             .guest = guest("web", 1),
             .id = 8,
             .status = 200,
             .has_object = true,
             .object = {.kind = "ConfigMap", .namespace_ = "shop", .name = "front", .version = 44}},
         Answered{.guest = guest("web", 1),
                  .id = 9,
                  .status = 200,
                  .has_object = true,
                  .object = {.kind = "ConfigMapList", .version = 90}});

  const std::vector<Story> found = stories();
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_THAT(found[0].requests, SizeIs(2));
  EXPECT_EQ(
      found[0].requests[0].object,
      (ObjectVersion{.kind = "ConfigMap", .namespace_ = "shop", .name = "front", .version = 44}));
  EXPECT_EQ(found[0].requests[1].object, (ObjectVersion{.namespace_ = "shop", .version = 90}));
}

TEST_F(StoryTest, KnowsAWriteWhoseAnswerNeverCame) {
  Files files(root(), kLimits, 7);
  append(files, Turn{.guest = guest("web", 1), .number = 3},
         Asked{.guest = guest("web", 1),
               .turn = 3,
               .id = 9,
               .verb = Verb::Update,
               .resource = "configmaps",
               .namespace_ = "shop",
               .name = "a"});

  const std::vector<Story> found = stories();
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_THAT(found[0].requests, SizeIs(1));
  EXPECT_FALSE(found[0].requests[0].took);
  EXPECT_TRUE(found[0].requests[0].may_have_changed());
}

TEST_F(StoryTest, KeepsInstancesAndHostsApart) {
  {
    Files files(root(), kLimits, 7);
    append(files, Turn{.guest = guest("web", 1), .number = 1},
           Asked{.guest = guest("web", 1), .turn = 1, .id = 1, .verb = Verb::Get});
  }
  Files files(root(), kLimits, 8);
  append(files, Turn{.guest = guest("web", 1), .number = 1},
         Asked{.guest = guest("web", 1), .turn = 1, .id = 1, .verb = Verb::List},
         Turn{.guest = guest("web", 2), .number = 2},
         Answered{.guest = guest("web", 2), .id = 1, .status = 500});

  const std::vector<Story> found = stories();
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_THAT(found[0].requests, IsEmpty());
  ASSERT_THAT(found[1].requests, SizeIs(1));
  EXPECT_EQ(found[1].requests[0].verb, Verb::List);
  EXPECT_FALSE(found[1].requests[0].took);
  ASSERT_THAT(found[2].requests, SizeIs(1));
  EXPECT_EQ(found[2].requests[0].verb, Verb::Get);
}

TEST_F(StoryTest, EndsWhereNothingMoreIsWanted) {
  Files files(root(), kLimits, 7);
  for (std::uint64_t number = 1; number <= 5; ++number)
    append(files, Turn{.guest = guest("web", 1), .number = number});

  const std::vector<Story> found = stories(2);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].number, 5U);
  EXPECT_EQ(found[1].number, 4U);
}

TEST_F(StoryTest, SaysWhichFilesCouldNotBeReadWhole) {
  {
    Files files(root(), kLimits, 7);
    append(files, Turn{.guest = guest("web", 1), .number = 1});
    append(files, Turn{.guest = guest("web", 1), .number = 2});
  }
  const std::filesystem::path path = list_files(root()).value().front();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);

  EXPECT_THAT(stories(), SizeIs(1));
  ASSERT_THAT(read_.problems, SizeIs(1));
  EXPECT_THAT(read_.problems.front(), HasSubstr("ends within a block"));
}

TEST(RecordsOfNobody, AreNotFound) {
  const Result<ReadDirectory> read =
      read_directory("/nonexistent/recorder", [](const Story&) { return true; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::NotFound);
}

TEST(Request, MayHaveChangedOnlyWhatItWrote) {
  const Request update{.verb = Verb::Update, .took = 1ms, .status = 200};
  EXPECT_TRUE(update.may_have_changed());
  Request other = update;
  other.status = 409;
  EXPECT_FALSE(other.may_have_changed());
  other = update;
  other.is_dry_run = true;
  EXPECT_FALSE(other.may_have_changed());
  other = update;
  other.status = 503;
  EXPECT_TRUE(other.may_have_changed()) << "the answer may have been lost";
  other = update;
  other.verb = Verb::Get;
  EXPECT_FALSE(other.may_have_changed());
}

}  // namespace
}  // namespace hangar::recorder
