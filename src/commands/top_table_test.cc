#include "commands/top_table.h"

#include "commands/guest_names.h"
#include "commands/test_hostile_text.h"
#include "recorder/record.h"
#include "seeing/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ranges>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::commands {
namespace {

using namespace std::chrono_literals;
using seeing::FoundTop;
using seeing::TopRow;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Lt;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using Kind = Key::Kind;

const WallTime kWall{std::chrono::hours(500000)};

TopRow row(std::string namespace_, std::string name, Duration cpu, std::uint64_t memory = 0) {
  return {.key = {.namespace_ = std::move(namespace_), .name = std::move(name)},
          .phase = "Running",
          .cpu = cpu,
          .turns = 12,
          .requests = 3,
          .written_bytes = 2048,
          .memory_bytes = memory,
          .disk_bytes = 900,
          .restarts = 1};
}

FoundTop three() {
  return {.at = kWall,
          .window = 60s,
          .rows = {row("shop", "alpha", 600ms, 65536), row("shop", "beta", 6s, 1536),
                   row("team", "gamma", 60ms, 3 * 1024 * 1024)},
          .read = {.since = kWall}};
}

TEST(TopText, IsATableWithTheLargestFirst) {
  EXPECT_EQ(
      top_text(three(), TopColumn::Cpu),
      "KIND      NAMESPACE  NAME   STATE      CPU  TURNS  CALLS  WRITTEN  MEMORY  DISK  RESTARTS\n"
      "operator  shop       beta   Running  10.0%     12      3     2.0K    1.5K   900         1\n"
      "operator  shop       alpha  Running   1.0%     12      3     2.0K   64.0K   900         1\n"
      "operator  team       gamma  Running   0.1%     12      3     2.0K    3.0M   900         "
      "1\n");
}

TEST(TopText, NamesAWorkflowAsTimelineDoes) {
  FoundTop found = three();
  const std::string recorded = recorded_name("workflow/order");
  found.rows[0].key = {
      .contract = recorder::Contract::Workflow, .namespace_ = "shop", .name = recorded};
  // An operator cannot have such a name; if one has, the whole name is shown.
  found.rows[1].key.name = recorded;
  const std::string text = top_text(found, TopColumn::Cpu);

  EXPECT_THAT(text, HasSubstr("workflow  shop       order "));
  EXPECT_EQ(recorded, "statefulworkflows.workflows.example.com/order");
  EXPECT_THAT(text, HasSubstr("operator  shop       statefulworkflows."));
  EXPECT_EQ(recorded_name("backends.examples.com/web"), "backends.examples.com/web");
}

TEST(TopText, IsSortedByAnyColumn) {
  const auto order = [](TopColumn by) {
    std::vector<TopRow> rows = three().rows;
    sort_rows(rows, by);
    std::vector<std::string> names;
    names.reserve(rows.size());
    for (const TopRow& one : rows)
      names.push_back(one.key.name);
    return names;
  };
  EXPECT_THAT(order(TopColumn::Memory), ElementsAre("gamma", "alpha", "beta"));
  EXPECT_THAT(order(TopColumn::Name), ElementsAre("alpha", "beta", "gamma"));
  EXPECT_THAT(order(TopColumn::Restarts), ElementsAre("alpha", "beta", "gamma"));
  for (const std::string& word : top_column_names())
    EXPECT_TRUE(top_column(word)) << word;
  EXPECT_FALSE(top_column("age"));
}

TEST(TopText, LeavesATerminalAloneAndLongNamesInTheirColumn) {
  FoundTop found = three();
  found.rows[0].key.name = "a\x1b[2J\xe2\x80\xae<script>";
  found.rows[1].key.name = std::string(200, 'x');
  found.rows[2].phase = "\x1b]0;t\x07";
  found.read.problems = {"p\x1b"};
  const std::string text = top_text(found, TopColumn::Cpu);

  for (const char letter : text)
    EXPECT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
  EXPECT_THAT(text, HasSubstr("a\\x1b[2J\\xe2\\x80\\xae<script>"));
  EXPECT_THAT(text, HasSubstr(std::string(38, 'x') + ".. "));
}

FoundTop hostile() {
  FoundTop found = three();
  TopRow& worst = found.rows[1];
  worst.key.namespace_ = worst.key.name = worst.phase = hostile_text();
  found.read.problems = {hostile_text()};
  return found;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const auto line : std::views::split(text, '\n'))
    lines.emplace_back(line.begin(), line.end());
  return lines;
}

