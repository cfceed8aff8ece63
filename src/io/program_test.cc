#include "io/program.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX's.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

constexpr std::uint64_t kPlenty = 1024 * 1024;
constexpr std::chrono::seconds kLong{60};

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

TEST(Companion, IsWaitedForByALineOfEitherStream) {
  const auto companion =
      Companion::start(shell("echo first; echo 'ready on 4711' >&2; exec sleep 1000"));

  ASSERT_TRUE(companion) << companion.error().message();
  const Result<std::string> line = (*companion)->wait_for_line("ready on ", kLong);
  ASSERT_TRUE(line) << line.error().message();
  EXPECT_EQ(*line, "4711");
}

TEST(Companion, ThatEndsIsAnErrorWithItsLastWords) {
  const auto companion = Companion::start(shell("echo 'pods \"x\" not found'; exit 1"));

  ASSERT_TRUE(companion) << companion.error().message();
  const Result<std::string> line = (*companion)->wait_for_line("ready", kLong);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().message(), "sh has ended: pods \"x\" not found");
}

TEST(Companion, EndsWithItsOwner) {
  auto companion = Companion::start(shell("echo pid $$; exec sleep 1000"));
  ASSERT_TRUE(companion) << companion.error().message();
  const Result<std::string> line = (*companion)->wait_for_line("pid ", kLong);
  ASSERT_TRUE(line) << line.error().message();
  const int child = std::stoi(*line);
  ASSERT_EQ(::kill(child, 0), 0);

  companion->reset();

  EXPECT_NE(::kill(child, 0), 0);
}

}  // namespace
}  // namespace hangar::io
