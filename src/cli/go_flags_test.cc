#include "cli/go_flags.h"

#include "base/result.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace hangar::cli {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

class GoFlags : public testing::Test {
 protected:
  GoFlags() {
    takeoff_->alias("up");
    takeoff_->add_flag("--dry", dry_);
    takeoff_->add_option("--namespace", text_);
    takeoff_->add_option("--wait", text_);
    takeoff_->add_flag("--debug", dry_);
    takeoff_->add_option("--kubeconfig", text_);
    takeoff_->add_option("-f", text_);
  }

  std::vector<std::string> read(const std::vector<std::string>& arguments) {
    const std::array<const CLI::App*, 1> commands = {takeoff_};
    return read_go_flags(arguments, commands);
  }

  CLI::App app_;
  CLI::App* takeoff_ = app_.add_subcommand("takeoff");
  bool dry_ = false;
  std::string text_;
};

TEST_F(GoFlags, HaveOneDashOrTwo) {
  EXPECT_THAT(read({"takeoff", "-dry", "-namespace=a", "--wait", "5s", "x"}),
              ElementsAre("takeoff", "--dry", "--namespace=a", "--wait", "5s", "x"));
  EXPECT_THAT(read({"up", "-namespace", "a", "x"}), ElementsAre("up", "--namespace", "a", "x"));
  EXPECT_THAT(read({"takeoff", "-dry=false"}), ElementsAre("takeoff", "--dry=false"));
}

TEST_F(GoFlags, AValueMayBeginWithADash) {
  EXPECT_THAT(read({"takeoff", "-wait", "-1s", "-namespace", "-dry"}),
              ElementsAre("takeoff", "--wait", "-1s", "--namespace", "-dry"));
}

TEST_F(GoFlags, WhatIsBehindTwoDashesIsTheFlights) {
  EXPECT_THAT(read({"takeoff", "x", "--", "-dry", "-namespace", "a"}),
              ElementsAre("takeoff", "x", "--", "-dry", "-namespace", "a"));
}

TEST_F(GoFlags, CommonOnesMayStandBeforeTheCommand) {
  EXPECT_THAT(read({"-kubeconfig", "file", "--debug", "takeoff", "x"}),
              ElementsAre("takeoff", "--kubeconfig", "file", "--debug", "x"));
  EXPECT_THAT(read({"-kubeconfig=file", "up"}), ElementsAre("up", "--kubeconfig=file"));
}

TEST_F(GoFlags, UnknownAndShortOnesAreLeftToBeRefused) {
  EXPECT_THAT(read({"takeoff", "-nosuch", "-f", "x", "-h"}),
              ElementsAre("takeoff", "-nosuch", "-f", "x", "-h"));
}

TEST_F(GoFlags, OtherCommandsAreNotTouched) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {}, {"host", "-dry"}, {"-debug", "host"}, {"-kubeconfig"}, {"--help"}}) {
    EXPECT_THAT(read(arguments), ElementsAreArray(arguments));
  }
}

class GoLines : public testing::Test {
 protected:
  GoLines() {
    takeoff_->alias("up");
    takeoff_->add_flag("--dry", dry_);
    takeoff_->add_option("--namespace", text_);
    takeoff_->add_option("--access", list_)->allow_extra_args(false);
    takeoff_->add_option("--kubeconfig", text_);
    takeoff_->add_option("RELEASE", text_);
    takeoff_->add_option("MODULE", text_);
    sign_->add_option("-o", text_);
    sign_->add_flag("-f", dry_);
    sign_->add_option("MODULE", text_);
  }

  Result<GoLine> read(const std::vector<std::string>& arguments) {
    const std::array<const CLI::App*, 2> commands = {takeoff_, sign_};
    return read_go_line(arguments, commands, *takeoff_);
  }
  std::vector<std::string> words(const std::vector<std::string>& arguments) {
    const Result<GoLine> line = read(arguments);
    return line ? line->arguments : std::vector<std::string>{line.error().message()};
  }

  CLI::App app_;
  CLI::App* takeoff_ = app_.add_subcommand("takeoff");
  CLI::App* sign_ = app_.add_subcommand("sign");
  bool dry_ = false;
  std::string text_;
  std::vector<std::string> list_;
};

