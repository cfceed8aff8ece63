#include "output/log_files.h"

#include "output/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::output {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const kube::ObjectKey kKey{.namespace_ = "team", .name = "mirror"};

class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hangar-logs-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~LogFilesTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::filesystem::path directory_;
};

TEST_F(LogFilesTest, GivesBackWhatWasPrintedInOrder) {
  const LogFiles logs(directory_);
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "one\n").has_value());
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "two\nthree\n").has_value());

  EXPECT_EQ(logs.read(kKey).value(), "one\ntwo\nthree\n");
}

TEST_F(LogFilesTest, KeepsTheNewestWithinABound) {
  const LogFiles logs(directory_);
  const std::string line(1023, 'x');
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, line + "\n").has_value());
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "the last\n").has_value());

  const std::string text = logs.read(kKey).value();
  EXPECT_THAT(text, EndsWith("the last\n"));
  EXPECT_LE(text.size(), 2 * limits::kOperatorLogBytesMax + 2048);
}

TEST_F(LogFilesTest, NamesWhoHasPrintedNothing) {
  const Result<std::string> text = LogFiles(directory_).read(kKey);

  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().kind(), ErrorKind::NotFound);
  EXPECT_THAT(text.error().message(), HasSubstr("team/mirror"));
}

TEST_F(LogFilesTest, ForgetsWhatIsRemoved) {
  const LogFiles logs(directory_);
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "one"}, "one\n").has_value());
  logs.remove(kKey);

  EXPECT_FALSE(logs.read(kKey).has_value());
}

TEST_F(LogFilesTest, ForgetsWhatAnotherOfTheSameNamePrinted) {
  const LogFiles logs(directory_);
  const LogFiles::Owner first{.key = kKey, .uid = "one"};
  const LogFiles::Owner second{.key = kKey, .uid = "two"};
  logs.begin(first);
  // Long enough that both files exist.
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

TEST_F(LogFilesTest, ForgetsWhoIsNotThereAnyMore) {
  const LogFiles logs(directory_);
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

TEST_F(LogFilesTest, KeepsInstancesOfEachResourceApart) {
  const LogFiles logs(directory_);
  const LogFiles::Owner one{.key = kKey, .uid = "1", .resource = "backends.examples.com"};
  const LogFiles::Owner other{.key = kKey, .uid = "2", .resource = "sites.examples.com"};
  const LogFiles::Owner cluster_wide{
      .key = {.namespace_ = "", .name = "it"}, .uid = "3", .resource = "sites.examples.com"};
  ASSERT_TRUE(logs.append({.key = kKey, .uid = "0"}, "operator\n"));
  ASSERT_TRUE(logs.append(one, "one\n"));
  ASSERT_TRUE(logs.append(other, "other\n"));
  ASSERT_TRUE(logs.append(cluster_wide, "cluster\n"));

  EXPECT_EQ(logs.read(kKey).value(), "operator\n");
  EXPECT_EQ(logs.read(kKey, one.resource).value(), "one\n");
  EXPECT_EQ(logs.read(kKey, other.resource).value(), "other\n");
  logs.remove_others({}, other.resource);
  EXPECT_FALSE(logs.read(kKey, other.resource));
  EXPECT_FALSE(logs.read(cluster_wide.key, other.resource));
  EXPECT_EQ(logs.read(kKey, one.resource).value(), "one\n");
  logs.remove_others({});
  EXPECT_FALSE(logs.read(kKey));
  EXPECT_EQ(logs.read(kKey, one.resource).value(), "one\n");
  logs.remove_other_resources({});
  EXPECT_FALSE(logs.read(kKey, one.resource));
}

TEST_F(LogFilesTest, ShowsAllInstancesOfAResourceByTime) {
  const LogFiles logs(directory_);
  const std::string long_name(253, 'n');
  const auto owner = [](const std::string& name) {
    return LogFiles::Owner{
        .key = {.namespace_ = "team", .name = name}, .uid = "1", .resource = "sites.examples.com"};
  };
  const auto line = [](int second, std::string_view text) {
    return LogFiles::format(
        {.time = WallTime(std::chrono::seconds(second)), .stream = "stderr", .text = text});
  };
  ASSERT_TRUE(logs.append(owner("a"), line(1, "first") + line(3, "third")));
  ASSERT_TRUE(logs.append(owner(long_name), line(2, "second")));

  EXPECT_EQ(logs.read_all("sites.examples.com").value(),
            "1970-01-01T00:00:01.000000Z team/a stderr first\n"
            "1970-01-01T00:00:02.000000Z team/" +
                long_name +
                " stderr second\n"
                "1970-01-01T00:00:03.000000Z team/a stderr third\n");
  EXPECT_EQ(logs.read_all("others.examples.com").error().kind(), ErrorKind::NotFound);
}

TEST_F(LogFilesTest, KeepsLessOfAnInstance) {
  const LogFiles logs(directory_);
  const LogFiles::Owner owner{.key = kKey, .uid = "1", .resource = "sites.examples.com"};
  const std::string line(1023, 'x');
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(logs.append(owner, line + "\n").has_value());

  EXPECT_LE(logs.read(kKey, owner.resource).value().size(), 2 * kFlightLogBytesMax + 2048);
}

TEST_F(LogFilesTest, KeepsLongNamesApart) {
  const LogFiles logs(directory_);
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
  EXPECT_EQ(LogFiles::added("", "1 a\n"), "1 a\n");
  EXPECT_EQ(LogFiles::added("1 a\n", "1 a\n2 b\n"), "2 b\n");
  EXPECT_EQ(LogFiles::added("1 a\n2 b\n", "1 a\n2 b\n"), "");
  EXPECT_EQ(LogFiles::added("1 a\n2 b\n3 c\n", "2 b\n3 c\n4 d\n"), "4 d\n");
}

TEST(OperatorLogAdded, SaysWhenLinesWereLost) {
  EXPECT_EQ(LogFiles::added("1 a\n2 b\n", "5 e\n6 f\n"),
            "[output was lost here: more came at once than is kept]\n5 e\n6 f\n");
}

TEST(OperatorLogLine, CannotCommandATerminal) {
  const auto text_of = [](std::string_view text) {
    return LogFiles::format({.stream = "stderr", .text = text}).substr(35);
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
  EXPECT_EQ(LogFiles::format({.time = time, .stream = "stderr", .text = "a\n\x1b[31mb\tc"}),
            "2026-04-08T12:00:00.000000Z stderr a\\x0a\\x1b[31mb\tc\n");
}

}  // namespace
}  // namespace hangar::output
