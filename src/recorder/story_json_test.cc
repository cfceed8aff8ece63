#include "recorder/story_json.h"

#include "json/value.h"
#include "recorder/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace hangar::recorder {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const WallTime kWall{std::chrono::hours(500000)};

Story story() {
  const ObjectVersion source{
      .kind = "ConfigMap", .namespace_ = "team", .name = "source", .version = 11};
  return {.host = 0xfedcba9876543210,
          .contract = Contract::Airway,
          .namespace_ = "team",
          .name = "mirror",
          .instance = 5,
          .uid = "u",
          .user = "system:serviceaccount:team:default",
          .module = "ab",
          .number = 7,
          .arrived = kWall + 123456us,
          .waited = 41us,
          .ran = 1200us,
          .resume = 183us,
          .cpu = 900us,
          .was_asleep = true,
          .memory_bytes = 65536,
          .printed_bytes = 3,
          .outcome = Turn::Outcome::Failed,
          .causes = {{.what = Waking::Cause::Modified, .id = 3, .bytes = 9, .object = source},
                     {.what = Waking::Cause::Timer, .id = 4},
                     {.what = Waking::Cause::Event, .event = "host PROVISION"}},
          .causes_left_out = 2,
          .requests = {{.id = 4,
                        .verb = Verb::Update,
                        .resource = "deployments",
                        .subresource = "scale",
                        .field_manager = "m",
                        .is_dry_run = true,
                        .version_before = 12,
                        .bytes = 100,
                        .at = kWall,
                        .took = 3ms,
                        .status = 200,
                        .answer_bytes = 120,
                        .object = {.group = "apps", .kind = "Deployment", .name = "web"},
                        .body = RecordedBody{.state = BodyState::Cut,
                                             .text = R"({"spec":{"replicas":3,"a":"\u00e9)"}},
                       {.id = 5, .verb = Verb::Other, .path = "/version", .at = kWall}},
          .suspend = 2ms,
          .disk_bytes = 3000};
}

TEST(StoryJson, IsReadAsItWasWritten) {
  const json::Value written = json_of(story());
  const Result<Story> read = parse_story(written);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::dump(json_of(*read)), json::dump(written));
  EXPECT_EQ(read->host, story().host);
  EXPECT_EQ(read->causes[0].object, story().causes[0].object);
  EXPECT_EQ(read->requests[0].took, story().requests[0].took);
  EXPECT_FALSE(read->requests[1].took);
}

TEST(StoryJson, OfNothingSaysSoAndIsReadAgain) {
  const Result<Story> read = parse_story(json_of(Story{.arrived = kWall}));

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->suspend);
  EXPECT_TRUE(read->causes.empty());
}

TEST(StoryJson, NamesWhatIsWrong) {
  for (const char* const member : {"contract", "outcome", "arrived"}) {
    json::Value value = json_of(story());
    json::set_at(value, {member}, json::String("nonsense"));
    const Result<Story> read = parse_story(value);
    ASSERT_FALSE(read) << member;
    EXPECT_THAT(read.error().message(), HasSubstr(member));
  }
  EXPECT_FALSE(parse_story(json::Array()));
}

TEST(StoryJson, CutsNumbersThatNoTurnHas) {
  json::Value value = json_of(story());
  json::set_at(value, {"ranMicroseconds"}, std::int64_t{-5});
  json::set_at(value, {"cpuMicroseconds"}, std::numeric_limits<std::int64_t>::max());
  json::set_at(value, {"memoryBytes"}, std::int64_t{-1});
  const Result<Story> read = parse_story(value);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->ran, Duration::zero());
  EXPECT_EQ(read->cpu, std::chrono::hours(24 * 365));
  EXPECT_EQ(read->memory_bytes, 0U);
}

TEST(ReadDirectoryJson, IsReadAsItWasWritten) {
  const ReadDirectory read{
      .since = kWall,
      .lost_records = 3,
      .shortened = {{.namespace_ = "loud", .records = 9, .until = kWall + std::chrono::hours(1)}},
      .problems = {"one", "two"}};
  const Result<ReadDirectory> again = parse_read_directory(json_of(read));

  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->since, read.since);
  EXPECT_EQ(again->lost_records, 3U);
  EXPECT_EQ(again->shortened, read.shortened);
  EXPECT_EQ(again->problems, read.problems);
  EXPECT_FALSE(parse_read_directory(json_of(ReadDirectory()))->since);
}

}  // namespace
}  // namespace hangar::recorder
