#include "seeing/find.h"

#include "kube/object.h"
#include "recorder/files.h"
#include "recorder/format.h"
#include "recorder/limits.h"
#include "recorder/record.h"
#include "seeing/limits.h"
#include "seeing/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::seeing {
namespace {

using namespace std::chrono_literals;
using recorder::Asked;
using recorder::Turn;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Instant kInstant{10h};
constexpr std::uint64_t kBodyBytes = 100;
const WallTime kWall = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());

class FindTest : public testing::Test {
 protected:
  ~FindTest() override { std::filesystem::remove_all(root_); }

  // Records a turn of `name` that began `after` kInstant, lasted `took` and wrote the target. The
  // clock says `wall` at kInstant.
  void record(std::string_view name, std::uint64_t number, Duration after, Duration took,
              WallTime wall = kWall) {
    const recorder::Guest guest{.namespace_ = "team", .name = name, .instance = 1};
    recorder::Block block;
    const recorder::Block::Moment moment{.instant = kInstant, .wall = wall};
    block.add(Turn{.guest = guest,
                   .number = number,
                   .arrived = kInstant + after,
                   .began = kInstant + after,
                   .ended = kInstant + after + took,
                   .cpu = took},
              moment);
    block.add(Asked{.guest = guest,
                    .turn = number,
                    .id = number,
                    .at = kInstant + after,
                    .verb = recorder::Verb::Update,
                    .resource = "things",
                    .namespace_ = "team",
                    .name = "target",
                    .bytes = kBodyBytes},
              moment);
    append(std::move(block));
  }
  void record_of(recorder::Guest guest, std::uint64_t number, Duration after, Duration took) {
    recorder::Block block;
    guest.contract = recorder::Contract::Airway;
    block.add(Turn{.guest = guest,
                   .number = number,
                   .arrived = kInstant + after,
                   .began = kInstant + after,
                   .ended = kInstant + after + took},
              {.instant = kInstant, .wall = kWall});
    append(std::move(block));
  }
  void append(recorder::Block block) {
    ASSERT_TRUE(files_.append(std::move(block), kInstant, kWall));
  }
  [[nodiscard]] Result<FoundTurns> turns(const TurnsQuestion& question,
                                         const ReadBounds& bounds = {}) const {
    return find_turns({.directory = root_, .file = {}}, question, bounds);
  }
  static std::vector<std::uint64_t> numbers(const std::vector<recorder::Story>& stories) {
    std::vector<std::uint64_t> found;
    found.reserve(stories.size());
    for (const recorder::Story& story : stories)
      found.push_back(story.number);
    return found;
  }
  [[nodiscard]] FoundTop top(const TopQuestion& question) const {
    return find_top({.directory = root_, .file = {}}, question, {}).value();
  }
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  static std::filesystem::path make_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "find-XXXXXX").string();
    return ::mkdtemp(name.data());
  }

  const std::filesystem::path root_ = make_directory();
  recorder::Files files_{root_, {.bytes_max = recorder::kBytesMin, .age_max = 24h}, 7};
};

TEST_F(FindTest, TurnsAreTheLastOfThatOperator) {
  record("mirror", 1, 0s, 1ms);
  record("other", 1, 1s, 1ms);
  record("mirror", 2, 2s, 9ms);
  record("mirror", 3, 3s, 2ms);

  const auto last = turns({.namespace_ = "team", .name = "mirror", .turns_max = 2});
  ASSERT_TRUE(last) << last.error().message();
  EXPECT_THAT(numbers(last->stories), ElementsAre(2, 3));
  const auto slowest =
      turns({.namespace_ = "team", .name = "mirror", .turns_max = 2, .slowest = true});
  ASSERT_TRUE(slowest) << slowest.error().message();
  EXPECT_THAT(numbers(slowest->stories), ElementsAre(2, 3));
  const auto none = turns({.namespace_ = "shop", .name = "mirror"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::NotFound);
}

TEST_F(FindTest, TurnsOfAnAirwayAreThoseOfAllItsInstances) {
  const recorder::Guest web{.namespace_ = "shop", .name = "backends.examples.com/web"};
  const recorder::Guest api{.namespace_ = "team", .name = "backends.examples.com/api"};
  const recorder::Guest airway{.name = "airways.yoke.cd/backends.examples.com"};
  // It began before the next two, and ended after them.
  record_of(web, 2, 2s, 30ms);
  record_of(airway, 3, 3s, 1ms);
  record_of(api, 4, 4s, 20ms);
  record_of({.namespace_ = "shop", .name = "backends.examples.community/web"}, 5, 5s, 90ms);
  record_of({.namespace_ = "shop", .name = "others.examples.com/web"}, 6, 6s, 90ms);
  record_of(web, 1, 1s, 9s);

  TurnsQuestion question{
      .namespace_ = {}, .name = std::string(airway.name), .instances = "backends.examples.com"};
  const auto all = turns(question);
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_THAT(numbers(all->stories), ElementsAre(1, 2, 3, 4));
  question.slowest = true;
  question.turns_max = 3;
  const auto slowest = turns(question);
  ASSERT_TRUE(slowest) << slowest.error().message();
  EXPECT_THAT(numbers(slowest->stories), ElementsAre(1, 2, 4));
  question.namespace_ = "team";
  const auto of_team = turns(question);
  ASSERT_TRUE(of_team) << of_team.error().message();
  EXPECT_THAT(numbers(of_team->stories), ElementsAre(4));
}

TEST_F(FindTest, TurnsOfAnAirwayAreThoseThatItsReaderMaySee) {
  const kube::ObjectKey web{.namespace_ = "shop", .name = "backends.examples.com/web"};
  const kube::ObjectKey api{.namespace_ = "team", .name = "backends.examples.com/api"};
  record_of({.namespace_ = web.namespace_, .name = web.name}, 1, 1s, 1ms);
  record_of({.name = "airways.yoke.cd/backends.examples.com"}, 2, 2s, 1ms);
  for (std::uint64_t number = 3; number < 10; ++number)
    record_of({.namespace_ = api.namespace_, .name = api.name}, number, 3s, 1ms);
  const TurnsQuestion question{.namespace_ = {},
                               .name = "airways.yoke.cd/backends.examples.com",
                               .turns_max = 2,
                               .instances = "backends.examples.com"};
  const RecordsPlace place{.directory = root(), .file = {}};

  EXPECT_EQ(find_instances(place, question, {}), (std::set<kube::ObjectKey>{web, api}));
  // Turns that are withheld take no places of others.
  const auto found = find_turns(place, question, {}, {.named = true, .instances = std::set{web}});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_THAT(numbers(found->stories), ElementsAre(1, 2));
  const auto none = find_turns(place, question, {}, {.named = false, .instances = {{}}});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("or its instances is recorded"));
}

