#include "commands/rounded_table.h"

#include <gtest/gtest.h>

namespace hangar::commands {
namespace {

TEST(RoundedTable, LooksAsYokesDoes) {
  EXPECT_EQ(rounded_table({{"release"}, {"namespace"}, {"revision id", Align::Right}},
                          {{"web", "default", "3"}, {"larger", "apps", "12"}}),
            "╭─────────┬───────────┬─────────────╮\n"
            "│ RELEASE │ NAMESPACE │ REVISION ID │\n"
            "├─────────┼───────────┼─────────────┤\n"
            "│ web     │ default   │           3 │\n"
            "│ larger  │ apps      │          12 │\n"
            "╰─────────┴───────────┴─────────────╯\n");
}

TEST(RoundedTable, WithoutRowsHasItsHeader) {
  EXPECT_EQ(rounded_table({{"id"}}, {}), "╭────╮\n│ ID │\n├────┤\n╰────╯\n");
}

TEST(RoundedTable, DoesNotMoveTheCursor) {
  EXPECT_EQ(rounded_table({{"x"}}, {{"\x1b[2Ja"}}),
            "╭──────────╮\n│ X        │\n├──────────┤\n│ \\x1b[2Ja │\n╰──────────╯\n");
}

}  // namespace
}  // namespace hangar::commands
