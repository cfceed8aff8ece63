#include "testing/subprocess.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace hangar::testing {
namespace {

TEST(Subprocess, HandsOverInputAndReturnsBothOutputsAndTheExitCode) {
  const auto finished =
      run({.arguments = {"sh", "-c", "cat; echo oh >&2; exit 3"}, .input = "text"});

  ASSERT_TRUE(finished.has_value()) << finished.error().message();
  EXPECT_EQ(finished->exit_code, 3);
  EXPECT_EQ(finished->output, "text");
  EXPECT_EQ(finished->errors, "oh\n");
}

TEST(Subprocess, TakesInputAndOutputLargerThanAPipeHolds) {
  const std::string large(std::size_t{3} << 20, 'x');

  const auto finished = run({.arguments = {"cat"}, .input = large});

  ASSERT_TRUE(finished.has_value()) << finished.error().message();
  EXPECT_EQ(finished->output, large);
}

TEST(Subprocess, SurvivesAProgramThatDoesNotReadItsInput) {
  const auto finished =
      run({.arguments = {"true"}, .input = std::string(std::size_t{1} << 20, 'x')});

  ASSERT_TRUE(finished.has_value()) << finished.error().message();
  EXPECT_EQ(finished->exit_code, 0);
}

TEST(Subprocess, EnvironmentReplacesWhatIsInherited) {
  const auto finished =
      run({.arguments = {"sh", "-c", "printf %s \"$HOME\""}, .environment = {"HOME=/elsewhere"}});

  ASSERT_TRUE(finished.has_value()) << finished.error().message();
  EXPECT_EQ(finished->output, "/elsewhere");
}

TEST(Subprocess, ReportsASignalAsShellsDo) {
  const auto finished = run({.arguments = {"sh", "-c", "kill -TERM $$"}});

  ASSERT_TRUE(finished.has_value()) << finished.error().message();
  EXPECT_EQ(finished->exit_code, 128 + 15);
}

TEST(Subprocess, EndsAProgramThatOverstaysItsDeadline) {
  const auto finished = run({.arguments = {"sleep", "1000"}, .deadline = std::chrono::seconds(0)});

  ASSERT_FALSE(finished.has_value());
  EXPECT_EQ(finished.error().kind(), ErrorKind::LimitExceeded);
}

TEST(Subprocess, NamesAProgramThatDoesNotExist) {
  const auto finished = run({.arguments = {"/no/such/program"}});

  ASSERT_FALSE(finished.has_value());
  EXPECT_EQ(finished.error().kind(), ErrorKind::NotFound);
  EXPECT_EQ(finished.error().message(), "start /no/such/program: No such file or directory");
}

}  // namespace
}  // namespace hangar::testing