TEST(TopText, KeepsItsColumnsWhenTextIsHostile) {
  const std::string text = top_text(hostile(), TopColumn::Cpu);

  EXPECT_TRUE(is_plain(text));
  std::vector<std::string> lines = lines_of(text);
  // The head, three rows, the problem, and nothing after its end.
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_THAT(lines[4], StartsWith("<script>\\x1b[2J"));
  lines.resize(4);
  EXPECT_THAT(lines, Each(SizeIs(lines[0].size())));
  EXPECT_THAT(lines, Each(SizeIs(Lt(200U))));
  EXPECT_THAT(lines[1], HasSubstr("10.0%     12      3     2.0K    1.5K   900         1"));
}

std::vector<Key> keys_in(std::string input, bool is_all = true) {
  std::vector<Key> keys;
  while (const auto key = take_key(input, is_all))
    keys.push_back(*key);
  return keys;
}

TEST(TakeKey, KnowsArrowsAndLetters) {
  EXPECT_THAT(keys_in("\x1b[A\x1b[B\x1bOA\x1b[5~\x1b[6~\x1b[H\x1b[4~s\r\x7f"),
              ElementsAre(Key{Kind::Up}, Key{Kind::Down}, Key{Kind::Up}, Key{Kind::PageUp},
                          Key{Kind::PageDown}, Key{Kind::Home}, Key{Kind::End},
                          Key{Kind::Letter, 's'}, Key{Kind::Enter}, Key{Kind::Backspace}));
  EXPECT_THAT(keys_in("\x1b"), ElementsAre(Key{Kind::Escape}));
  // Unknown sequences and bytes are not keys.
  EXPECT_THAT(keys_in("\x1b[99;5Zq\x01\xc3\xa9"), ElementsAre(Key{Kind::Letter, 'q'}));
}

TEST(TakeKey, WaitsForTheRestOfASequence) {
  std::string input = "\x1b";
  EXPECT_FALSE(take_key(input, false));
  input += "[";
  EXPECT_FALSE(take_key(input, false));
  input += "B";
  EXPECT_EQ(take_key(input, false), Key{Kind::Down});
  EXPECT_EQ(input, "");
  // A sequence that never ends is dropped.
  input = "\x1b[" + std::string(100, '1');
  EXPECT_FALSE(take_key(input, false));
  EXPECT_EQ(input, "");
}

class TopScreenTest : public testing::Test {
 protected:
  TopScreenTest() {
    screen_.resize({.columns = 120, .lines = 8});
    screen_.update(three());
  }
  TopScreen::Wish press(std::string_view letters) {
    TopScreen::Wish wish;
    for (const char letter : letters)
      wish = screen_.on_key({.kind = Kind::Letter, .letter = letter});
    return wish;
  }
  TopScreen::Wish press(Kind kind) { return screen_.on_key({.kind = kind}); }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const TopScreen::Line& line : screen_.lines())
      text += line.text + "\n";
    return text;
  }
  [[nodiscard]] std::string marked() const {
    std::string text;
    for (const TopScreen::Line& line : screen_.lines())
      if (line.is_marked) text += line.text;
    return text;
  }

  TopScreen screen_{TopColumn::Cpu};
};

TEST_F(TopScreenTest, HasAsManyLinesAsTheTerminal) {
  for (const std::size_t lines : {1U, 2U, 4U, 24U}) {
    screen_.resize({.columns = 10, .lines = lines});
    EXPECT_EQ(screen_.lines().size(), lines);
    for (const TopScreen::Line& line : screen_.lines())
      EXPECT_LE(line.text.size(), 10U);
  }
}

TEST_F(TopScreenTest, ArrowsMoveTheMarkAndStopAtTheEnds) {
  EXPECT_THAT(marked(), HasSubstr("beta"));
  press(Kind::Up);
  EXPECT_THAT(marked(), HasSubstr("beta"));
  press(Kind::Down);
  EXPECT_THAT(marked(), HasSubstr("alpha"));
  press(Kind::End);
  EXPECT_THAT(marked(), HasSubstr("gamma"));
  press(Kind::Down);
  EXPECT_THAT(marked(), HasSubstr("gamma"));
  press(Kind::Home);
  EXPECT_THAT(marked(), HasSubstr("beta"));
}

TEST_F(TopScreenTest, TheMarkIsAlwaysOnTheScreen) {
  FoundTop many = three();
  for (int index = 0; index < 100; ++index)
    many.rows.push_back(row("many", "n" + std::to_string(1000 + index), 1us));
  screen_.update(many);
  for (int step = 0; step < 50; ++step) {
    press(Kind::Down);
    EXPECT_NE(marked(), "") << step;
  }
  press(Kind::PageUp);
  EXPECT_NE(marked(), "");
  screen_.resize({.columns = 80, .lines = 4});
  EXPECT_NE(marked(), "");
  screen_.update(three());
  EXPECT_NE(marked(), "");
}

