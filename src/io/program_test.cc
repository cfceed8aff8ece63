#include "io/program.h"

#include "base/result.h"
#include "io/file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX's.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kPlenty = 1024 * 1024;
constexpr std::chrono::seconds kLong{60};
constexpr ProgramBounds kBounds{.deadline = kLong, .bytes_max = kPlenty};

Program shell(std::string script) {
  return {.path = "/bin/sh", .arguments = {"-c", std::move(script)}};
}

TEST(Program, FindsTheFileOfTheRunningOne) {
  const Result<std::filesystem::path> program = own_program();

  ASSERT_TRUE(program) << program.error().message();
  EXPECT_TRUE(program->is_absolute());
  EXPECT_TRUE(std::filesystem::equivalent(*program, "/proc/self/exe"));
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

TEST(BoundedProgram, ReturnsWhatItPrints) {
  const Result<std::string> output =
      run_bounded(shell("cat; echo warning >&2; printf out"), kBounds, {});

  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(*output, "out");
}

TEST(BoundedProgram, TellsTheEndOfItsErrorsOnOneLine) {
  const Result<std::string> exited =
      run_bounded(shell("echo out; echo first >&2; echo last >&2; exit 3"), kBounds, {});
  const Result<std::string> killed = run_bounded(shell("kill -9 $$"), kBounds, {});

  ASSERT_FALSE(exited);
  EXPECT_EQ(exited.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(exited.error().message(), "exit code 3: first last");
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().message(), "signal 9");
}

TEST(BoundedProgram, IsNotFound) {
  const Result<std::string> output = run_bounded({.path = "/nowhere/program"}, kBounds, {});

  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind(), ErrorKind::NotFound);
}

TEST(BoundedProgram, IsLookedUpOnPath) {
  EXPECT_TRUE(run_bounded({.path = "true"}, kBounds, {}));
}

TEST(BoundedProgram, MayNotPrintMuchOnEitherStream) {
  for (const std::string_view script :
       {"while :; do echo 1234567; done", "while :; do echo 1234567 >&2; done"}) {
    const Result<std::string> output =
        run_bounded(shell(std::string(script)), {.deadline = kLong, .bytes_max = 64 * 1024}, {});
    ASSERT_FALSE(output) << script;
    EXPECT_EQ(output.error().kind(), ErrorKind::Unavailable);
    EXPECT_THAT(output.error().message(), HasSubstr("printed more than 65536 bytes"));
  }
}

// Otherwise run_bounded() would wait for the streams that the children hold open.
TEST(BoundedProgram, IsEndedTogetherWithItsChildren) {
  const Result<std::string> output =
      run_bounded(shell("sleep 1000 & exit 0"),
                  {.deadline = std::chrono::milliseconds(50), .bytes_max = kPlenty}, {});

  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(output.error().message(), HasSubstr("did not exit within 50ms"));
}

TEST(BoundedProgram, EndsWhenItIsStopped) {
  std::stop_source stop;
  stop.request_stop();

  const Result<std::string> output = run_bounded(shell("sleep 1000"), kBounds, stop.get_token());

  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind(), ErrorKind::Cancelled);
}

TEST(Program, KeepsTheEnvironmentOfThisProcess) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
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

TEST(Program, ThatIsMissingOrKilledIsAnErrorWithItsReason) {
  const Result<int> missing = run_program({.path = "/nowhere/program"});
  const Result<int> killed = run_program(shell("kill -9 $$"));

  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::NotFound);
  EXPECT_THAT(missing.error().message(), testing::HasSubstr("/nowhere/program"));
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().kind(), ErrorKind::Unavailable);
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

TEST(DetachedProgram, GoesOnWithNoSignalBlockedAndAwayFromTheTerminal) {
  const std::string directory = ::testing::TempDir() + "detached." + std::to_string(::getpid());
  const std::filesystem::path said = directory + ".said";
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);

  const Result<> started = start_detached(shell(
      fmt::format("trap 'echo $(readlink /proc/$$/fd/1) >{0}.new; mv {0}.new {0}; exit' TERM; "
                  "kill -TERM $$; sleep 10",
                  said.string())));
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);

  ASSERT_TRUE(started) << started.error().message();
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (!std::filesystem::exists(said) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Result<std::string> text = read_file(said, 1000);
  std::filesystem::remove(said);
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(*text, "/dev/null\n");
}

TEST(DetachedProgram, ThatIsMissingIsAnError) {
  EXPECT_FALSE(start_detached({.path = "/no/such/program"}));
}

TEST(Companion, ThatEndsIsAnErrorWithItsLastWords) {
  const auto companion = Companion::start(shell("echo 'pods \"x\" not found'; exit 1"));

  ASSERT_TRUE(companion) << companion.error().message();
  const Result<std::string> line = (*companion)->wait_for_line("ready", kLong);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().message(), "sh has exited: pods \"x\" not found");
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
