#include "cli/completion.h"

#include "base/result.h"
#include "commands/known_names.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hangar::cli {
namespace {

using commands::NameKind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

class Completions : public testing::Test {
 protected:
  Completions() {
    CLI::App* const takeoff = app_.add_subcommand("takeoff", "make a release");
    takeoff->alias("up");
    takeoff->add_flag("--dry", on_, "rehearse");
    takeoff->add_option("--namespace", text_)->type_name("NAMESPACE");
    takeoff->add_option("--out", text_)->type_name("DIRECTORY");
    takeoff->add_option("-o,--output", text_)
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"json", "text"}));
    takeoff->add_option("RELEASE", text_)->type_name("NAME");
    takeoff->add_option("MODULE", text_)->type_name("FILE|URL");
    CLI::App* const blackbox = app_.add_subcommand("blackbox", "list");
    blackbox->add_option("RELEASE", text_)->type_name("NAME");
    blackbox->add_option("REVISION", text_)->type_name("NUMBER");
    CLI::App* const workflow = app_.add_subcommand("workflow", "workflows");
    workflow->add_subcommand("show", "draw")->add_option("NAME", text_)->type_name("NAME");
    workflow->add_subcommand("signal", "send")->add_option("NAME", text_)->type_name("NAME");
  }

  [[nodiscard]] Completion at(const std::vector<std::string>& words) const {
    return complete(app_, words);
  }
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& line) const {
    std::vector<std::string> names;
    for (const commands::KnownName& one : at(line).candidates)
      names.push_back(one.name);
    return names;
  }

  CLI::App app_;
  bool on_ = false;
  std::string text_;
};

TEST_F(Completions, NameTheCommands) {
  EXPECT_THAT(words({""}), ElementsAre("takeoff", "blackbox", "workflow"));
  EXPECT_THAT(words({"t"}), ElementsAre("takeoff"));
  EXPECT_THAT(words({"workflow", "s"}), ElementsAre("show", "signal"));
  EXPECT_THAT(words({"nothing", "s"}), IsEmpty());
  EXPECT_THAT(words({}), ElementsAre("takeoff", "blackbox", "workflow"));
}

TEST_F(Completions, NameTheFlagsWithAsManyDashesAsAreThere) {
  EXPECT_THAT(words({"takeoff", "--"}),
              IsSupersetOf({"--dry", "--namespace", "--out", "--output"}));
  EXPECT_THAT(words({"up", "-name"}), ElementsAre("-namespace"));
  EXPECT_THAT(words({"takeoff", "--dry", "--out"}), ElementsAre("--out", "--output"));
}

TEST_F(Completions, ListTheWordsThatAFlagTakes) {
  EXPECT_THAT(words({"takeoff", "-o", ""}), ElementsAre("json", "text"));
  EXPECT_THAT(words({"takeoff", "--output=j"}), ElementsAre("--output=json"));
  EXPECT_THAT(words({"takeoff", "-output", "t"}), ElementsAre("text"));
}

TEST_F(Completions, KnowWherePathsStand) {
  EXPECT_EQ(at({"takeoff", "web", ""}).paths, Paths::Files);
  EXPECT_EQ(at({"takeoff", "--out", ""}).paths, Paths::Directories);
  EXPECT_EQ(at({"takeoff", ""}).paths, Paths::None);
  EXPECT_EQ(at({"takeoff", "web", "main.wasm", ""}).paths, Paths::None);
}

TEST_F(Completions, KnowWhichNamesOfTheClusterStandWhere) {
  EXPECT_EQ(at({"takeoff", ""}).names, NameKind::Releases);
  EXPECT_EQ(at({"takeoff", "--namespace", ""}).names, NameKind::Namespaces);
  EXPECT_EQ(at({"takeoff", "-namespace=de"}).before_names, "-namespace=");
  EXPECT_EQ(at({"workflow", "show", ""}).names, NameKind::Workflows);
  EXPECT_EQ(at({"takeoff", "--out", ""}).names, std::nullopt);

  const Completion revision = at({"blackbox", "-namespace", "x", "web", ""});
  EXPECT_EQ(at({"blackbox", "web", ""}).names, NameKind::Revisions);
  EXPECT_EQ(at({"blackbox", "web", ""}).positionals, std::vector<std::string>{"web"});
  EXPECT_EQ(revision.command, "blackbox");
}

TEST_F(Completions, RememberWhichNamespaceWasGiven) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"takeoff", "--namespace", "team", ""},
        {"takeoff", "-namespace=team", ""},
        {"takeoff", "--dry", "-namespace", "team", "w"}}) {
    EXPECT_EQ(at(line).flags.at("--namespace"), "team");
  }
}

TEST(CompletionScripts, AreForThreeShells) {
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    const Result<std::string> script = completion_script(shell, "yoke");
    ASSERT_TRUE(script);
    EXPECT_THAT(*script, testing::HasSubstr("yoke completion"));
    EXPECT_THAT(*script, Not(testing::HasSubstr("@PROGRAM@")));
  }
  EXPECT_FALSE(completion_script("csh", "hangar"));
}

TEST(KnownNames, AreWordsThatAShellTakesAsTheyAre) {
  for (const char* const plain :
       {"web", "examples.com.Backend.default.test", "ns/Flight.yoke.cd:x"})
    EXPECT_TRUE(commands::is_plain_word(plain)) << plain;
  for (const char* const other :
       {"", "-rf", "$(reboot)", "`reboot`", "a b", "a;b", "a\nb", "a'b", "~", "a*", "a\\b"}) {
    EXPECT_FALSE(commands::is_plain_word(other)) << other;
  }
}

}  // namespace
}  // namespace hangar::cli
