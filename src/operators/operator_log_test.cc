#include "operators/operator_log.h"

#include "base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

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
  ASSERT_TRUE(logs.append(kKey, "one\n").has_value());
  ASSERT_TRUE(logs.append(kKey, "two\nthree\n").has_value());

  EXPECT_EQ(logs.read(kKey).value(), "one\ntwo\nthree\n");
}

TEST_F(OperatorLogsTest, KeepsTheNewestWithinABound) {
  const OperatorLogs logs(directory_);
  const std::string line(1023, 'x');
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(logs.append(kKey, line + "\n").has_value());
  ASSERT_TRUE(logs.append(kKey, "the last\n").has_value());

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
  ASSERT_TRUE(logs.append(kKey, "one\n").has_value());
  logs.remove(kKey);

  EXPECT_FALSE(logs.read(kKey).has_value());
}

TEST(OperatorLogLine, CannotForgeAnother) {
  const WallTime time = parse_rfc3339("2026-04-08T12:00:00Z").value();
  EXPECT_EQ(OperatorLogs::format({.time = time, .stream = "stderr", .text = "a\n\x1b[31mb\tc"}),
            "2026-04-08T12:00:00.000000Z stderr a\\x0a\\x1b[31mb\tc\n");
}

}  // namespace
}  // namespace hangar::operators