TEST_F(TopScreenTest, TheMarkStaysOnItsGuestWhenTheOrderChanges) {
  press(Kind::Down);
  FoundTop later = three();
  later.rows[0].cpu = 50s;
  screen_.update(later);
  EXPECT_THAT(marked(), HasSubstr("alpha"));
  press("s");  // Sorts by turns, which are equal, so by name.
  EXPECT_THAT(marked(), HasSubstr("alpha"));
  EXPECT_THAT(text(), HasSubstr("sort (turns)"));
}

TEST_F(TopScreenTest, AFilterLeavesWhatHasIt) {
  press("/GAM");
  EXPECT_THAT(text(), HasSubstr("/GAM"));
  EXPECT_THAT(text(), HasSubstr("gamma"));
  EXPECT_THAT(text(), Not(HasSubstr("alpha")));
  press(Kind::Backspace);
  press(Kind::Enter);
  EXPECT_THAT(text(), HasSubstr("filter (GA)"));
  EXPECT_THAT(marked(), HasSubstr("gamma"));
  // While a filter is typed, q is a letter.
  press("/");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press("q")));
  EXPECT_THAT(text(), Not(HasSubstr("gamma")));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press(Kind::Enter)));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press(Kind::Enter)));  // No row is left.
  press(Kind::Escape);
  EXPECT_THAT(text(), HasSubstr("alpha"));
}

TEST_F(TopScreenTest, AFilterLeavesNoEmptyLinesWhileThereAreMoreRows) {
  FoundTop many = three();
  for (int index = 0; index < 100; ++index)
    many.rows.push_back(row("many", "n" + std::to_string(1000 + index), 1us));
  screen_.update(many);
  for (int step = 0; step < 12; ++step)
    press(Kind::Down);
  EXPECT_THAT(marked(), HasSubstr("n1009"));

  press("/n100");

  EXPECT_THAT(marked(), HasSubstr("n1009"));
  EXPECT_THAT(text(), HasSubstr("n1005")) << "there is room for five of the ten";
}

TEST_F(TopScreenTest, EnterAsksForTheTurnsAndEscapeLeavesThem) {
  press(Kind::Down);
  const TopScreen::Wish wish = press(Kind::Enter);
  ASSERT_TRUE(std::holds_alternative<TopScreen::Open>(wish));
  EXPECT_EQ(std::get<TopScreen::Open>(wish).guest.name, "alpha");

  screen_.show_text("shop/alpha", "1\n2\n3\n4\n5\n6\n7\n\x1b[2J\n");
  EXPECT_THAT(text(), HasSubstr("shop/alpha\n\n4\n5\n6\n7\n\\x1b[2J\n"));
  press(Kind::Home);
  EXPECT_THAT(text(), HasSubstr("\n1\n2\n"));
  press(Kind::Down);
  EXPECT_THAT(text(), HasSubstr("\n\n2\n3\n"));
  screen_.update(three());
  EXPECT_THAT(text(), Not(HasSubstr("beta")));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press("q")));
  EXPECT_THAT(text(), HasSubstr("beta"));
  EXPECT_TRUE(std::holds_alternative<TopScreen::Quit>(press("q")));
}

TEST_F(TopScreenTest, HostileTextStaysInItsColumnsAndLines) {
  static constexpr std::size_t kColumns = 200;
  screen_.resize({.columns = kColumns, .lines = 8});
  const auto expect_calm = [this] {
    EXPECT_TRUE(is_plain(text()));
    EXPECT_EQ(screen_.lines().size(), 8U);
    for (const TopScreen::Line& line : screen_.lines()) {
      EXPECT_LE(line.text.size(), kColumns);
      EXPECT_FALSE(line.text.contains('\n'));
    }
  };

  screen_.update(hostile());
  expect_calm();
  const std::vector<std::string> lines = lines_of(text());
  for (std::size_t row = 2; row < 5; ++row)
    EXPECT_EQ(lines[row].size(), lines[1].size()) << lines[row];
  EXPECT_THAT(lines[2], HasSubstr("10.0%     12      3     2.0K    1.5K   900         1"));
  press("/SCRIPT");
  expect_calm();
  EXPECT_THAT(marked(), HasSubstr("<script>"));

  screen_.set_problem(hostile_text());
  expect_calm();
  EXPECT_THAT(text(), StartsWith("<script>\\x1b[2J"));
  screen_.show_text(hostile_text(), hostile_text());
  expect_calm();
}

TEST_F(TopScreenTest, AProblemIsShownUntilTheNextLook) {
  screen_.set_problem("the host\x1b is gone");
  EXPECT_THAT(text(), HasSubstr("the host\\x1b is gone"));
  EXPECT_THAT(text(), HasSubstr("beta"));
  screen_.update(three());
  EXPECT_THAT(text(), HasSubstr("3 guests, cpu 11.1% of one processor"));
}

}  // namespace
}  // namespace hangar::commands