TEST_F(FindTest, WhatDoesNotFitIsLeftOutAndTold) {
  for (std::uint64_t number = 1; number <= 3; ++number)
    record("mirror", number, std::chrono::seconds(number), 1ms);
  // A turn and its request are two entries.
  const TurnsQuestion question{.namespace_ = "team", .name = "mirror"};

  const auto all = turns(question, {.time_max = 1h, .entries_max = 6});
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_THAT(numbers(all->stories), ElementsAre(1, 2, 3));
  EXPECT_THAT(all->read.problems, IsEmpty());
  const auto some = turns(question, {.time_max = 1h, .entries_max = 5});
  ASSERT_TRUE(some) << some.error().message();
  EXPECT_THAT(numbers(some->stories), ElementsAre(2, 3));
  EXPECT_THAT(some->read.problems, ElementsAre(HasSubstr("5 turns, causes and requests")));
}

TEST_F(FindTest, BodiesAreForWhoAsksForThemAndCountByTheirSize) {
  for (std::uint64_t number = 1; number <= 2; ++number) {
    record("mirror", number, std::chrono::seconds(number), 1ms);
    recorder::Block block;
    const std::string text(10 * kBodyPieceBytes, 'x');
    block.add(recorder::Body{.guest = {.namespace_ = "team", .name = "mirror", .instance = 1},
                             .id = number,
                             .at = kInstant,
                             .text = text},
              {.instant = kInstant, .wall = kWall});
    append(std::move(block));
  }
  TurnsQuestion question{.namespace_ = "team", .name = "mirror"};
  const auto without = turns(question, {.entries_max = 4});
  ASSERT_TRUE(without) << without.error().message();
  EXPECT_THAT(numbers(without->stories), ElementsAre(1, 2));
  EXPECT_FALSE(without->stories[0].requests[0].body);

  question.bodies = true;
  const auto with = turns(question, {.entries_max = 13});
  ASSERT_TRUE(with) << with.error().message();
  EXPECT_THAT(numbers(with->stories), ElementsAre(2));
  EXPECT_EQ(with->stories[0].requests[0].body->text.size(), 10 * kBodyPieceBytes);
}

TEST_F(FindTest, ReadingEndsInTime) {
  for (std::uint64_t number = 1; number <= 600; ++number)
    record("mirror", number, std::chrono::milliseconds(number), 1us);
  const auto found = turns({.namespace_ = "team", .name = "mirror", .turns_max = 1000},
                           {.time_max = Duration::zero(), .entries_max = 100000});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_LT(found->stories.size(), 600U);
  EXPECT_THAT(found->read.problems, ElementsAre(HasSubstr("older records were not read")));
}

TEST_F(FindTest, WritesAreThoseSinceThen) {
  record("mirror", 1, 0s, 1ms);
  record("mirror", 2, 10s, 1ms);
  record("slow", 1, 2s, 30s);  // It ended last although it began before the second turn of mirror.
  WritesQuestion question{.target = {.plural = "things", .namespace_ = "team", .name = "target"}};

  const auto all = find_writes(root(), question, {});
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->findings.writes.size(), 3U);
  EXPECT_EQ(all->read.since, kWall);
  question.since = kWall + 5s;
  const auto some = find_writes(root(), question, {});
  ASSERT_TRUE(some) << some.error().message();
  EXPECT_EQ(some->findings.writes.size(), 2U);
}

