#include "cli/go_flags.h"

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

}  // namespace
}  // namespace hangar::cli
