#include "output/namespace_allowances.h"

#include "base/time.h"
#include "output/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hangar::output {
namespace {

using std::chrono::seconds;

TEST(NamespaceAllowances, BoundEachNamespaceOverTime) {
  NamespaceAllowances allowances;
  const Instant now = Instant() + seconds(100);
  const std::uint64_t burst = 4 * limits::kNamespaceOutputBytesPerSecond;

  EXPECT_FALSE(allowances.refuse("a", burst, now));
  EXPECT_EQ(allowances.refuse("a", 1, now),
            "guests of namespace a may print 1048576 bytes a second together");
  EXPECT_FALSE(allowances.refuse("b", burst, now)) << "another namespace";
  EXPECT_FALSE(allowances.refuse("", burst, now));
  EXPECT_FALSE(allowances.refuse("", burst, now)) << "of objects without a namespace";
  EXPECT_FALSE(allowances.refuse("a", 1, now + seconds(1)));
}

TEST(NamespaceAllowances, APolicyNarrowsAndMayChange) {
  NamespaceAllowances allowances;
  std::uint64_t bytes_per_second = 10;
  allowances.limit_namespaces([&](const std::string&) {
    return std::optional(NamespaceAllowances::Bound{.bytes_per_second = bytes_per_second,
                                                    .set_by = "TenantPolicy p"});
  });
  const Instant now = Instant() + seconds(100);
  EXPECT_FALSE(allowances.refuse("a", 40, now));
  EXPECT_EQ(allowances.refuse("a", 1, now),
            "guests of namespace a may print 10 bytes a second together (TenantPolicy p)");

  bytes_per_second = 1000;
  EXPECT_FALSE(allowances.refuse("a", 1000, now));
  bytes_per_second = 1'000'000'000;
  EXPECT_FALSE(allowances.refuse("a", 4 * limits::kNamespaceOutputBytesPerSecond, now));
  EXPECT_TRUE(allowances.refuse("a", 1, now)) << "a policy cannot widen the host's bound";
  bytes_per_second = 0;
  EXPECT_TRUE(allowances.refuse("a", 1, now + seconds(10)));
}

TEST(NamespaceAllowances, ForgetNamespacesThatPrintNoMore) {
  NamespaceAllowances allowances;
  const Instant now = Instant() + seconds(100);
  EXPECT_FALSE(allowances.refuse("a", 1000, now));
  EXPECT_FALSE(allowances.refuse("b", 1000, now + seconds(120)));
  EXPECT_EQ(allowances.size(), 1U);
}

TEST(NamespaceAllowances, MeasureWhatWasKeptOverTheLastPeriod) {
  NamespaceAllowances allowances;
  allowances.limit_namespaces([](const std::string&) {
    return std::optional(NamespaceAllowances::Bound{.bytes_per_second = 1000, .set_by = {}});
  });
  const Instant now = Instant() + seconds(100);
  EXPECT_FALSE(allowances.refuse("a", 6000, now));
  EXPECT_TRUE(allowances.refuse("a", 2000, now)) << "is dropped, and counts for nothing";

  EXPECT_EQ(allowances.bytes_per_second("a", now), 0U) << "the period is not over";
  EXPECT_EQ(allowances.bytes_per_second("a", now + kOutputMeasured), 400U);
  EXPECT_EQ(allowances.bytes_per_second("a", now + 3 * kOutputMeasured), 0U);
  EXPECT_EQ(allowances.bytes_per_second("b", now + kOutputMeasured), 0U);
}

}  // namespace
}  // namespace hangar::output
