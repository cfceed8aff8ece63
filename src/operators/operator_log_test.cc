#include "operators/operator_log.h"

#include "base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::operators {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const kube::ObjectKey kKey{.namespace_ = "team", .name = "mirror"};

class OperatorLogsTest : public testing::Test {
 protected:
  OperatorLogsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hangar-logs-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~OperatorLogsTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::filesystem::path directory_;
};

TEST_F(OperatorLogsTest, GivesBackWhatWasPrintedInOrder) {
  const OperatorLogs logs(directory_);
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "one\n").has_value());
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "two\nthree\n").has_value());

  EXPECT_EQ(logs.read(kKey).value(), "one\ntwo\nthree\n");
}

TEST_F(OperatorLogsTest, KeepsTheNewestWithinABound) {
  const OperatorLogs logs(directory_);
  const std::string line(1023, 'x');
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, line + "\n").has_value());
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "the last\n").has_value());

  const std::string text = logs.read(kKey).value();
  EXPECT_THAT(text, EndsWith("the last\n"));
  EXPECT_LE(text.size(), 2 * limits::kOperatorLogBytesMax + 2048);
}

TEST_F(OperatorLogsTest, NamesWhoHasPrintedNothing) {
  const Result<std::string> text = OperatorLogs(directory_).read(kKey);

  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().kind(), ErrorKind::NotFound);
  EXPECT_THAT(text.error().message(), HasSubstr("team/mirror"));
}

TEST_F(OperatorLogsTest, ForgetsWhatIsRemoved) {
  const OperatorLogs logs(directory_);
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "one\n").has_value());
  logs.remove(kKey);

  EXPECT_FALSE(logs.read(kKey).has_value());
}

TEST_F(OperatorLogsTest, ForgetsWhatAnotherOfTheSameNamePrinted) {
  const OperatorLogs logs(directory_);
  const OperatorLogs::Owner first{.key = kKey, .uid = "one"};
  const OperatorLogs::Owner second{.key = kKey, .uid = "two"};
  logs.begin(first);
  // So much that both files are there.
  const std::string secret = std::string(limits::kOperatorLogBytesMax, 's') + "\n";
  ASSERT_TRUE(logs.append(first, secret).has_value());
  ASSERT_TRUE(logs.append(first, "late\n").has_value());
  logs.begin(first);
  EXPECT_EQ(logs.read(kKey).value(), secret + "late\n");

  logs.begin(second);

  EXPECT_FALSE(logs.read(kKey).has_value());
  ASSERT_TRUE(logs.append(second, "mine\n").has_value());
  EXPECT_EQ(logs.read(kKey).value(), "mine\n");
}

TEST_F(OperatorLogsTest, ForgetsWhoIsNotThereAnyMore) {
  const OperatorLogs logs(directory_);
  const kube::ObjectKey gone{.namespace_ = "team", .name = "gone"};
  const kube::ObjectKey of_run{.name = "ring"};
  for (const kube::ObjectKey& key : {kKey, gone, of_run}) {
    const std::string much = std::string(limits::kOperatorLogBytesMax, 'x') + "\n";
    ASSERT_TRUE(logs.append({.key = key}, much).has_value());
    ASSERT_TRUE(logs.append({.key = key}, "more\n").has_value());
  }

  logs.remove_others(std::vector{kKey});

  EXPECT_TRUE(logs.read(kKey).has_value());
  EXPECT_TRUE(logs.read(of_run).has_value());
  EXPECT_FALSE(logs.read(gone).has_value());
}

TEST_F(OperatorLogsTest, KeepsLongNamesApart) {
  const OperatorLogs logs(directory_);
  kube::ObjectKey one{.namespace_ = std::string(63, 'n'), .name = std::string(253, 'x')};
  kube::ObjectKey two = one;
  two.name.back() = 'y';
  const std::string much = std::string(limits::kOperatorLogBytesMax, 'x') + "\n";
  ASSERT_TRUE(logs.append({.key = one}, much).has_value());
  ASSERT_TRUE(logs.append({.key = one}, "one\n").has_value());
  ASSERT_TRUE(logs.append({.key = two}, "two\n").has_value());
  logs.remove_others(std::vector{one, two});

  EXPECT_EQ(logs.read(one).value(), much + "one\n");
  EXPECT_EQ(logs.read(two).value(), "two\n");
}

TEST(OperatorLogAdded, IsWhatCameSince) {
  EXPECT_EQ(OperatorLogs::added("", "1 a\n"), "1 a\n");
  EXPECT_EQ(OperatorLogs::added("1 a\n", "1 a\n2 b\n"), "2 b\n");
  EXPECT_EQ(OperatorLogs::added("1 a\n2 b\n", "1 a\n2 b\n"), "");
  EXPECT_EQ(OperatorLogs::added("1 a\n2 b\n3 c\n", "2 b\n3 c\n4 d\n"), "4 d\n");
}

TEST(OperatorLogAdded, SaysWhenLinesWereLost) {
  EXPECT_EQ(OperatorLogs::added("1 a\n2 b\n", "5 e\n6 f\n"),
            "[output was lost here: more came at once than is kept]\n5 e\n6 f\n");
}

TEST(OperatorLogLine, CannotCommandATerminal) {
  const auto text_of = [](std::string_view text) {
    return OperatorLogs::format({.stream = "stderr", .text = text}).substr(35);
  };
  EXPECT_EQ(text_of("a\xc2\x9b"
                    "31m"),
            "a\\xc2\\x9b31m\n");
  EXPECT_EQ(text_of("\x9b"
                    "31m"),
            "\\x9b31m\n");
  EXPECT_EQ(text_of("\xe2\x82\xac \xc3\x9b \xf0\x9f\x9b\x91\xc2\xa0."),
            "\xe2\x82\xac \xc3\x9b \xf0\x9f\x9b\x91\xc2\xa0.\n");
}

TEST(OperatorLogLine, CannotForgeAnother) {
  const WallTime time = parse_rfc3339("2026-04-08T12:00:00Z").value();
  EXPECT_EQ(OperatorLogs::format({.time = time, .stream = "stderr", .text = "a\n\x1b[31mb\tc"}),
            "2026-04-08T12:00:00.000000Z stderr a\\x0a\\x1b[31mb\tc\n");
}

}  // namespace
}  // namespace hangar::operators
