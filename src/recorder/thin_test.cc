#include "recorder/thin.h"

#include "recorder/format.h"
#include "recorder/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
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
using testing::Pair;

constexpr Instant kNow{100h};
constexpr WallTime kWall{std::chrono::hours(500000)};

Turn turn_of(std::string_view namespace_, std::uint64_t number) {
  const Instant at = kNow + std::chrono::seconds(number);
  return {.guest = {.namespace_ = namespace_, .name = "one"},
          .number = number,
          .arrived = at,
          .began = at,
          .ended = at};
}

// A file with a block for each list of turns.
std::string file_of(const std::vector<std::vector<Turn>>& blocks) {
  std::string bytes = encode(FileHeader{.host = 7, .sequence = 3});
  for (const std::vector<Turn>& turns : blocks) {
    Block block;
    for (const Turn& turn : turns)
      block.add(turn, {.instant = turn.ended, .wall = kWall + (turn.ended - kNow)});
    bytes += block.take();
  }
  return bytes;
}

std::vector<std::pair<std::string, std::uint64_t>> turns_in(const std::string& blocks) {
  std::vector<std::pair<std::string, std::uint64_t>> turns;
  const Result<ReadFile> file =
      read(encode(FileHeader()) + blocks, [&turns](const Place&, const Record& record) {
        const Turn& turn = std::get<Turn>(record);
        turns.emplace_back(turn.guest.namespace_, turn.number);
        return true;
      });
  EXPECT_TRUE(file && file->cut.empty());
  return turns;
}

TEST(Thin, RemovesTheOldestOfThoseWhoOwe) {
  const std::string file = file_of({{turn_of("loud", 1), turn_of("shy", 2), turn_of("loud", 3)},
                                    {turn_of("loud", 4), turn_of("shy", 5)}});
  const Measured measured = measure(file).value();
  EXPECT_EQ(measured.header, (FileHeader{.host = 7, .sequence = 3}));

  // The first turn has one byte less than this: two are removed.
  Holdings owed = {{"loud", held_by(measured.held, "loud") / 3 + 1}, {"absent", 5}};
  const Thinned thinned = thin(file, owed).value();
  EXPECT_THAT(turns_in(thinned.blocks),
              ElementsAre(Pair("shy", 2), Pair("loud", 4), Pair("shy", 5)));
  EXPECT_THAT(owed, ElementsAre(Pair("absent", 5)));
  ASSERT_EQ(thinned.given_up.size(), 1U);
  EXPECT_EQ(thinned.given_up.at("loud").count, 2U);
  EXPECT_EQ(thinned.given_up.at("loud").records, 2U);
  EXPECT_EQ(thinned.given_up.at("loud").until, kWall + 3s);
  EXPECT_EQ(thinned.header, measured.header);
  EXPECT_EQ(thinned.held, measure(encode(FileHeader()) + thinned.blocks)->held);
}

TEST(Thin, LeavesNothingOfAFileWhoseNamespacesOweAll) {
  const std::string file = file_of({{turn_of("loud", 1)}, {turn_of("loud", 2)}});
  Holdings owed = {{"loud", 1000000}};
  const Thinned thinned = thin(file, owed).value();
  EXPECT_EQ(thinned.blocks, "");
  EXPECT_THAT(thinned.held, IsEmpty());
  EXPECT_EQ(owed.at("loud"), 1000000 - held_by(measure(file)->held, "loud"));
}

TEST(Thin, KeepsTheTimesOfWhatStays) {
  const std::string file = file_of({{turn_of("loud", 1), turn_of("shy", 2)}, {turn_of("shy", 9)}});
  Holdings owed = {{"loud", 1}};
  const Thinned thinned = thin(file, owed).value();
  std::vector<WallTime> ends;
  ASSERT_TRUE(read(encode(FileHeader()) + thinned.blocks,
                   [&ends](const Place& place, const Record& record) {
                     ends.push_back(place.wall(time_of(record)));
                     return true;
                   }));
  EXPECT_THAT(ends, ElementsAre(kWall + 2s, kWall + 9s));
}

TEST(Thin, CountsWhatWasGivenUpBefore) {
  Block block;
  block.add(GivenUp{.namespace_ = "loud", .count = 40, .until = kNow - 5s},
            {.instant = kNow, .wall = kWall});
  block.add(GivenUp{.namespace_ = "shy", .count = 1, .until = kNow}, {});
  block.add(Lost{.count = 9, .since = kNow, .until = kNow}, {});
  Holdings owed = {{"loud", 1}, {"", 100}};
  const Thinned thinned = thin(encode(FileHeader()) + block.take(), owed).value();
  ASSERT_EQ(thinned.given_up.size(), 1U);
  EXPECT_EQ(thinned.given_up.at("loud").count, 40U);
  EXPECT_EQ(thinned.given_up.at("loud").records, 0U);
  EXPECT_EQ(thinned.given_up.at("loud").until, kWall - 5s);
  // Lost records belong to no namespace, and stay.
  EXPECT_EQ(owed.at(""), 100U);
  std::uint64_t lost = 0;
  ASSERT_TRUE(
      read(encode(FileHeader()) + thinned.blocks, [&lost](const Place&, const Record& record) {
        if (const auto* const one = std::get_if<Lost>(&record)) lost += one->count;
        return true;
      }));
  EXPECT_EQ(lost, 9U);
}

TEST(Thin, LeavesOutWhatIsDamaged) {
  std::string file = file_of({{turn_of("loud", 1), turn_of("shy", 2)}, {turn_of("shy", 3)}});
  file.pop_back();
  Holdings owed = {{"loud", 1}};
  EXPECT_THAT(turns_in(thin(file, owed)->blocks), ElementsAre(Pair("shy", 2)));
  EXPECT_FALSE(thin("something else", owed));
  EXPECT_FALSE(measure("something else"));
}

}  // namespace
}  // namespace hangar::recorder
