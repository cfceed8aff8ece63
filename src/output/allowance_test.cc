#include "output/allowance.h"

#include "base/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace hangar::output {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart = Instant() + seconds(1000);
constexpr std::uint64_t kRate = 8 * limits::kKiB;
constexpr std::uint64_t kLine = 100;

TEST(Allowance, KeepsOneWholeTurn) {
  Allowance allowance(kRate);

  for (std::uint64_t printed = 0; printed < kRate; printed += kLine)
    EXPECT_TRUE(allowance.take(kLine, kStart));
}

TEST(Allowance, BoundsWhatManyTurnsPrint) {
  Allowance allowance(kRate);

  // Ten seconds of turns that each print as much as one turn may.
  std::uint64_t kept = 0;
  for (int turn = 0; turn < 10'000; ++turn) {
    for (std::uint64_t printed = 0; printed < kRate; printed += kLine) {
      if (allowance.take(kLine, kStart + milliseconds(turn))) kept += kLine;
    }
  }

  EXPECT_LE(kept, 14 * kRate + kLine);
  EXPECT_GE(kept, 13 * kRate);
}

TEST(Allowance, KeepsALineThatIsLongerThanTheBurstAndLetsItBePaidBack) {
  Allowance allowance(10);

  EXPECT_TRUE(allowance.take(100, kStart));
  EXPECT_FALSE(allowance.take(1, kStart + seconds(6)));
  EXPECT_TRUE(allowance.take(1, kStart + seconds(7)));
}

TEST(Allowance, TellsAllThatWasDroppedOnceASecond) {
  Allowance allowance(kRate);
  allowance.drop(5);
  EXPECT_EQ(allowance.tell_dropped(kStart), 5U);
  EXPECT_FALSE(allowance.has_untold());
  allowance.drop(6);
  allowance.drop(7);
  EXPECT_EQ(allowance.tell_dropped(kStart + milliseconds(500)), std::nullopt);
  EXPECT_TRUE(allowance.has_untold());
  EXPECT_EQ(allowance.tell_dropped(kStart + seconds(1)), 13U);
  EXPECT_EQ(allowance.tell_dropped(kStart + seconds(5)), std::nullopt);
}

}  // namespace
}  // namespace hangar::output
