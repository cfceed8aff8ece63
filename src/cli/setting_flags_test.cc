#include "cli/setting_flags.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <string>

namespace hangar::cli {
namespace {

// Tenants and servers choose parts of errors.
TEST(Report, LeavesATerminalAloneAndLettersAsTheyAre) {
  testing::internal::CaptureStderr();

  const int code =
      report(Error(ErrorKind::NotFound,
                   "in state \x1b]52;c;eA==\x07 of /home/jos\u00e9:\n\tline 2\r \xc2\x9b"
                   "2J \xff"),
             1);

  EXPECT_EQ(code, 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "hangar: in state \\x1b]52;c;eA==\\x07 of /home/jos\u00e9:\n\tline 2\\x0d "
            "\\xc2\\x9b2J \\xff\n");
}

}  // namespace
}  // namespace hangar::cli