TEST_F(GoLines, EndTheFlagsAtTheFirstWordThatIsNone) {
  const Result<GoLine> line = read({"up", "-dry", "foo", "main.wasm", "-namespace", "bar"});

  ASSERT_TRUE(line) << line.error().message();
  EXPECT_THAT(line->arguments, ElementsAre("takeoff", "--dry=true", "--", "foo", "main.wasm"));
  EXPECT_THAT(line->left_out, ElementsAre("-namespace", "bar"));
}

TEST_F(GoLines, KeepWhatIsForTheFlightApart) {
  const Result<GoLine> line = read({"takeoff", "foo", "main.wasm", "--", "-env", "--", "prod"});

  ASSERT_TRUE(line) << line.error().message();
  EXPECT_THAT(line->arguments, ElementsAre("takeoff", "--", "foo", "main.wasm"));
  EXPECT_THAT(line->behind_dashes, ElementsAre("-env", "--", "prod"));
  EXPECT_THAT(line->left_out, ElementsAre());
}

TEST_F(GoLines, LetTheLastOfAFlagCountAndAllOfAList) {
  EXPECT_THAT(words({"takeoff", "-namespace=a", "--namespace", "-b", "-dry", "-dry=false", "x"}),
              ElementsAre("takeoff", "--namespace", "-b", "--dry=false", "--", "x"));
  EXPECT_THAT(words({"takeoff", "-access", "a", "--access=b,c"}),
              ElementsAre("takeoff", "--access", "a", "--access", "b,c"));
}

TEST_F(GoLines, HaveCommonFlagsBeforeTheCommandWhetherOrNotItHasThem) {
  EXPECT_THAT(words({"-kubeconfig", "file", "-debug", "takeoff", "x"}),
              ElementsAre("takeoff", "--kubeconfig", "file", "--", "x"));
  EXPECT_THAT(words({"--kubeconfig=file", "sign", "-f", "-o", "out", "in"}),
              ElementsAre("sign", "-f", "-o", "out", "--", "in"));
  EXPECT_THAT(words({"sign", "-f=false", "in"}), ElementsAre("sign", "--", "in"));
}

TEST_F(GoLines, AreWrongInGosWords) {
  EXPECT_THAT(words({"takeoff", "-nothing", "x"}),
              ElementsAre("flag provided but not defined: -nothing"));
  EXPECT_THAT(words({"-nothing", "takeoff"}),
              ElementsAre("flag provided but not defined: -nothing"));
  EXPECT_THAT(words({"takeoff", "-namespace"}), ElementsAre("flag needs an argument: -namespace"));
  EXPECT_THAT(words({"-kubeconfig"}), ElementsAre("flag needs an argument: -kubeconfig"));
}

TEST_F(GoLines, SayWhatWasAskedFor) {
  EXPECT_TRUE(read({"-h"})->asks_for_help);
  EXPECT_TRUE(read({"takeoff", "--help", "x"})->asks_for_help);
  EXPECT_EQ(read({"takeoff", "--help"})->command, takeoff_);
  EXPECT_EQ(read({"fly"})->name, "fly");
  EXPECT_EQ(read({"fly"})->command, nullptr);
  EXPECT_EQ(read({})->name, "");
}

TEST(GoProgram, HasFlagsWithoutACommand) {
  CLI::App program;
  bool serves = false;
  program.add_flag("--svr", serves);
  const auto read = [&](const std::vector<std::string>& arguments) {
    return read_go_line(arguments, program);
  };

  EXPECT_THAT(read({"-svr"})->arguments, ElementsAre("--svr=true"));
  EXPECT_THAT(read({"--svr", "-svr=false", "word", "-svr"})->arguments, ElementsAre("--svr=false"));
  EXPECT_THAT(read({"word", "-svr"})->left_out, ElementsAre("word", "-svr"));
  EXPECT_TRUE(read({"-svr", "-h"})->asks_for_help);
  EXPECT_FALSE(read({"-svr"})->asks_for_help);
  EXPECT_EQ(read({"-serve=1"}).error().message(), "flag provided but not defined: -serve");
}

}  // namespace
}  // namespace hangar::cli
