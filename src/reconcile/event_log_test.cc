#include "reconcile/event_log.h"

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "reconcile/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hangar::reconcile {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Instant kNow = Instant() + std::chrono::hours(1);
const WallTime kNoon = WallTime(seconds(1'775'649'600));

ObjectReference object(const std::string& name) {
  return {.gvk = {"examples.com", "v1", "Backend"}, .key = {"ns", name}, .uid = "uid-" + name};
}

struct Fixture {
  bool say(const ObjectReference& regarding, const std::string& message,
           Duration later = Duration::zero()) {
    return log.say(regarding, {.type = EventType::Warning, .reason = "Failed", .message = message},
                   kNow + later, kNoon + std::chrono::duration_cast<seconds>(later));
  }
  // Writes the next one with that result; false also if there is none.
  bool write(const Result<>& written = {}) {
    const std::optional<EventLog::Write> next = log.next();
    return next && log.on_written(next->id, written);
  }
  EventLog log{"hangar", "hangar-0"};
};

TEST(EventLog, WritesWhatKubectlDescribeShows) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");

  const auto write = fixture.log.next();

  ASSERT_TRUE(write.has_value());
  EXPECT_TRUE(write->is_new);
  EXPECT_EQ(write->key.namespace_, "ns");
  const json::Value& event = write->document;
  EXPECT_EQ(json::string_at(event, {"involvedObject", "uid"}), "uid-a");
  EXPECT_EQ(json::string_at(event, {"involvedObject", "apiVersion"}), "examples.com/v1");
  EXPECT_EQ(json::string_at(event, {"type"}), "Warning");
  EXPECT_EQ(json::string_at(event, {"reason"}), "Failed");
  EXPECT_EQ(json::string_at(event, {"message"}), "it broke");
  EXPECT_EQ(json::string_at(event, {"source", "component"}), "hangar");
  EXPECT_EQ(json::string_at(event, {"lastTimestamp"}), "2026-04-08T12:00:00Z");
  EXPECT_EQ(json::int_at(event, {"count"}), 1);
}

TEST(EventLog, CountsTheSameThingInOneEvent) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");
  const auto created = fixture.log.next();
  EXPECT_TRUE(fixture.log.on_written(created->id, {}));
  EXPECT_FALSE(fixture.log.next().has_value());

  fixture.say(object("a"), "it broke", seconds(30));
  const auto patched = fixture.log.next();

  ASSERT_TRUE(patched.has_value());
  EXPECT_FALSE(patched->is_new);
  EXPECT_EQ(patched->key, created->key);
  EXPECT_EQ(json::int_at(patched->document, {"count"}), 2);
  EXPECT_EQ(json::string_at(patched->document, {"lastTimestamp"}), "2026-04-08T12:00:30Z");
}

TEST(EventLog, MergesWhatIsSaidWhileTheServerIsAway) {
  Fixture fixture;
  for (int count = 0; count < 5; ++count)
    fixture.say(object("a"), "it broke");
  EXPECT_EQ(fixture.log.pending_count(), 1U);

  const auto write = fixture.log.next();
  EXPECT_EQ(json::int_at(write->document, {"count"}), 5);

  // Recorded while it is being written.
  fixture.say(object("a"), "it broke");
  EXPECT_TRUE(fixture.log.on_written(write->id, {}));
  const auto again = fixture.log.next();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(json::int_at(again->document, {"count"}), 6);
}

TEST(EventLog, TriesAgainWhileTheServerIsUnavailableAndThenGivesUp) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");
  const Result<> away = fail(ErrorKind::Unavailable, "connection refused");

  int tries = 0;
  while (const auto write = fixture.log.next()) {
    ++tries;
    ASSERT_LT(tries, 100);
    fixture.log.on_written(write->id, away);
  }

  EXPECT_EQ(tries, 12);
}

TEST(EventLog, DropsWhatTheServerRefuses) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");
  EXPECT_TRUE(fixture.write(fail(ErrorKind::Denied, "namespace is being terminated")));

  EXPECT_FALSE(fixture.log.next().has_value());
}

TEST(EventLog, BeginsANewEventWhenTheServerForgotTheOldOne) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");
  const auto first = fixture.log.next();
  fixture.log.on_written(first->id, {});
  fixture.say(object("a"), "it broke");

  EXPECT_TRUE(fixture.write(fail(ErrorKind::NotFound, "events not found")));

  const auto renewed = fixture.log.next();
  ASSERT_TRUE(renewed.has_value());
  EXPECT_TRUE(renewed->is_new);
  EXPECT_NE(renewed->key, first->key);
  EXPECT_EQ(json::int_at(renewed->document, {"count"}), 2);
}

TEST(EventLog, CutsOffAnObjectThatMuchIsSaidAbout) {
  Fixture fixture;
  int said = 0;
  for (int count = 0; count < 100; ++count)
    said += fixture.say(object("noisy"), "message " + std::to_string(count)) ? 1 : 0;

  EXPECT_EQ(said, 25);
  EXPECT_TRUE(fixture.say(object("quiet"), "hello"));
  EXPECT_FALSE(fixture.say(object("noisy"), "more", minutes(4)));
  EXPECT_TRUE(fixture.say(object("noisy"), "more", minutes(6)));
}

