#include "kube/watch/event_reading.h"

#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/workers.h"
#include "kube/limits.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kLong = limits::kWatchLineAtOnceBytesMax;

std::string line_of(std::string_view name, std::size_t bytes = 0) {
  return fmt::format(
      R"({{"type":"ADDED","object":{{"apiVersion":"v1","kind":"Thing","metadata":{{"name":"{}","resourceVersion":"1"}},"data":"{}"}}}})",
      name, std::string(bytes, 'x'));
}

class EventReadingTest : public testing::Test {
 protected:
  // Until release(), no line gets a worker.
  void occupy_workers() {
    workers_.submit(unnamed_consumer(), [held = released_.get_future().share()] { held.wait(); });
  }
  void release() { released_.set_value(); }
  Result<> finish() { return io::run_to_end(loop_, reading_.finish()); }

  Result<> on_event(Result<WatchEvent> event) {
    if (!event) {
      seen_.push_back(event.error().message());
      return {};
    }
    const auto& change = std::get<Change>(*event);
    read_times_.push_back(change.read_time);
    seen_.push_back(change.object->key().name);
    if (seen_.back() == "bad") return fail(ErrorKind::Cancelled, "no more");
    if (seen_.back() == "worse") throw std::runtime_error("it throws");
    return {};
  }

  io::Loop loop_;
  std::promise<void> released_;
  io::Workers workers_{loop_, 1};
  std::vector<std::string> seen_;
  std::vector<Duration> read_times_;
  int late_failures_ = 0;
  EventReading reading_{
      loop_,
      &workers_,
      unnamed_consumer(),
      {.on_event = [this](Result<WatchEvent> event) { return on_event(std::move(event)); },
       .on_late_failure = [this] { ++late_failures_; }}};
};

TEST_F(EventReadingTest, ReadsShortLinesAtOnce) {
  EXPECT_TRUE(reading_.take(line_of("a")));
  EXPECT_THAT(seen_, ElementsAre("a"));
  EXPECT_FALSE(reading_.take(line_of("bad")));
  EXPECT_FALSE(reading_.take(line_of("b")));
  EXPECT_THAT(seen_, ElementsAre("a", "bad"));
  EXPECT_EQ(late_failures_, 0);
}

TEST_F(EventReadingTest, TellsWhatEachChangeTookToRead) {
  EXPECT_TRUE(reading_.take(line_of("short")));
  EXPECT_TRUE(reading_.take(line_of("long", kLong)));
  EXPECT_TRUE(reading_.take(line_of("behind it")));
  release();
  ASSERT_TRUE(finish());

  ASSERT_EQ(read_times_.size(), 3U);
  for (const Duration took : read_times_)
    EXPECT_GT(took, Duration::zero());
}

TEST_F(EventReadingTest, LeavesLongLinesToAWorkerAndKeepsTheOrder) {
  occupy_workers();
  EXPECT_TRUE(reading_.take(line_of("a")));
  EXPECT_TRUE(reading_.take(line_of("long", kLong)));
  EXPECT_TRUE(reading_.take(line_of("b")));
  EXPECT_TRUE(reading_.take(line_of("longer", 2 * kLong)));
  EXPECT_TRUE(reading_.take(line_of("c")));
  EXPECT_THAT(seen_, ElementsAre("a")) << "the loop has read it";

  release();
  EXPECT_TRUE(finish());
  EXPECT_THAT(seen_, ElementsAre("a", "long", "b", "longer", "c"));
  EXPECT_TRUE(reading_.take(line_of("d")));
  EXPECT_EQ(seen_.back(), "d");
}

TEST_F(EventReadingTest, ReadsAllWithoutWorkers) {
  EventReading alone(
      loop_, nullptr, unnamed_consumer(),
      {.on_event = [this](Result<WatchEvent> event) { return on_event(std::move(event)); },
       .on_late_failure = [this] { ++late_failures_; }});
  EXPECT_TRUE(alone.take(line_of("long", kLong)));
  EXPECT_THAT(seen_, ElementsAre("long"));
}

TEST_F(EventReadingTest, KeepsNoMoreThanItMay) {
  occupy_workers();
  const std::string line = line_of("long", 1U << 20U);
  const std::size_t fitting = limits::kWatchLinesWaitingBytesMax / line.size();
  for (std::size_t index = 0; index < fitting; ++index)
    EXPECT_TRUE(reading_.take(line));
  EXPECT_THAT(seen_, IsEmpty());

  EXPECT_TRUE(reading_.take(line_of("last", 1U << 20U)));
  EXPECT_EQ(seen_.size(), fitting + 1) << "the loop reads them";
  EXPECT_EQ(seen_.back(), "last");
  EXPECT_TRUE(reading_.take(line_of("next")));
  release();
  EXPECT_TRUE(finish());
  EXPECT_EQ(seen_.size(), fitting + 2) << "what the worker has read of them counts no more";
  EXPECT_EQ(seen_.back(), "next");
}

TEST_F(EventReadingTest, EndsWithAnEventThatFailsLater) {
  EXPECT_TRUE(reading_.take(line_of("bad", kLong)));
  EXPECT_TRUE(reading_.take(line_of("a")));

  EXPECT_EQ(finish().error().message(), "no more");
  EXPECT_EQ(late_failures_, 1);
  EXPECT_THAT(seen_, ElementsAre("bad"));
  EXPECT_FALSE(reading_.take(line_of("b")));
}

TEST_F(EventReadingTest, EndsWithAnExceptionOfItsHandler) {
  EXPECT_TRUE(reading_.take(line_of("worse", kLong)));

  EXPECT_FALSE(finish());
  EXPECT_EQ(late_failures_, 1);
}

TEST_F(EventReadingTest, HandlesNothingAfterAnEventThatThrew) {
  EXPECT_TRUE(reading_.take(line_of("long", kLong)));
  EXPECT_TRUE(reading_.take(line_of("worse")));
  EXPECT_TRUE(reading_.take(line_of("a")));
  EXPECT_FALSE(finish());
  EXPECT_THAT(seen_, ElementsAre("long", "worse"));
  EXPECT_FALSE(reading_.take(line_of("b")));
  EXPECT_THAT(seen_, ElementsAre("long", "worse"));
}

TEST_F(EventReadingTest, SaysWhatIsWrongWithALongLine) {
  EXPECT_TRUE(reading_.take(std::string(2 * kLong, '{')));

  EXPECT_TRUE(finish());
  EXPECT_EQ(seen_.size(), 1U);
}

TEST_F(EventReadingTest, HandlesNothingThatWasDropped) {
  EXPECT_TRUE(reading_.take(line_of("long", kLong)));
  EXPECT_TRUE(reading_.take(line_of("a")));
  reading_.drop();

  EXPECT_TRUE(finish());
  EXPECT_THAT(seen_, IsEmpty());
}

}  // namespace
}  // namespace hangar::kube
