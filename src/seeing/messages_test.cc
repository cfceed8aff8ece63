#include "seeing/messages.h"

#include "json/value.h"
#include "seeing/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::seeing {
namespace {

using testing::HasSubstr;

const WallTime kWall{std::chrono::hours(500000)};

TEST(TurnsQuestion, IsReadAsItWasWritten) {
  const TurnsQuestion question{.namespace_ = "team",
                               .name = "airways.yoke.cd/backends.examples.com",
                               .turns_max = 7,
                               .slowest = true,
                               .bodies = true,
                               .instances = "backends.examples.com"};
  const Result<TurnsQuestion> read = parse_turns_question(json::dump(json_of(question)));

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, question);
}

TEST(TurnsQuestion, NamesWhatIsWrong) {
  const auto words = [](std::string_view text) {
    const Result<TurnsQuestion> read = parse_turns_question(text);
    return read ? std::string() : read.error().message();
  };
  EXPECT_THAT(words("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(words(R"({"name":"a"})"), HasSubstr("\"namespace\""));
  EXPECT_THAT(words(R"({"namespace":"a"})"), HasSubstr("\"name\""));
  // An instance of an Airway may be cluster-scoped.
  EXPECT_EQ(words(R"({"name":"backends.examples.com/web"})"), "");
  EXPECT_THAT(words(R"({"namespace":"a","name":"b","turns":0})"), HasSubstr("\"turns\""));
  EXPECT_EQ(words(R"({"namespace":"a","name":"b","turns":1000})"), "");
  EXPECT_THAT(words(R"({"namespace":"a","name":"b","turns":1001})"), HasSubstr("1 to 1000"));
  EXPECT_THAT(words(R"({"name":"airways.yoke.cd/b","instances":"a/b"})"),
              HasSubstr("\"instances\""));
  const std::string longest(kTextBytesMax, 'x');
  EXPECT_EQ(words(R"({"namespace":"a","name":")" + longest + R"("})"), "");
  EXPECT_THAT(words(R"({"namespace":"a","name":")" + longest + R"(x"})"), HasSubstr("\"name\""));
}

TEST(WritesQuestion, IsReadAsItWasWritten) {
  WritesQuestion question{.target = {.group = "apps",
                                     .kind = "Deployment",
                                     .plural = "deployments",
                                     .namespace_ = "shop",
                                     .name = "front"},
                          .limits = {.writes_max = 3, .depth_max = 2},
                          .since = kWall,
                          .bodies = true};
  const Result<WritesQuestion> read = parse_writes_question(json::dump(json_of(question)));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, question);

  // A cluster-scoped object of the core group.
  question = {.target = {.kind = "Node", .plural = "nodes", .name = "a"}};
  const Result<WritesQuestion> plain = parse_writes_question(json::dump(json_of(question)));
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(*plain, question);
}

TEST(WritesQuestion, GoesNoFurtherBackThanItsBound) {
  const auto is_read = [](std::string_view rest) {
    return parse_writes_question(R"({"resource":"nodes","name":"a")" + std::string(rest) + "}")
        .has_value();
  };
  EXPECT_TRUE(is_read(R"(,"depth":8,"writes":1000)"));
  EXPECT_FALSE(is_read(R"(,"depth":9)"));
  EXPECT_FALSE(is_read(R"(,"depth":-1)"));
  EXPECT_FALSE(is_read(R"(,"writes":1001)"));
  EXPECT_FALSE(is_read(R"(,"since":"now")"));
}

FoundWrites found() {
  recorder::Story writer{.namespace_ = "shop", .name = "copier", .arrived = kWall};
  writer.causes = {{.what = recorder::Waking::Cause::Modified}, {}};
  writer.requests = {{.verb = recorder::Verb::Update, .resource = "things", .at = kWall}};
  return {.at = kWall,
          .findings = {.steps = {{.story = writer, .links = {{.step = 0, .request = 0}, {}}}},
                       .writes = {{.step = 0, .request = 0}}},
          .read = {.since = kWall}};
}

TEST(FoundWrites, AreReadAsTheyWereWritten) {
  const std::string written = json::dump(json_of(found()));
  const Result<FoundWrites> read = parse_found_writes(written);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::dump(json_of(*read)), written);
  EXPECT_EQ(read->findings.steps[0].links[0].step, 0U);
  EXPECT_FALSE(read->findings.steps[0].links[1].step);
}

TEST(FoundWrites, ThatPointOutsideAreRefused) {
  FoundWrites wrong = found();
  wrong.findings.writes[0].step = 1;
  EXPECT_FALSE(parse_found_writes(json::dump(json_of(wrong))));
  wrong = found();
  wrong.findings.writes[0].request = 1;
  EXPECT_FALSE(parse_found_writes(json::dump(json_of(wrong))));
  wrong = found();
  wrong.findings.steps[0].links[0].request = 1;
  EXPECT_FALSE(parse_found_writes(json::dump(json_of(wrong))));
  wrong = found();
  wrong.findings.steps[0].links[0] = {.step = 5, .request = {}};
  EXPECT_FALSE(parse_found_writes(json::dump(json_of(wrong))));
}

