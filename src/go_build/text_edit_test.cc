#include "go_build/text_edit.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace hangar::go_build {
namespace {

constexpr Edit kEdit{.line = "\tgo loop()", .replacement = "\tstop()\n\tgo loop()"};

TEST(TextEdit, ReplacesTheLineAndTellsItsNumber) {
  const Result<Edited> edited = apply(kEdit, "func f() {\n\tgo loop()\n}\n");

  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->text, "func f() {\n\tstop()\n\tgo loop()\n}\n");
  EXPECT_EQ(edited->line_number, 2U);
}

TEST(TextEdit, KnowsTheFirstLineAndALastOneWithoutAnEnd) {
  EXPECT_EQ(apply(kEdit, "\tgo loop()").value().text, "\tstop()\n\tgo loop()");
  EXPECT_EQ(apply(kEdit, "a\n\tgo loop()").value().line_number, 2U);
}

TEST(TextEdit, RefusesALineThatIsNotThereOnce) {
  for (const std::string_view text :
       {"", "\n", "\t\tgo loop()\n", "\tgo loop() // why\n", "\tgo loop()\n\tgo loop()\n"}) {
    const Result<Edited> edited = apply(kEdit, text);

    ASSERT_FALSE(edited) << text;
    EXPECT_EQ(edited.error().kind(), ErrorKind::InvalidInput);
  }
}

}  // namespace
}  // namespace hangar::go_build
