#include "io/program.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

constexpr std::uint64_t kPlenty = 1024 * 1024;

Program shell(std::string script) {
  return {.path = "/bin/sh", .arguments = {"-c", std::move(script)}};
}

TEST(Program, ReturnsWhatItPrintsAndItsExitCode) {
  const Result<ProgramOutput> output = read_program(shell("printf 'a\\nb'; exit 3"), kPlenty);

  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->text, "a\nb");
  EXPECT_EQ(output->exit_code, 3);
}

TEST(Program, RunsInItsDirectoryWithItsEnvironment) {
  Program program = shell("pwd; echo $HANGAR_TEST; echo ${HOME:-none}");
  program.directory = "/";
  program.environment = {"HANGAR_TEST=x=y", "HOME=/elsewhere"};

  const Result<ProgramOutput> output = read_program(program, kPlenty);

  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->text, "/\nx=y\n/elsewhere\n");
}

TEST(Program, KeepsTheEnvironmentOfThisProcess) {
  ASSERT_EQ(::setenv("HANGAR_TEST_INHERITED", "1", 1), 0);

  const Result<ProgramOutput> output = read_program(shell("echo $HANGAR_TEST_INHERITED"), kPlenty);

  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->text, "1\n");
}

TEST(Program, ThatPrintsTooMuchIsEnded) {
  const Result<ProgramOutput> exactly = read_program(shell("printf 12345678"), 8);
  const Result<ProgramOutput> endless = read_program(shell("while :; do echo 1234567; done"), 8);

  ASSERT_TRUE(exactly) << exactly.error().message();
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().kind(), ErrorKind::LimitExceeded);
}

TEST(Program, ThatCannotBeRunOrIsKilledIsUnavailable) {
  const Result<int> missing = run_program({.path = "/nowhere/program"});
  const Result<int> killed = run_program(shell("kill -9 $$"));

  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(missing.error().message(), testing::HasSubstr("/nowhere/program"));
  ASSERT_FALSE(killed);
  EXPECT_THAT(killed.error().message(), testing::HasSubstr("signal 9"));
}

TEST(Program, IsFoundOnPath) {
  const Result<std::filesystem::path> shell_path = find_program("sh");
  const Result<std::filesystem::path> none = find_program("hangar-no-such-program");

  ASSERT_TRUE(shell_path) << shell_path.error().message();
  EXPECT_EQ(shell_path->filename(), "sh");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::NotFound);
}

}  // namespace
}  // namespace hangar::io
