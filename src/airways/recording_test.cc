#include "airways/recording.h"

#include "abi/flight/evaluation.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "recorder/limits.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "recorder/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const kube::Resource kBackends{.group = "examples.com",
                               .version = "v1",
                               .plural = "backends",
                               .kind = "Backend",
                               .namespaced = true};
const kube::Resource kConfigMaps{
    .version = "v1", .plural = "configmaps", .kind = "ConfigMap", .namespaced = true};
const kube::ObjectKey kMade{.namespace_ = "shop", .name = "made"};

json::Value instance() {
  return json::parse(
             R"({"metadata":{"namespace":"shop","name":"web","uid":"u","resourceVersion":"7"}})")
      .value();
}

json::Value made() {
  return json::parse(R"({"apiVersion":"v1","kind":"ConfigMap",
                         "metadata":{"namespace":"shop","name":"made","resourceVersion":"9"}})")
      .value();
}

class FlightRecordingTest : public testing::Test {
 protected:
  FlightRecordingTest() {
    std::string name = (std::filesystem::temp_directory_path() / "flights-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FlightRecordingTest() override { std::filesystem::remove_all(root_); }

  // What is there once `act` has told it to a recorder; the newest first.
  template <class Act>
  std::vector<recorder::Story> stories(Act act) {
    {
      io::Loop loop;
      Metrics metrics;
      recorder::Recorder recorder(
          loop,
          {.directory = root_,
           .limits = {.bytes_max = recorder::kBytesMin, .age_max = std::chrono::hours(24)}},
          metrics, Log());
      FlightRecorder flights(&recorder);
      act(flights);
      EXPECT_TRUE(io::run_to_end(loop, flushed(recorder)));
    }
    std::vector<recorder::Story> found;
    EXPECT_TRUE(recorder::read_directory(root_, [&](recorder::Story story) {
      found.push_back(std::move(story));
      return true;
    }));
    return found;
  }

 private:
  static io::Task<bool> flushed(recorder::Recorder& recorder) {
    co_await recorder.flush();
    co_return true;
  }

  std::filesystem::path root_;
};

TEST_F(FlightRecordingTest, ARunIsATurnWithWhatWasAppliedForIt) {
  const auto found = stories([](FlightRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    recording.ran(io::Loop::now(), "system:serviceaccount:shop:flights", "ab",
                  abi::flight::Output{.stdout_bytes = "abc", .memory_bytes = 65536});
    const std::uint64_t request = recording.asked({.verb = recorder::Verb::Patch,
                                                   .resource = kConfigMaps,
                                                   .key = kMade,
                                                   .field_manager = "yoke"});
    recording.answered(request, made());
    const std::uint64_t refused =
        recording.asked({.verb = recorder::Verb::Delete, .resource = kConfigMaps, .key = kMade});
    recording.answered(refused, fail(ErrorKind::Denied, "no"));
  });

  ASSERT_THAT(found, SizeIs(1));
  const recorder::Story& story = found[0];
  EXPECT_EQ(story.contract, recorder::Contract::Airway);
  EXPECT_EQ(story.namespace_, "shop");
  EXPECT_EQ(story.name, "backends.examples.com/web");
  EXPECT_EQ(story.user, "system:serviceaccount:shop:flights");
  EXPECT_EQ(story.module, "ab");
  EXPECT_EQ(story.outcome, recorder::Turn::Outcome::Completed);
  EXPECT_EQ(story.printed_bytes, 3U);
  ASSERT_THAT(story.causes, SizeIs(1));
  EXPECT_EQ(story.causes[0].object, (recorder::ObjectVersion{.group = "examples.com",
                                                             .kind = "Backend",
                                                             .namespace_ = "shop",
                                                             .name = "web",
                                                             .version = 7}));
  ASSERT_THAT(story.requests, SizeIs(2));
  EXPECT_EQ(story.requests[0].status, 200U);
  EXPECT_EQ(story.requests[0].object.version, 9U);
  EXPECT_TRUE(story.requests[0].may_have_changed());
  EXPECT_EQ(story.requests[1].status, 403U);
  EXPECT_FALSE(story.requests[1].may_have_changed());
}

TEST_F(FlightRecordingTest, ARunThatFailsIsATurnThatFailed) {
  const auto found = stories([](FlightRecorder& flights) {
    FlightRecording(flights, kBackends, instance())
        .ran(io::Loop::now(), "", "ab", fail(ErrorKind::GuestFault, "trap"));
    FlightRecording(flights, kBackends, instance())
        .ran(io::Loop::now(), "", "ab", abi::flight::Output{.exit_code = 1});
  });

  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].outcome, recorder::Turn::Outcome::Failed);
  EXPECT_EQ(found[1].outcome, recorder::Turn::Outcome::Failed);
  EXPECT_GT(found[0].number, found[1].number);
}

TEST_F(FlightRecordingTest, NothingIsToldWithoutATurnOrARecorder) {
  const auto act = [](FlightRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    const std::uint64_t request =
        recording.asked({.verb = recorder::Verb::Delete, .resource = kConfigMaps, .key = kMade});
    EXPECT_EQ(request, 0U);
    recording.answered(request, made());
  };
  EXPECT_THAT(stories(act), IsEmpty());

  FlightRecorder none(nullptr);
  FlightRecording recording(none, kBackends, instance());
  recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{});
  recording.taken_down("");
  act(none);
}

}  // namespace
}  // namespace hangar::airways
