#include "airways/recording.h"

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/limits.h"
#include "airways/reasons.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/recording.h"
#include "recorder/observer.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "recorder/story.h"
#include "recorder/test_stories.h"
#include "recorder/trace_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
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

void ask(FlightRecording& recording, recorder::Verb verb, int status,
         const Result<json::Value>& result) {
  FlightRecording::Exchange exchange(recording,
                                     {.verb = verb, .resource = kConfigMaps, .key = kMade});
  EXPECT_EQ(exchange.on_request(30), "") << "nothing is traced";
  if (status != 0) exchange.on_response(status, 40);
  exchange.end(result);
}

// The recorded stories after `act`, the newest first.
template <class Act>
std::vector<recorder::Story> stories(Act act) {
  return recorder::stories_of([&act](recorder::Recorder& recorder) {
    reconcile::GuestRecorder flights(&recorder, recorder::Contract::Airway);
    act(flights);
  });
}

TEST(FlightRecording, ARunIsATurnWithWhatWasAppliedForIt) {
  const auto found = stories([](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    recording.ran(io::Loop::now(), "system:serviceaccount:shop:flights", "ab",
                  abi::flight::Output{.stdout_bytes = "abc", .memory_bytes = 65536});
    ask(recording, recorder::Verb::Patch, 201, made());
    ask(recording, recorder::Verb::Delete, 403, fail(ErrorKind::Denied, "no"));
    ask(recording, recorder::Verb::Delete, 0, fail(ErrorKind::Unavailable, "not reached"));
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
  ASSERT_THAT(story.requests, SizeIs(3));
  EXPECT_EQ(story.requests[0].bytes, 30U);
  EXPECT_EQ(story.requests[0].status, 201U);
  EXPECT_EQ(story.requests[0].answer_bytes, 40U);
  EXPECT_EQ(story.requests[0].object.version, 9U);
  EXPECT_TRUE(story.requests[0].may_have_changed());
  EXPECT_EQ(story.requests[1].status, 403U);
  EXPECT_FALSE(story.requests[1].may_have_changed());
  EXPECT_EQ(story.requests[2].status, 503U);
  EXPECT_EQ(story.requests[2].answer_bytes, 0U);
}

TEST(FlightRecording, RequestsAndCausesNameTraces) {
  class Links final : public recorder::Observer {
   public:
    void on_turn(const recorder::Turn& turn) override {
      for (const recorder::Waking& waking : turn.wakings)
        found.emplace_back(waking.traceparent);
    }
    void on_asked(const recorder::Asked& /*asked*/) override {}
    void on_answered(const recorder::Answered& /*answered*/) override {}

    std::vector<std::string> found;
  };
  const recorder::TraceIds ids("key", 1);
  Links links;
  const auto found = recorder::stories_of([&](recorder::Recorder& recorder) {
    recorder.trace_with(&ids);
    recorder.observe(links);
    reconcile::GuestRecorder flights(&recorder, recorder::Contract::Airway);
    json::Value traced = instance();
    json::set_at(traced, {"metadata", "annotations", recorder::kTraceAnnotation}, "00-a-b-01");
    FlightRecording recording(flights, kBackends, traced);
    recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{});
    FlightRecording::Exchange exchange(
        recording, {.verb = recorder::Verb::Patch, .resource = kConfigMaps, .key = kMade});
    const recorder::Guest guest{.contract = recorder::Contract::Airway,
                                .namespace_ = "shop",
                                .name = "backends.examples.com/web"};
    EXPECT_EQ(exchange.on_request(30), ids.traceparent(guest, 1, 1));
    exchange.end(made());
    recorder.forget(links);
  });

  EXPECT_THAT(found, SizeIs(1));
  EXPECT_THAT(links.found, ElementsAre("00-a-b-01"));
}

TEST(FlightRecording, TellsWhatItRanFor) {
  Reasons reasons;
  const auto child = kube::Object::make(made(), kConfigMaps.gvk()).value();
  reasons.add({.kind = kConfigMaps.gvk().group_kind(), .namespace_ = "shop", .name = "made"},
              Change::Deleted, *child, "");
  reasons.add("retry");
  Reasons own;
  const auto self = kube::Object::make(instance(), kBackends.gvk()).value();
  own.add({.kind = kBackends.gvk().group_kind(), .namespace_ = "shop", .name = "web"},
          Change::Modified, *self, "");
  const auto found = stories([&](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{}, reasons);
    recording.taken_down("", own);
    recording.taken_down("", reasons);
    recording.taken_down("");
  });

  ASSERT_THAT(found, SizeIs(4));
  ASSERT_THAT(found[3].causes, SizeIs(2));
  EXPECT_EQ(found[3].causes[0].what, recorder::Waking::Cause::Deleted);
  EXPECT_EQ(found[3].causes[0].object.name, "made");
  EXPECT_EQ(found[3].causes[0].object.version, 9U);
  EXPECT_EQ(found[3].causes[1].event, "retry");
  for (const std::size_t deletion : {0U, 2U}) {
    ASSERT_THAT(found[deletion].causes, SizeIs(1));
    EXPECT_EQ(found[deletion].causes[0].what, recorder::Waking::Cause::Deleted);
    EXPECT_EQ(found[deletion].causes[0].object.name, "web");
  }
  EXPECT_THAT(found[1].causes, SizeIs(2)) << "the removal goes on";
}