TEST(EventLog, ForgetsTheObjectThatWasSilentForLongest) {
  Fixture fixture;
  const auto say = [&fixture](const std::string& name, const std::string& message) {
    const bool is_said = fixture.say(object(name), message);
    fixture.write();
    return is_said;
  };
  for (int count = 0; count < 25; ++count)
    ASSERT_TRUE(say("noisy", std::to_string(count)));
  for (std::uint32_t count = 0; count <= limits::kEventSeriesMax; ++count) {
    say(std::to_string(count), "hello");
    if (count % 1000 == 0) EXPECT_FALSE(say("noisy", "more"));
  }
  for (std::uint32_t count = 0; count < limits::kEventSeriesMax; ++count)
    say("other " + std::to_string(count), "hello");
  EXPECT_TRUE(say("noisy", "more"));
}

TEST(EventLog, ForgetsWhatItToldLongestAgo) {
  Fixture fixture;
  const auto is_new = [&fixture](const std::string& name) {
    fixture.say(object(name), "it broke");
    const auto write = fixture.log.next();
    EXPECT_TRUE(fixture.log.on_written(write->id, {}));
    return write->is_new;
  };
  ASSERT_TRUE(is_new("early"));
  for (std::uint32_t count = 0; count < limits::kEventSeriesMax; ++count)
    ASSERT_TRUE(is_new(std::to_string(count)));

  EXPECT_TRUE(is_new("early"));
  EXPECT_FALSE(is_new(std::to_string(limits::kEventSeriesMax - 1)));
}

TEST(EventLog, LetsOthersGoFirstWhenItIsSaidAgainMeanwhile) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");
  fixture.say(object("b"), "it broke");
  const auto first = fixture.log.next();
  fixture.say(object("a"), "it broke");
  ASSERT_TRUE(fixture.log.on_written(first->id, {}));

  const auto second = fixture.log.next();
  ASSERT_TRUE(fixture.log.on_written(second->id, {}));
  const auto third = fixture.log.next();

  EXPECT_NE(second->key, first->key);
  EXPECT_EQ(third->key, first->key);
  EXPECT_EQ(json::int_at(third->document, {"count"}), 2);
}

TEST(EventLog, StaysWithinItsBoundsWhateverIsSaid) {
  Fixture fixture;
  for (std::uint32_t count = 0; count < 2 * limits::kEventSeriesMax; ++count) {
    fixture.say(object(std::to_string(count)), "it broke");
    if (count % 2 == 0) fixture.write();
  }

  EXPECT_EQ(fixture.log.pending_count(), limits::kEventsPendingMax);
}

TEST(EventLog, AFloodInOneNamespaceKeepsNoOtherFromItsEvents) {
  Fixture fixture;
  for (std::uint32_t count = 0; count < 2 * limits::kEventsPendingMax; ++count)
    fixture.say(object(std::to_string(count)), "it broke");
  ObjectReference victim = object("v");
  victim.key.namespace_ = "victim";

  EXPECT_TRUE(fixture.say(victim, "it broke"));
  EXPECT_FALSE(fixture.say(object("one more"), "it broke"));

  std::optional<EventLog::Write> write = fixture.log.next();
  if (write->key.namespace_ != "victim") write = fixture.log.next();
  EXPECT_EQ(write->key.namespace_, "victim");
}

TEST(EventLog, SeveralWritesMayBeUnderWay) {
  Fixture fixture;
  fixture.say(object("a"), "it broke");
  fixture.say(object("b"), "it broke");
  const auto first = fixture.log.next();
  const auto second = fixture.log.next();
  EXPECT_FALSE(fixture.log.next().has_value());
  fixture.say(object("a"), "it broke");
  EXPECT_EQ(fixture.log.waiting_count(), 0U) << "it waits for the first write";

  EXPECT_TRUE(fixture.log.on_written(second->id, {}));
  EXPECT_FALSE(fixture.log.next().has_value());
  EXPECT_TRUE(fixture.log.on_written(first->id, {}));
  const auto third = fixture.log.next();
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->key, first->key);
}

TEST(EventLog, KeepsMessagesAndNamesWithinWhatTheServerTakes) {
  Fixture fixture;
  std::string message;
  while (message.size() < 3000)
    message += "\xc3\xa4";
  fixture.say(object(std::string(253, 'n')), message);

  const auto write = fixture.log.next();

  EXPECT_LE(write->key.name.size(), 253U);
  EXPECT_EQ(json::string_at(write->document, {"message"}).size(), 1024U);
}

TEST(EventLog, PutsEventsOfClusterScopedObjectsIntoDefault) {
  Fixture fixture;
  ObjectReference airway = object("a");
  airway.key.namespace_.clear();
  fixture.say(airway, "it broke");

  EXPECT_EQ(fixture.log.next()->key.namespace_, "default");
}

}  // namespace
}  // namespace hangar::reconcile
