#include "abi/statemachine/diagram.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::abi::statemachine {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kMachine = R"({"id":"m","initial":"idle","type":"compound","states":{
  "idle":{"id":"m.idle","type":"atomic","on":{"START":[{"target":["#m.work"],"guard":"isReady"}],"NOTE":[{"target":[]}]}},
  "work":{"id":"m.work","type":"parallel","meta":{"actions":[{"type":"BEGIN"}]},"after":{"60000":[{"target":["#m.done"]}]},"states":{
    "disk":{"id":"m.work.disk","type":"compound","initial":"making","states":{
      "making":{"id":"m.work.disk.making","type":"atomic","on":{"DISK":[{"target":["#m.work.disk.made"]}],"QUIT":[{"target":["#m.done"]}]}},
      "made":{"id":"m.work.disk.made","type":"final"}}},
    "net":{"id":"m.work.net","type":"atomic"}}},
  "done":{"id":"m.done","type":"final"}}})";

TEST(Diagram, IsATreeWithWhereTheMachineIs) {
  EXPECT_EQ(draw_tree(kMachine, R"({"work":{"disk":"making","net":{}}})").value(),
            "> m\n"
            "      idle  (initial)\n"
            "          START -> work if isReady\n"
            "          NOTE -> stays\n"
            "    > work  (parallel, asks for BEGIN)\n"
            "          after 60000 ms -> done\n"
            "        > disk\n"
            "            > making  (initial)\n"
            "                  DISK -> work.disk.made\n"
            "                  QUIT -> done\n"
            "              made  (final)\n"
            "        > net\n"
            "      done  (final)\n");
}

TEST(Diagram, IsMermaid) {
  EXPECT_EQ(draw_mermaid(kMachine, R"("idle")").value(),
            "stateDiagram-v2\n"
            "  state \"idle\" as idle\n"
            "  state \"work\\nBEGIN\" as work {\n"
            "    state \"disk\" as disk {\n"
            "      state \"making\" as making\n"
            "      state \"made\" as made\n"
            "      [*] --> making\n"
            "      making --> made : DISK\n"
            "      made --> [*]\n"
            "    }\n"
            "    --\n"
            "    state \"net\" as net\n"
            "  }\n"
            "  state \"done\" as done\n"
            "  [*] --> idle\n"
            "  idle --> work : START [isReady]\n"
            "  work --> done : after 60000 ms\n"
            "  done --> [*]\n"
            "  making --> done : QUIT\n"
            "  classDef active font-weight:bold,stroke-width:3px\n"
            "  class idle active\n");
}

TEST(Diagram, NamesWhatAStateInvokes) {
  constexpr std::string_view kParent =
      R"({"id":"m","states":{"a":{"id":"m.a","invoke":[{"id":"worker","src":"disk"},{"id":"x:1"}]}}})";
  EXPECT_THAT(draw_tree(kParent, "").value(), HasSubstr("a  (invokes worker, x:1)\n"));
  EXPECT_THAT(draw_mermaid(kParent, "").value(),
              HasSubstr("state \"a\\ninvokes worker\\ninvokes x 1\" as a\n"));
}

TEST(Diagram, TakesNoOrdersFromNames) {
  constexpr std::string_view kHostile =
      R"({"id":"m","states":{"a\u001b[2J\nclass x":{"id":"m.a","on":{"E\";x{}":[{"target":["#m.b\n\u009b"]}]}},"b\n":{"id":"m.b\n\u009b"}}})";
  for (const auto& drawn : {draw_tree(kHostile, ""), draw_mermaid(kHostile, "")}) {
    ASSERT_TRUE(drawn.has_value());
    EXPECT_THAT(*drawn, Not(HasSubstr("\x1b")));
    EXPECT_THAT(*drawn, Not(HasSubstr("\xc2\x9b")));
    EXPECT_THAT(*drawn, Not(HasSubstr("\nclass x")));
    EXPECT_THAT(*drawn, Not(HasSubstr("E\"")));
  }
}

TEST(Diagram, RefusesWhatIsNoDefinition) {
  EXPECT_FALSE(draw_tree("[]", "").has_value());
  EXPECT_FALSE(draw_mermaid("{", "").has_value());
  EXPECT_FALSE(draw_tree(kMachine, "idle").has_value());
}

}  // namespace
}  // namespace hangar::abi::statemachine
