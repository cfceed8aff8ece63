#include "seeing/cost_book.h"

#include "base/time.h"
#include "recorder/record.h"
#include "seeing/cost.h"
#include "seeing/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::seeing {
namespace {

using namespace std::chrono_literals;

recorder::Guest operator_named(std::string_view namespace_, std::string_view name) {
  return {.contract = recorder::Contract::Operator, .namespace_ = namespace_, .name = name};
}

recorder::Turn turn_of(std::string_view namespace_, std::string_view module, Duration cpu) {
  return {.guest = operator_named(namespace_, "one"),
          .uid = {},
          .user = {},
          .module = module,
          .cpu = cpu,
          .wakings = {},
          .timers = {}};
}

recorder::Asked write_by(const recorder::Guest& guest, std::uint64_t bytes) {
  recorder::Asked asked;
  asked.guest = guest;
  asked.verb = recorder::Verb::Update;
  asked.bytes = bytes;
  return asked;
}

Cost cost_in(const std::vector<CostRow>& rows, std::string_view namespace_,
             std::string_view module = {}) {
  const auto found = std::ranges::find_if(rows, [&](const CostRow& row) {
    return row.namespace_ == namespace_ && row.module == module;
  });
  return found == rows.end() ? Cost() : found->cost;
}

}  // namespace

TEST(CostBook, SharesTheProcessorAmongModulesNamespacesAndTheHost) {
  CostBook book;
  book.on_turn(turn_of("red", "aa", 3s));
  book.on_turn(turn_of("red", "bb", 1s));
  book.on_turn(turn_of("blue", "aa", 2s));

  const std::vector<CostRow> rows = book.rows({{"red", 6s}, {"blue", 2s}}, 10s);

  EXPECT_EQ(cost_in(rows, "red", "aa").cpu, 3s);
  EXPECT_EQ(cost_in(rows, "red", "bb").cpu, 1s);
  EXPECT_EQ(cost_in(rows, "red").cpu, 2s);  // Compiling, and answers.
  EXPECT_EQ(cost_in(rows, "blue", "aa").cpu, 2s);
  EXPECT_EQ(cost_in(rows, kHostRow).cpu, 2s);
  EXPECT_EQ(sum_of(rows).cpu, 10s);
}

TEST(CostBook, CountsTurnsRequestsAndBytes) {
  CostBook book;
  const recorder::Guest guest = operator_named("red", "one");
  book.on_asked(write_by(guest, 100), "aa");
  recorder::Asked read;
  read.guest = guest;
  read.verb = recorder::Verb::Get;
  read.bytes = 7;  // A read has no body that is written.
  book.on_asked(read, "aa");
  recorder::Answered answered;
  answered.guest = guest;
  answered.bytes = 50;
  book.on_answered(answered, "aa");
  book.on_turn(turn_of("red", "aa", 1s));

  const Cost cost = cost_in(book.rows({}, 1s), "red", "aa");

  EXPECT_EQ(cost.turns, 1);
  EXPECT_EQ(cost.requests, 2);
  EXPECT_EQ(cost.written_bytes, 100);
  EXPECT_EQ(cost.read_bytes, 50);
}

TEST(CostBook, AddsRequestsToTheModuleOfTheTurnThatMadeThem) {
  CostBook book;
  book.on_asked(write_by(operator_named("red", "one"), 100), {});

  // Until the turn is recorded, the module is not known.
  EXPECT_EQ(cost_in(book.rows({}, 1s), "red").written_bytes, 100);
  book.on_turn(turn_of("red", "aa", 1s));
  const std::vector<CostRow> rows = book.rows({}, 1s);
  EXPECT_EQ(cost_in(rows, "red", "aa").written_bytes, 100);
  EXPECT_EQ(sum_of(rows).written_bytes, 100);
}

