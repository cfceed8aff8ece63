#include "base/time.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Rfc3339, WritesWhatKubernetesWrites) {
  const WallTime time = WallTime(seconds(1'775'649'600)) + nanoseconds(120'300'000);

  EXPECT_EQ(to_rfc3339(time), "2026-04-08T12:00:00Z");
  EXPECT_EQ(to_rfc3339_micro(time), "2026-04-08T12:00:00.120300Z");
  EXPECT_EQ(to_rfc3339_nano(time), "2026-04-08T12:00:00.1203Z");
}

TEST(Rfc3339, ReadsFractionsAndOffsets) {
  const WallTime noon(seconds(1'775'649'600));

  EXPECT_EQ(parse_rfc3339("2026-04-08T12:00:00Z").value(), noon);
  EXPECT_EQ(parse_rfc3339("2026-04-08T14:00:00+02:00").value(), noon);
  EXPECT_EQ(parse_rfc3339("2026-04-08T12:00:00.25Z").value(), noon + milliseconds(250));
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const std::string_view text :
       {"", "2026", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-04-08T12:00:00",
        "2026-04-08T12:00:00Zx", "-026-04-08T12:00:00Z", "2026-04-08T12:00:00.Z"}) {
    const auto parsed = parse_rfc3339(text);

    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput);
  }
}

TEST(GoDuration, ReadsWhatGoReads) {
  EXPECT_EQ(parse_go_duration("1h30m").value(), hours(1) + minutes(30));
  EXPECT_EQ(parse_go_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_go_duration("1.5s").value(), milliseconds(1500));
  EXPECT_EQ(parse_go_duration("-2m").value(), -minutes(2));
  EXPECT_EQ(parse_go_duration("0").value(), Duration::zero());
  EXPECT_EQ(parse_go_duration("30ms").value(), milliseconds(30));
}

TEST(GoDuration, RefusesWhatGoRefuses) {
  for (const std::string_view text : {"", "5", "s", "1x", "--1s", "1s-2s", "1e9999h", "nans"}) {
    EXPECT_FALSE(parse_go_duration(text).has_value()) << text;
  }
}

TEST(GoDuration, WritesWhatItReads) {
  for (const Duration duration : {Duration(milliseconds(250)), Duration(minutes(90)),
                                  Duration(seconds(61)), Duration(-milliseconds(1500))}) {
    EXPECT_EQ(parse_go_duration(to_go_duration(duration)).value(), duration);
  }
  EXPECT_EQ(to_go_duration(minutes(90)), "1h30m");
  EXPECT_EQ(to_go_duration(seconds(30)), "30s");
}

TEST(GoDuration, ShowsLessThanAMillisecond) {
  EXPECT_EQ(to_go_duration(Duration(1)), "1ns");
  EXPECT_EQ(to_go_duration(Duration(-999)), "-999ns");
  EXPECT_EQ(to_go_duration(Duration(1000)), "1us");
  EXPECT_EQ(to_go_duration(Duration(999'999)), "999us");
  EXPECT_EQ(to_go_duration(milliseconds(1)), "1ms");
  EXPECT_EQ(to_go_duration(Duration::zero()), "0s");
  EXPECT_EQ(parse_go_duration(to_go_duration(Duration(7))).value(), Duration(7));
}

TEST(Rfc3339, RefusesYearsThatWallTimeCannotHold) {
  for (const std::string_view text :
       {"0001-01-01T00:00:00Z", "1677-12-31T23:59:59Z", "2262-01-01T00:00:00Z",
        "3605-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
  for (const std::string_view text : {"1678-01-01T00:00:00Z", "2261-12-31T23:59:59Z"}) {
    const Result<WallTime> time = parse_rfc3339(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(to_rfc3339(*time), text);
  }
}

}  // namespace
}  // namespace hangar
