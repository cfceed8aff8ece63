#include "commands/why.h"

#include "base/time.h"
#include "commands/test_hostile_text.h"
#include "json/value.h"
#include "recorder/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace hangar::commands {
namespace {

using namespace std::chrono_literals;
using recorder::ObjectVersion;
using recorder::Verb;
using recorder::Waking;
using testing::HasSubstr;

const WallTime kWall{std::chrono::hours(500000)};

// The texts that somebody else chose.
struct Names {
  std::string first = "first";
  std::string second = "second";
  std::string object = "web";
  std::string source = "plan";
  std::string resource = "backends";
  std::string manager = "kubectl-edit";
  std::string event;
};

ObjectVersion version_of(const std::string& name, std::uint64_t version) {
  return {.group = name, .kind = name, .namespace_ = "shop", .name = name, .version = version};
}

// `first` wrote the object because `second` had written the source, which somebody else had begun.
WhyAnswer answer_with(const Names& names) {
  const ObjectVersion begun = version_of(names.source, 3);
  const ObjectVersion source = version_of(names.source, 5);
  const ObjectVersion object = version_of(names.object, 7);
  const auto write_of = [&names](ObjectVersion written) {
    return recorder::Request{.id = 1,
                             .verb = Verb::Update,
                             .resource = names.resource,
                             .field_manager = names.manager,
                             .at = kWall,
                             .took = 2ms,
                             .status = 200,
                             .object = std::move(written)};
  };
  WhyAnswer answer{.target = {.group = names.object,
                              .kind = names.object,
                              .plural = names.resource,
                              .namespace_ = "shop",
                              .name = names.object},
                   .read = {.files = 1, .since = kWall}};
  answer.findings.steps = {
      {.story =
           {.namespace_ = "shop",
            .name = names.first,
            .module = names.first,
            .number = 4,
            .arrived = kWall,
            .causes = {{.what = Waking::Cause::Modified, .event = names.event, .object = source}},
            .requests = {write_of(object)}},
       .links = {{.step = 1, .request = 0}}},
      {.story = {.namespace_ = "shop",
                 .name = names.second,
                 .number = 2,
                 .arrived = kWall,
                 .causes = {{.what = Waking::Cause::Modified, .object = begun}},
                 .requests = {write_of(source)}},
       .links = {{}},
       .depth = 1}};
  answer.findings.writes = {{.step = 0, .request = 0}};
  const FieldManager somebody{.name = names.manager, .operation = "Update", .time = kWall};
  answer.current = CurrentObject{.version = 7, .managers = {somebody}};
  answer.others = {{version_of(names.source, 0), {.version = 3, .managers = {somebody}}}};
  return answer;
}

TEST(WhyText, LeadsFromTheWriteToWhoBegan) {
  EXPECT_EQ(why_text(answer_with({})),
            "web.web shop/web is at version 7, which was written from here.\n"
            "2027-01-15T08:00:00.000000Z  update backends.web shop/web: 200 in 2.0ms, now 7\n"
            "  <- turn 4 of operator shop/first at 2027-01-15T08:00:00.000000Z (module "
            "sha256:first)\n"
            "    <- modified plan.plan shop/plan@5\n"
            "      <- update backends.plan shop/plan: 200 in 2.0ms, now 5\n"
            "      <- turn 2 of operator shop/second at 2027-01-15T08:00:00.000000Z\n"
            "        <- modified plan.plan shop/plan@3\n"
            "          <- by kubectl-edit (Update at 2027-01-15T08:00:00Z)\n"
            "Records go back to 2027-01-15T08:00:00Z.\n");
}

TEST(WhyText, SaysHowFarItKnows) {
  WhyAnswer answer = answer_with({});
  answer.others.clear();
  EXPECT_THAT(why_text(answer),
              HasSubstr("<- the writer is not known; records go back to 2027-01-15T08:00:00Z\n"));

  answer.findings = {};
  EXPECT_EQ(why_text(answer),
            "web.web shop/web is at version 7, which was written by kubectl-edit (Update at "
            "2027-01-15T08:00:00Z), as its managedFields say.\n"
            "No write from here is held.\n"
            "Records go back to 2027-01-15T08:00:00Z.\n");
}

TEST(WhyMermaid, IsADiagramOfTheSame) {
  EXPECT_EQ(why_mermaid(answer_with({})),
            "flowchart LR\n"
            "  object[\"web.web shop/web\"]\n"
            "  t0(\"operator shop/first, turn 4\")\n"
            "  t1 -->|\"modified plan.plan shop/plan@5\"| t0\n"
            "  t1(\"operator shop/second, turn 2\")\n"
            "  o0[/\"kubectl-edit (Update at 2027-01-15T08:00:00Z)\"/] -->|\"modified plan.plan "
            "shop/plan@3\"| t1\n"
            "  t0 -->|\"update at 2027-01-15T08:00:00Z\"| object\n");
}

// Names with everything that could end a line, a quoted text of a diagram or a string of JSON.
Names hostile_names() {
  const std::string text = "\"|] --> object\n  x[\"" + hostile_text();
  return {.first = text,
          .second = text,
          .object = text,
          .source = text,
          .resource = text,
          .manager = text,
          .event = text};
}

std::size_t count_of(const std::string& text, char letter) {
  return static_cast<std::size_t>(std::ranges::count(text, letter));
}

TEST(WhyText, KeepsItsLinesWhenTextIsHostile) {
  const std::string text = why_text(answer_with(hostile_names()));

  EXPECT_TRUE(is_plain(text));
  EXPECT_EQ(count_of(text, '\n'), count_of(why_text(answer_with({})), '\n'));
}

TEST(WhyMermaid, KeepsItsNodesWhenTextIsHostile) {
  const std::string usual = why_mermaid(answer_with({}));
  const std::string text = why_mermaid(answer_with(hostile_names()));

  EXPECT_TRUE(is_plain(text));
  for (const char letter : {'\n', '"', '<'})
    EXPECT_EQ(count_of(text, letter), count_of(usual, letter)) << letter;
}

TEST(WhyJson, IsJsonWithoutControlCharactersWhenTextIsHostile) {
  const std::string text = why_json(answer_with(hostile_names()));

  EXPECT_TRUE(is_plain(text));
  const auto read = json::parse(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::array_at(*read, {"turns"})->size(), 2U);
}

}  // namespace
}  // namespace hangar::commands
