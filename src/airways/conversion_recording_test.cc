#include "airways/conversion_recording.h"

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "io/loop.h"
#include "json/value.h"
#include "reconcile/recording.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "recorder/story.h"
#include "recorder/test_stories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace hangar::airways {
namespace {

using testing::SizeIs;

json::Value airway() {
  return json::parse(R"({"metadata":{"name":"backends.examples.com","uid":"u"}})").value();
}

// The recorded stories after `act`, the newest first.
template <class Act>
std::vector<recorder::Story> stories(Act act) {
  return recorder::stories_of([&act](recorder::Recorder& recorder) {
    reconcile::GuestRecorder guests(&recorder, recorder::Contract::Airway);
    ConversionRecorder conversions(guests);
    act(conversions);
  });
}

TEST(ConversionRecorder, ARunIsATurnOfItsAirway) {
  const auto found = stories([](ConversionRecorder& conversions) {
    conversions.ran(airway(), conversion_event("Backend", "examples.com/v2", 3), io::Loop::now(),
                    "ab",
                    abi::flight::Output{.stdout_bytes = "abc",
                                        .cpu_time = std::chrono::milliseconds(2),
                                        .memory_bytes = 65536});
    conversions.ran(airway(), "another", io::Loop::now(), "ab",
                    fail(ErrorKind::GuestFault, "trap"));
  });

  ASSERT_THAT(found, SizeIs(2));
  const recorder::Story& story = found[1];
  EXPECT_EQ(story.contract, recorder::Contract::Airway);
  EXPECT_EQ(story.namespace_, "");
  EXPECT_EQ(story.name, "airways.yoke.cd/backends.examples.com");
  EXPECT_EQ(story.uid, "u");
  EXPECT_EQ(story.user, "");
  EXPECT_EQ(story.module, "ab");
  EXPECT_EQ(story.cpu, std::chrono::milliseconds(2));
  EXPECT_EQ(story.memory_bytes, 65536U);
  EXPECT_EQ(story.printed_bytes, 3U);
  EXPECT_EQ(story.outcome, recorder::Turn::Outcome::Completed);
  ASSERT_THAT(story.causes, SizeIs(1));
  EXPECT_EQ(story.causes[0].what, recorder::Waking::Cause::Event);
  EXPECT_EQ(story.causes[0].event, "conversion of Backend to examples.com/v2, objects: 3");
  EXPECT_EQ(found[0].outcome, recorder::Turn::Outcome::Failed);
  ASSERT_THAT(found[0].causes, SizeIs(1));
  EXPECT_EQ(found[0].causes[0].event, "another");
}

TEST(ConversionRecorder, RecordsNoMoreThanItsRate) {
  constexpr auto kBurst = static_cast<std::size_t>(ConversionRecorder::kRecordedRuns.burst);
  const auto found = stories([](ConversionRecorder& conversions) {
    for (std::size_t i = 0; i < 2 * kBurst; ++i)
      conversions.ran(airway(), "again", io::Loop::now(), "ab", abi::flight::Output{});
  });

  EXPECT_GE(found.size(), kBurst);
  EXPECT_LT(found.size(), 2 * kBurst);
}

}  // namespace
}  // namespace hangar::airways
