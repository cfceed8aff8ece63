#include "commands/timeline.h"

#include "base/time.h"
#include "commands/story_text.h"
#include "commands/test_hostile_text.h"
#include "json/value.h"
#include "recorder/story.h"
#include "seeing/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {
namespace {

using namespace std::chrono_literals;
using recorder::Story;
using recorder::Verb;
using recorder::Waking;
using testing::HasSubstr;
using testing::Not;

const WallTime kWall{std::chrono::hours(500000)};

recorder::ReadDirectory whole() {
  return {.files = 1, .since = kWall};
}

std::vector<Story> two_turns() {
  const recorder::ObjectVersion source{
      .kind = "ConfigMap", .namespace_ = "team", .name = "source", .version = 11};
  const recorder::ObjectVersion copy{
      .kind = "ConfigMap", .namespace_ = "team", .name = "copy", .version = 13};
  return {{.namespace_ = "team",
           .name = "mirror",
           .module = "ab",
           .number = 7,
           .arrived = kWall,
           .waited = 41us,
           .ran = 1200us,
           .resume = 183us,
           .cpu = 900us,
           .was_asleep = true,
           .causes = {{.what = Waking::Cause::Modified, .object = source}},
           .causes_left_out = 2,
           .requests = {{.id = 4,
                         .verb = Verb::Update,
                         .resource = "configmaps",
                         .version_before = 12,
                         .at = kWall,
                         .took = 3ms,
                         .status = 200,
                         .object = copy}}},
          {.namespace_ = "team",
           .name = "mirror",
           .module = "ab",
           .number = 8,
           .arrived = kWall + 1s,
           .ran = 300us,
           .outcome = recorder::Turn::Outcome::Failed,
           .causes = {{.what = Waking::Cause::Answer, .id = 4, .bytes = 50},
                      {.what = Waking::Cause::Timer, .id = 9}},
           .suspend = 2ms,
           .disk_bytes = 3000}};
}

TEST(TimelineText, HasTurnsTheirCausesAndWhatTheyAskedFor) {
  EXPECT_EQ(timeline_text(two_turns(), whole()),
            "Module sha256:ab\n"
            "2027-01-15T08:00:00.000000Z  turn 7: ran 1.2ms, cpu 900us, resumed in 183us, waited "
            "41us\n"
            "    <- modified ConfigMap team/source@11\n"
            "    <- 2 more\n"
            "    -> update configmaps team/copy: 200 in 3.0ms, 12 -> 13\n"
            "2027-01-15T08:00:01.000000Z  turn 8: ran 300us, cpu 0us, then asleep in 2.0ms (3000 "
            "bytes); failed\n"
            "    <- answer (50 bytes) to update configmaps team/copy\n"
            "    <- timer 9\n"
            "Records go back to 2027-01-15T08:00:00Z.\n");
}

TEST(TimelineText, NamesTheInstanceOfEachTurnOfAnAirway) {
  const std::vector<Story> stories = {
      {.namespace_ = "shop",
       .name = "backends.examples.com/web",
       .module = "f1",
       .number = 7,
       .arrived = kWall,
       .ran = 21ms,
       .cpu = 18ms,
       .requests = {{.id = 1, .verb = Verb::Get, .resource = "secrets", .status = 200}}},
      {.name = "airways.yoke.cd/backends.examples.com",
       .module = "c0",
       .number = 1,
       .arrived = kWall + 1s,
       .ran = 2ms},
      {.namespace_ = "team\x1b",
       .name = "backends.examples.com/a",
       .module = "f1",
       .number = 1,
       .arrived = kWall + 2s,
       .ran = 3ms,
       .causes = {{.what = Waking::Cause::Answer, .id = 1, .bytes = 5}}}};

  EXPECT_EQ(timeline_text(stories, whole(), "backends.examples.com"),
            "Module sha256:f1\n"
            "2027-01-15T08:00:00.000000Z  shop/web     turn 7: ran 21.0ms, cpu 18.0ms\n"
            "    -> get secrets: no answer is recorded\n"
            "Module sha256:c0\n"
            "2027-01-15T08:00:01.000000Z  (converter)  turn 1: ran 2.0ms, cpu 0us\n"
            "2027-01-15T08:00:02.000000Z  team\\x1b/a   turn 1: ran 3.0ms, cpu 0us\n"
            "    <- answer (5 bytes) to request 1\n"
            "Records go back to 2027-01-15T08:00:00Z.\n");
}

TEST(TimelineText, SaysWhatItWasToAMachine) {
  std::vector<Story> stories = two_turns();
  stories[0].causes[0].event = "signal GO\x1b";
  stories[1].causes[0].event = "action MADE of APPLY#1";
  stories[1].causes[1].event = "APPLY#2 continues";
  stories[1].causes.push_back({.what = Waking::Cause::Event, .event = "timeout TIMEOUT"});
  const std::string text = timeline_text(stories, whole());

  EXPECT_THAT(text, HasSubstr("    <- signal GO\\x1b: modified ConfigMap team/source@11\n"));
  EXPECT_THAT(text, HasSubstr("    <- action MADE of APPLY#1: answer to update configmaps"));
  EXPECT_THAT(text, HasSubstr("    <- APPLY#2 continues\n"));
  EXPECT_THAT(text, HasSubstr("    <- timeout TIMEOUT\n"));
}

TEST(TimelineText, HasBodiesOrSaysWhyThereAreNone) {
  std::vector<Story> stories = two_turns();
  const auto text_with = [&stories](recorder::RecordedBody body) {
    stories[0].requests[0].body = std::move(body);
    return timeline_text(stories, whole());
  };
  EXPECT_THAT(text_with({.text = R"({"a":1})"}), HasSubstr("12 -> 13\n       {\"a\":1}\n"));
  EXPECT_THAT(text_with({.state = recorder::BodyState::Cut, .text = "{"}),
              HasSubstr("       { (cut here)\n"));
  EXPECT_THAT(text_with({.state = recorder::BodyState::Unreadable}), HasSubstr("neither JSON"));
  EXPECT_THAT(text_with({.state = recorder::BodyState::Withheld}), HasSubstr("(body withheld"));
  EXPECT_THAT(text_with({.text = "\x1b"}), HasSubstr("\\x1b"));
}

TEST(TimelineText, SaysWhatIsMissing) {
  recorder::ReadDirectory read = whole();
  read.lost_records = 5;
  read.shortened = {{.namespace_ = "team\x1b", .records = 7, .until = *read.since}};
  read.problems = {"turns-1.rec: the file ends within a block"};
  const std::string text = timeline_text({}, read);

  EXPECT_THAT(text, HasSubstr("5 records in between are lost"));
  EXPECT_THAT(text, HasSubstr("Those of namespace team\\x1b are complete only since " +
                              to_rfc3339(*read.since) + ": 7 older ones made room.\n"));
  EXPECT_THAT(text, HasSubstr("turns-1.rec: the file ends within a block"));
}

TEST(TimelineText, LeavesATerminalAlone) {
  std::vector<Story> stories = two_turns();
  stories[0].requests[0].resource = "";
  stories[0].requests[0].path = "/x\x1b[2J\xe2\x80\xae\n";
  const std::string text = timeline_text(stories, whole());

  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("/x\\x1b[2J\\xe2\\x80\\xae\\x0a"));
  EXPECT_THAT(json::dump(seeing::json_of(seeing::FoundTurns{.stories = stories, .read = whole()})),
              HasSubstr(R"(/x\\x1b[2J\\xe2)"));
}