TEST(FoundTurns, AreReadAsTheyWereWritten) {
  const FoundTurns turns{.stories = {found().findings.steps[0].story}, .read = {.since = kWall}};
  const std::string written = json::dump(json_of(turns));
  const Result<FoundTurns> read = parse_found_turns(written);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::dump(json_of(*read)), written);
}

TEST(FoundUses, AreReadAsTheyWereWritten) {
  const FoundUses uses{.contract = recorder::Contract::Workflow,
                       .user = "system:serviceaccount:shop:default",
                       .earlier_users = {"system:serviceaccount:shop:old"},
                       .turns = 4,
                       .has_start = false,
                       .uses = {{.right = {.verb = recorder::Verb::Watch,
                                           .group = "apps",
                                           .resource = "deployments",
                                           .subresource = "scale",
                                           .namespace_ = "shop",
                                           .path = "/metrics"},
                                 .count = 1,
                                 .created = 2,
                                 .refused = 3,
                                 .last = kWall,
                                 .names = {"a", "b"},
                                 .has_more_names = true,
                                 .is_open = true},
                                {.last = kWall}},
                       .uses_left_out = 5,
                       .sharers = {{.namespace_ = "shop", .name = "other"}},
                       .sharers_withheld = 6,
                       .read = {.since = kWall}};
  const std::string written = json::dump(json_of(uses));
  const Result<FoundUses> read = parse_found_uses(written);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::dump(json_of(*read)), written);
  EXPECT_EQ(read->uses[0].right, uses.uses[0].right);
  EXPECT_EQ(read->uses[0].names, uses.uses[0].names);
}

TEST(UsesQuestion, IsReadAsItWasWritten) {
  const UsesQuestion question{.namespace_ = "team", .name = "mirror"};
  const Result<UsesQuestion> read = parse_uses_question(json::dump(json_of(question)));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, question);
  EXPECT_FALSE(parse_uses_question(R"({"name":"mirror"})"));
  EXPECT_TRUE(parse_uses_question(R"({"name":"things.example.com/one"})"));
}

TEST(TopQuestion, IsReadAsItWasWritten) {
  const TopQuestion question{.namespace_ = "team", .window = std::chrono::seconds(7)};
  const Result<TopQuestion> read = parse_top_question(json::dump(json_of(question)));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, question);
  EXPECT_TRUE(parse_top_question(R"({"seconds":3600})"));
  EXPECT_FALSE(parse_top_question(R"({"seconds":3601})"));
  EXPECT_FALSE(parse_top_question(R"({"seconds":0})"));
}

TEST(FoundTop, IsReadAsItWasWritten) {
  const FoundTop top{.at = kWall,
                     .window = std::chrono::seconds(60),
                     .rows = {{.key = {.namespace_ = "team", .name = "mirror"},
                               .phase = "Asleep",
                               .cpu = std::chrono::milliseconds(5),
                               .turns = 1,
                               .failures = 2,
                               .requests = 3,
                               .written_bytes = 4,
                               .memory_bytes = 5,
                               .disk_bytes = 6,
                               .restarts = 7},
                              {.key = {.namespace_ = "team", .name = "gone"}}},
                     .read = {.since = kWall}};
  const std::string written = json::dump(json_of(top));
  const Result<FoundTop> read = parse_found_top(written);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::dump(json_of(*read)), written);
  EXPECT_EQ(read->rows[0].restarts, 7U);
}

}  // namespace
TEST(CostQuestion, IsReadAsItWasWritten) {
  const CostQuestion question{.namespace_ = "shop"};
  const Result<CostQuestion> read = parse_cost_question(json::dump(json_of(question)));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, question);
  EXPECT_FALSE(parse_cost_question("[]"));
  EXPECT_FALSE(parse_cost_question(R"({"namespace":")" + std::string(600, 'n') + R"("})"));
}

TEST(FoundCost, IsReadAsItWasWritten) {
  const Cost cost{.cpu = std::chrono::seconds(3),
                  .memory_byte_seconds = 1,
                  .cache_byte_seconds = 2,
                  .disk_byte_seconds = 3,
                  .turns = 4,
                  .requests = 5,
                  .read_bytes = 6,
                  .written_bytes = 7};
  const FoundCost cost_table{.at = kWall,
                             .window = std::chrono::seconds(60),
                             .rows = {{.namespace_ = "shop", .module = "ab12", .cost = cost},
                                      {.namespace_ = std::string(kHostRow),
                                       .module = {},
                                       .cost = {.cpu = std::chrono::seconds(1)}}},
                             .processes = Cost{.cpu = std::chrono::seconds(4)},
                             .problems = {"one is missing"}};
  const Result<FoundCost> read = parse_found_cost(json::dump(json_of(cost_table)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at, cost_table.at);
  EXPECT_EQ(read->window, cost_table.window);
  EXPECT_EQ(read->rows, cost_table.rows);
  EXPECT_EQ(read->processes, cost_table.processes);
  EXPECT_EQ(read->problems, cost_table.problems);
}

TEST(FoundCost, HasNoTotalUnlessTheReaderMaySeeIt) {
  const Result<FoundCost> read =
      parse_found_cost(json::dump(json_of(FoundCost{.at = kWall, .rows = {}, .problems = {}})));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->processes);
}

}  // namespace hangar::seeing