TEST(FlightRecording, TheFirstTurnHasWaitedSinceItsReconcileWasQueued) {
  const auto found = stories([](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    const Instant began = io::Loop::now();
    recording.queued_at(began - std::chrono::milliseconds(30));
    recording.ran(began, "", "ab", abi::flight::Output{});
    recording.taken_down("");
  });

  ASSERT_THAT(found, SizeIs(2));
  // Files have microseconds.
  EXPECT_GT(found[1].waited, std::chrono::milliseconds(29));
  EXPECT_EQ(found[0].waited, Duration(0));
}

TEST(FlightRecording, EachAttemptOfAWriteIsARequest) {
  const auto found = stories([](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{});
    FlightRecording::Exchange exchange(
        recording, {.verb = recorder::Verb::Patch, .resource = kConfigMaps, .key = kMade});
    std::ignore = exchange.on_request(30);
    exchange.on_response(409, 5);
    std::ignore = exchange.on_request(31);
    exchange.on_response(200, 40);
    exchange.end(made());
  });

  ASSERT_THAT(found, SizeIs(1));
  const std::vector<recorder::Request>& requests = found[0].requests;
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[0].status, 409U);
  EXPECT_EQ(requests[0].object.version, 0U);
  EXPECT_EQ(requests[1].status, 200U);
  EXPECT_EQ(requests[1].bytes, 31U);
  EXPECT_EQ(requests[1].object.version, 9U);
}

TEST(FlightRecording, WhatItLookedUpIsReadByItsRun) {
  const auto found = stories([](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    const Instant began = io::Loop::now();
    recording.looked_up(kConfigMaps, kMade, began,
                        {.state = abi::flight::LookupState::Ok,
                         .body = R"({"kind":"ConfigMap","apiVersion":"v1",)"
                                 R"("metadata":{"name":"made","resourceVersion":"17"}})"});
    recording.looked_up(kConfigMaps, kMade, began,
                        {.state = abi::flight::LookupState::Ok, .body = "{}"});
    recording.looked_up(kConfigMaps, kMade, began,
                        {.state = abi::flight::LookupState::Forbidden, .body = "you may not"});
    recording.ran(began, "", "ab", abi::flight::Output{});
    // The lookup was of the run before, and not of this one.
    recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{});
  });

  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[0].requests, IsEmpty());
  const std::vector<recorder::Request>& requests = found[1].requests;
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[0].verb, recorder::Verb::Get);
  EXPECT_EQ(requests[0].resource, "configmaps");
  EXPECT_EQ(requests[0].object.name, "made");
  EXPECT_EQ(requests[0].object.version, 17U);
  EXPECT_EQ(requests[0].status, 200U);
  EXPECT_EQ(requests[1].object.name, "made");
  EXPECT_EQ(requests[1].object.version, 0U);
  EXPECT_EQ(requests[1].answer_bytes, 2U);
  EXPECT_EQ(requests[2].status, 403U);
  EXPECT_EQ(requests[2].answer_bytes, 0U);
}

TEST(FlightRecording, BoundsWhatIsRecordedOfLookups) {
  const auto found = stories([](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    for (std::size_t i = 0; i <= limits::kRecordedLookupsMax; ++i)
      recording.looked_up(kConfigMaps, kMade, io::Loop::now(), {});
    recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{});
  });

  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].requests, SizeIs(limits::kRecordedLookupsMax));
}

TEST(FlightRecording, ARunThatFailsIsATurnThatFailed) {
  const auto found = stories([](reconcile::GuestRecorder& flights) {
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

TEST(FlightRecording, NothingIsToldWithoutATurnOrARecorder) {
  const auto act = [](reconcile::GuestRecorder& flights) {
    FlightRecording recording(flights, kBackends, instance());
    ask(recording, recorder::Verb::Patch, 200, made());
  };
  EXPECT_THAT(stories(act), IsEmpty());

  reconcile::GuestRecorder none(nullptr, recorder::Contract::Airway);
  FlightRecording recording(none, kBackends, instance());
  recording.ran(io::Loop::now(), "", "ab", abi::flight::Output{});
  recording.taken_down("");
  act(none);
}

}  // namespace
}  // namespace hangar::airways
