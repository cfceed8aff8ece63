#include "abi/kube_runtime/output_lines.h"

#include "abi/kube_runtime/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::abi::kube_runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr OutputStream kOut = OutputStream::Stdout;
constexpr OutputStream kErr = OutputStream::Stderr;

TEST(OutputLines, MakesLinesOfPieces) {
  OutputLines output(1000);
  output.print(kOut, "a");
  output.print(kErr, "warning\n");
  output.print(kOut, "b\n\nc\n");
  EXPECT_THAT(output.take().lines, ElementsAre(OutputLine{kErr, "warning"}, OutputLine{kOut, "ab"},
                                               OutputLine{kOut, ""}, OutputLine{kOut, "c"}));
  EXPECT_THAT(output.take().lines, IsEmpty());
}

TEST(OutputLines, TheEndOfATurnEndsItsLines) {
  OutputLines output(1000);
  output.print(kErr, "half");
  output.print(kOut, "out");
  EXPECT_THAT(output.take().lines, ElementsAre(OutputLine{kOut, "out"}, OutputLine{kErr, "half"}));
  output.print(kErr, " a line\n");
  EXPECT_THAT(output.take().lines, ElementsAre(OutputLine{kErr, " a line"}));
}

TEST(OutputLines, CutsLinesThatAreTooLong) {
  OutputLines output(10 * limits::kOperatorLineBytesMax);
  const std::string whole(limits::kOperatorLineBytesMax, 'x');
  output.print(kOut, whole + "\n" + whole);
  output.print(kOut, "y\n");
  EXPECT_THAT(output.take().lines,
              ElementsAre(OutputLine{kOut, whole}, OutputLine{kOut, whole}, OutputLine{kOut, "y"}));
}

TEST(OutputLines, CountsWhatIsBeyondTheBoundOfATurn) {
  OutputLines output(5);
  output.print(kOut, "ab\ncdef");
  output.print(kErr, "\n\n\n");
  OutputLines::Taken taken = output.take();
  EXPECT_THAT(taken.lines, ElementsAre(OutputLine{kOut, "ab"}, OutputLine{kOut, "cd"}));
  EXPECT_EQ(taken.dropped_bytes, 5U);

  output.print(kOut, "next");
  taken = output.take();
  EXPECT_THAT(taken.lines, ElementsAre(OutputLine{kOut, "next"}));
  EXPECT_EQ(taken.dropped_bytes, 0U);
}

}  // namespace
}  // namespace hangar::abi::kube_runtime