TEST(CostBook, CountsMemoryAndDiskForTheTimeTheyAreHeld) {
  CostBook book;
  const CostBook::Look look{
      .guests = {{.namespace_ = "red", .module = "aa", .memory_bytes = 100, .disk_bytes = 7}},
      .other_memory = {{"red", 20}},
      .other_disk = {{"blue", 3}},
      .cache = {{"red", 30}, {"blue", 10}},
      .cache_bytes = 100,
      .resident_bytes = 1000};
  book.look(look, 10s);
  book.look(look, 5s);

  const std::vector<CostRow> rows = book.rows({}, 1s);

  EXPECT_EQ(cost_in(rows, "red", "aa").memory_byte_seconds, 1500);
  EXPECT_EQ(cost_in(rows, "red", "aa").disk_byte_seconds, 105);
  EXPECT_EQ(cost_in(rows, "red").memory_byte_seconds, 300);
  EXPECT_EQ(cost_in(rows, "red").cache_byte_seconds, 450);
  EXPECT_EQ(cost_in(rows, "blue").cache_byte_seconds, 150);
  EXPECT_EQ(cost_in(rows, "blue").disk_byte_seconds, 45);
  EXPECT_EQ(cost_in(rows, kHostRow).cache_byte_seconds, 900);
  EXPECT_EQ(cost_in(rows, kHostRow).memory_byte_seconds, 13'500 - 1500 - 300);
  const Cost sum = sum_of(rows);
  EXPECT_EQ(sum.memory_byte_seconds + sum.cache_byte_seconds, 15'000);
}

TEST(CostBook, SharesACacheThatSeveralUse) {
  CostBook book;
  book.look({.guests = {},
             .other_memory = {},
             .other_disk = {},
             .cache = {{"red", 100}, {"blue", 300}},
             .cache_bytes = 200,
             .resident_bytes = 1000},
            1s);

  const std::vector<CostRow> rows = book.rows({}, 1s);

  EXPECT_EQ(cost_in(rows, "red").cache_byte_seconds, 50);
  EXPECT_EQ(cost_in(rows, "blue").cache_byte_seconds, 150);
  EXPECT_EQ(cost_in(rows, kHostRow).cache_byte_seconds, 0);
}

TEST(CostBook, CountsNoMoreMemoryThanIsResident) {
  CostBook book;
  book.look({.guests = {{.namespace_ = "red", .module = "aa", .memory_bytes = 3000}},
             .other_memory = {{"blue", 1000}},
             .other_disk = {},
             .cache = {},
             .cache_bytes = 0,
             .resident_bytes = 2000},
            1s);

  const std::vector<CostRow> rows = book.rows({}, 1s);

  EXPECT_EQ(cost_in(rows, "red", "aa").memory_byte_seconds, 1500);
  EXPECT_EQ(cost_in(rows, "blue").memory_byte_seconds, 500);
  EXPECT_EQ(sum_of(rows).memory_byte_seconds, 2000);
}

TEST(CostBook, HasABoundAndLosesNothingBeyondIt) {
  CostBook book;
  const std::size_t count = kCostRowsMax + 10;
  for (std::size_t at = 0; at < count; ++at)
    book.on_turn(turn_of("n" + std::to_string(at), "aa", 1s));

  const std::vector<CostRow> rows = book.rows({}, Duration(count * 1s));

  EXPECT_LE(rows.size(), kCostRowsMax + 2);
  EXPECT_EQ(sum_of(rows).turns, count);
  EXPECT_GT(cost_in(rows, kOthersRow).turns, 0);
}

TEST(CostBook, LeavesRowsToOthersThoughANamespaceHasEverNewModules) {
  CostBook book;
  const std::size_t count = kCostRowsMax + 10;
  for (std::size_t at = 0; at < count; ++at)
    book.on_turn(turn_of("red", std::to_string(at), 1s));
  book.on_turn(turn_of("blue", "aa", 1s));

  const std::vector<CostRow> rows =
      book.rows({{"red", Duration(count * 1s)}}, Duration(count * 2s));

  EXPECT_EQ(rows.size(), kCostModulesMax + 3);  // Without a module, of blue, and of the host.
  EXPECT_EQ(cost_in(rows, "blue", "aa").turns, 1);
  EXPECT_EQ(cost_in(rows, "red").turns, count - kCostModulesMax);
  EXPECT_EQ(cost_in(rows, "red").cpu, Duration((count - kCostModulesMax) * 1s));
}

TEST(CostBook, KeepsWhatIsClusterScopedApart) {
  CostBook book;
  book.on_turn(turn_of("", "aa", 1s));

  EXPECT_EQ(cost_in(book.rows({}, 1s), kClusterRow, "aa").turns, 1);
}

}  // namespace hangar::seeing