TEST(TimelineText, KeepsItsLinesWhenTextIsHostile) {
  // The lines of `stories`, without the texts of guests and objects.
  const auto shape = [](std::vector<Story> stories, std::string (*text)()) {
    for (Story& story : stories) {
      story.namespace_ = story.name = story.module = text();
      for (recorder::Cause& cause : story.causes) {
        cause.event = text();
        cause.object = {.group = text(), .kind = text(), .namespace_ = text(), .name = text()};
      }
      for (recorder::Request& request : story.requests) {
        request.resource = request.subresource = text();
        request.object = {.group = text(), .namespace_ = text(), .name = text(), .version = 13};
        request.body = recorder::RecordedBody{.text = text()};
      }
    }
    recorder::ReadDirectory read = whole();
    read.shortened = {{.namespace_ = text(), .records = 7, .until = *read.since}};
    read.problems = {text()};
    const std::string told = timeline_text(stories, read);
    EXPECT_TRUE(is_plain(told));
    std::vector<std::string> begins;
    for (const auto line : std::views::split(told, '\n')) {
      const std::string_view whole_line(line.begin(), line.end());
      begins.emplace_back(whole_line.substr(0, 8));
    }
    return begins;
  };

  EXPECT_EQ(shape(two_turns(), hostile_text),
            shape(two_turns(), [] { return std::string("<script>"); }));
}

TEST(ResultText, SaysWhatIsKnownOfARequest) {
  recorder::Request request{.verb = Verb::Patch, .resource = "pods"};
  EXPECT_EQ(result_text(request), "no answer is recorded");
  request.took = 2ms;
  EXPECT_EQ(result_text(request), "cancelled after 2.0ms");
  request.status = 200;
  request.object.version = 5;
  EXPECT_EQ(result_text(request), "200 in 2.0ms, now 5");
  request.version_before = 5;
  EXPECT_EQ(result_text(request), "200 in 2.0ms, still 5");
  request.verb = recorder::Verb::Get;
  EXPECT_EQ(result_text(request), "200 in 2.0ms, at 5");
}

}  // namespace
}  // namespace hangar::commands
