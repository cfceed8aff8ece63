#include "commands/cost_table.h"

#include "base/time.h"
#include "commands/test_hostile_text.h"
#include "seeing/cost.h"
#include "seeing/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ranges>
#include <string>
#include <vector>

namespace hangar::commands {
namespace {

using namespace std::chrono_literals;
using seeing::FoundCost;

constexpr std::uint64_t kMibHour = 1024ULL * 1024 * 3600;

FoundCost small_table() {
  return {.at = WallTime(std::chrono::hours(500000)),
          .window = 90s,
          .rows = {{.namespace_ = std::string(seeing::kHostRow),
                    .module = {},
                    .cost = {.cpu = 50s, .memory_byte_seconds = 10 * kMibHour}},
                   {.namespace_ = "blue", .module = std::string(64, 'b'), .cost = {.cpu = 1s}},
                   {.namespace_ = "red", .module = {}, .cost = {.cpu = 500ms}},
                   {.namespace_ = "red",
                    .module = std::string(64, 'a'),
                    .cost = {.cpu = 2s,
                             .memory_byte_seconds = kMibHour,
                             .cache_byte_seconds = kMibHour / 2,
                             .disk_byte_seconds = kMibHour / 4,
                             .turns = 7,
                             .requests = 9,
                             .read_bytes = 1024 * 1024,
                             .written_bytes = 512 * 1024}}},
          .processes = {},
          .problems = {}};
}

}  // namespace

TEST(CostText, HasTheMostExpensiveFirstAndTheHostAndTheSumLast) {
  EXPECT_EQ(
      cost_text(small_table()),
      "NAMESPACE  MODULE        CPU-S  MEM-MIB-H  CACHE-MIB-H  DISK-MIB-H  TURNS  CALLS  READ-MIB  "
      "WRITTEN-MIB\n"
      "red        aaaaaaaaaaaa   2.00       1.00         0.50        0.25      7      9      1.00  "
      "       0.50\n"
      "red        -              0.50       0.00         0.00        0.00      0      0      0.00  "
      "       0.00\n"
      "blue       bbbbbbbbbbbb   1.00       0.00         0.00        0.00      0      0      0.00  "
      "       0.00\n"
      "(host)     -             50.00      10.00         0.00        0.00      0      0      0.00  "
      "       0.00\n"
      "(sum)      -             53.50      11.00         0.50        0.25      7      9      1.00  "
      "       0.50\n"
      "Since the host started, 1m30s ago.\n");
}

TEST(CostText, LeavesATerminalAlone) {
  FoundCost found = small_table();
  found.rows[1].namespace_ = "\x1b[2J";
  found.problems = {"\x1b]0;evil\x07"};
  const std::string text = cost_text(found);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
}

TEST(CostText, KeepsItsColumnsWhenTextIsHostile) {
  FoundCost found = small_table();
  found.rows[1].namespace_ = found.rows[1].module = hostile_text();
  found.rows[2].namespace_ = std::string(63, 'n');
  found.problems = {hostile_text()};
  const std::string text = cost_text(found);

  EXPECT_TRUE(is_plain(text));
  EXPECT_TRUE(text.contains(std::string(63, 'n') + "  -  ")) << "a valid name is shown whole";
  std::vector<std::string> lines;
  for (const auto line : std::views::split(text, '\n'))
    lines.emplace_back(line.begin(), line.end());
  // The head, four rows, their sum, the time, the problem, and nothing after its end.
  ASSERT_EQ(lines.size(), 9U);
  for (std::size_t row = 1; row < 6; ++row)
    EXPECT_EQ(lines[row].size(), lines[0].size()) << lines[row];
  EXPECT_LT(lines[0].size(), 200U);
}

TEST(CostCsv, HasWholeNumbersAndNamesTheirUnits) {
  FoundCost found = small_table();
  found.rows.erase(found.rows.begin() + 1, found.rows.begin() + 3);
  EXPECT_EQ(cost_csv(found),
            "namespace,module,cpu_microseconds,memory_byte_seconds,cache_byte_seconds,"
            "disk_byte_seconds,turns,calls,read_bytes,written_bytes\n"
            "red," +
                std::string(64, 'a') +
                ",2000000,3774873600,1887436800,943718400,7,9,1048576,524288\n"
                "(host),,50000000,37748736000,0,0,0,0,0,0\n");
}

TEST(CostCsv, KeepsANameInItsField) {
  FoundCost found = small_table();
  found.rows.resize(1);
  found.rows[0].namespace_ = "a,\"b\n=1";
  const std::string csv = cost_csv(found);
  EXPECT_NE(csv.find("\n\"a,\"\"b\\"), std::string::npos) << csv;
}

TEST(CostCsv, KeepsHostileTextInItsLine) {
  FoundCost found = small_table();
  found.rows[1].namespace_ = found.rows[1].module = hostile_text();
  const std::string csv = cost_csv(found);
  EXPECT_TRUE(is_plain(csv));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 5);
}

TEST(CostJson, IsWhatTheHostAnswered) {
  const auto read = seeing::parse_found_cost(cost_json(small_table()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rows, small_table().rows);
}

}  // namespace hangar::commands