TEST_F(FindTest, ATableCountsTheTurnsOfItsTime) {
  record("mirror", 1, -2h, 1ms);
  record("mirror", 2, -10s, 1ms);
  record("mirror", 3, -5s, 1ms);
  record("other", 1, -1s, 1ms);

  const FoundTop found = top({.window = 600s});
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_EQ(found.rows[0].key.name, "mirror");
  EXPECT_EQ(found.rows[0].turns, 2U);
  EXPECT_EQ(found.rows[0].requests, 2U);
  EXPECT_EQ(found.rows[0].written_bytes, 2 * kBodyBytes);
  EXPECT_EQ(found.rows[0].cpu, 2ms);
  EXPECT_EQ(found.window, 600s);
  EXPECT_EQ(top({.namespace_ = "nobody", .window = 600s}).rows.size(), 0U);
}

// The clock was an hour ahead, and was set back between the second turn and the third.
TEST_F(FindTest, ATableHasNothingFromBeforeItsTimeThoughTheClockWasSetBack) {
  record("mirror", 1, -300s, 1ms, kWall + 1h);
  record("mirror", 2, -120s, 1ms, kWall + 1h);
  record("mirror", 3, -30s, 1ms);
  record("mirror", 4, -5s, 1ms);

  EXPECT_EQ(top({.window = 60s}).rows.at(0).turns, 2U);
  EXPECT_EQ(top({.window = 600s}).rows.at(0).turns, 4U);
}

TEST_F(FindTest, WritesSinceThenAreFewThoughTheClockWasSetBack) {
  record("mirror", 1, -120s, 1ms, kWall + 1h);
  record("mirror", 2, -40s, 1ms, kWall + 1h);
  record("mirror", 3, -5s, 1ms);

  const auto found =
      find_writes(root(),
                  {.target = {.plural = "things", .namespace_ = "team", .name = "target"},
                   .since = kWall - 60s},
                  {});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->findings.writes.size(), 2U);
}

TEST_F(FindTest, ATableOfYoungRecordsSaysOfHowLongItIs) {
  record("mirror", 1, -1s, 1ms);
  const FoundTop found = top({.window = 3600s});

  EXPECT_EQ(found.rows.size(), 1U);
  EXPECT_LT(found.window, 600s);
}

TEST(AddPresent, HasThoseThatDidNothingAndWhatAllHaveNow) {
  FoundTop found{.rows = {{.key = {.namespace_ = "team", .name = "busy"}, .turns = 3},
                          {.key = {.namespace_ = "team", .name = "gone"}, .turns = 1}}};
  add_present(
      found,
      {{.key = {.namespace_ = "team", .name = "busy"},
        .phase = "Running",
        .memory_bytes = 5,
        .restarts = 2},
       {.key = {.namespace_ = "team", .name = "asleep"}, .phase = "Asleep", .disk_bytes = 7}});

  ASSERT_EQ(found.rows.size(), 3U);
  EXPECT_EQ(found.rows[0].key.name, "asleep");
  EXPECT_EQ(found.rows[0].disk_bytes, 7U);
  EXPECT_EQ(found.rows[1].turns, 3U);
  EXPECT_EQ(found.rows[1].memory_bytes, 5U);
  EXPECT_EQ(found.rows[1].restarts, 2U);
  EXPECT_EQ(found.rows[2].phase, "");
}

TEST_F(FindTest, TellsOfOtherNamespacesOnlyWhenTheyMatter) {
  record("a", 1, 0s, 1ms);
  recorder::Block block;
  for (const std::string_view one : {"elsewhere", "team"}) {
    block.add(recorder::GivenUp{.namespace_ = one, .count = 7, .until = kInstant - 1min},
              {.instant = kInstant, .wall = kWall});
  }
  append(std::move(block));

  const Result<FoundTurns> of_team = turns({.namespace_ = "team", .name = "a"});
  ASSERT_TRUE(of_team) << of_team.error().message();
  EXPECT_THAT(
      of_team->read.shortened,
      ElementsAre(recorder::Shortened{.namespace_ = "team", .records = 7, .until = kWall - 1min}));
  EXPECT_THAT(turns({.namespace_ = "team", .name = "b"}).error().message(),
              HasSubstr("records of its namespace go back to"));
  EXPECT_THAT(turns({.namespace_ = "shop", .name = "b"}).error().message(),
              HasSubstr("; records go back to"));

  const auto writes = find_writes(root(), {}, {});
  ASSERT_TRUE(writes);
  EXPECT_THAT(writes->read.shortened, testing::SizeIs(2));
  // Records that were given up before the window are not missing in it.
  EXPECT_THAT(top({.window = 10s}).read.shortened, IsEmpty());
  EXPECT_THAT(top({.namespace_ = "team", .window = 1h}).read.shortened, testing::SizeIs(1));
}

}  // namespace
}  // namespace hangar::seeing
