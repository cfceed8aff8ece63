#include "workflows/recording.h"

#include "abi/statemachine/machine.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/recording.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "recorder/story.h"
#include "recorder/test_stories.h"
#include "workflows/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hangar::workflows {
namespace {

using abi::statemachine::Step;
using recorder::Story;
using recorder::Waking;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const kube::Resource kConfigMaps{
    .version = "v1", .plural = "configmaps", .kind = "ConfigMap", .namespaced = true};
const kube::ObjectKey kMade{.namespace_ = "shop", .name = "made"};
constexpr std::string_view kAccount = "system:serviceaccount:shop:default";

json::Value workflow() {
  return json::parse(
             R"({"metadata":{"namespace":"shop","name":"order","uid":"u","resourceVersion":"7"}})")
      .value();
}

QueuedEvent event(Origin origin, std::string_view body, std::uint64_t source = 0) {
  return {.origin = origin, .body = json::parse(body).value(), .source = source};
}

PendingAction action(std::int64_t id) {
  return {.id = id, .type = "APPLY"};
}

// The stories recorded by `act`, newest first.
std::vector<Story> stories(const std::function<void(StepRecording&)>& act) {
  return recorder::stories_of([&act](recorder::Recorder& recorder) {
    reconcile::GuestRecorder workflows(&recorder, recorder::Contract::Workflow);
    StepRecording recording(workflows, workflow(), std::string(kAccount));
    act(recording);
  });
}

StepRecording::Stepped ended(const Step* step, std::int64_t actions_from = 1) {
  return {.began = io::Loop::now(),
          .module_sha256 = "ab",
          .cost = {.cpu = std::chrono::milliseconds(2), .memory_bytes = 65536},
          .step = step,
          .actions_from = actions_from};
}

void ask(StepRecording& recording, recorder::Verb verb) {
  StepRecording::Exchange exchange(recording,
                                   {.verb = verb, .resource = kConfigMaps, .key = kMade});
  EXPECT_EQ(exchange.on_request(30), "") << "nothing is traced";
  exchange.on_response(201, 40);
  exchange.end(json::parse(R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"namespace":"shop","name":"made","resourceVersion":"9"}})"));
}

TEST(StepRecording, AStepIsATurnWithWhatItsActionsAskedFor) {
  const Step step{.log = "abc"};
  const Ledger ledger{.outbox = {action(1)}};
  const auto found = stories([&](StepRecording& recording) {
    recording.stepped(recording.by_beginning(), ended(&step), ledger);
    recording.action_begins(action(1), "ab");
    ask(recording, recorder::Verb::Patch);
    recording.action_ended(action(1));
  });

  ASSERT_THAT(found, SizeIs(1));
  const Story& story = found[0];
  EXPECT_EQ(story.contract, recorder::Contract::Workflow);
  EXPECT_EQ(story.namespace_, "shop");
  EXPECT_EQ(story.name, "statefulworkflows.workflows.example.com/order");
  EXPECT_EQ(story.user, kAccount);
  EXPECT_EQ(story.module, "ab");
  EXPECT_EQ(story.cpu, std::chrono::milliseconds(2));
  EXPECT_EQ(story.memory_bytes, 65536U);
  EXPECT_EQ(story.printed_bytes, 3U);
  ASSERT_THAT(story.causes, SizeIs(1));
  EXPECT_EQ(story.causes[0].what, Waking::Cause::Added);
  EXPECT_EQ(story.causes[0].object.kind, "StatefulWorkflow");
  EXPECT_EQ(story.causes[0].object.version, 7U);
  ASSERT_THAT(story.requests, SizeIs(1));
  EXPECT_EQ(story.requests[0].bytes, 30U);
  EXPECT_EQ(story.requests[0].status, 201U);
  EXPECT_EQ(story.requests[0].answer_bytes, 40U);
  EXPECT_EQ(story.requests[0].object.version, 9U);
  EXPECT_TRUE(story.requests[0].may_have_changed());
}

TEST(StepRecording, AnActionThatHasEndedIsTheAnswerToItsRequest) {
  const Step step;
  const auto found = stories([&](StepRecording& recording) {
    recording.stepped(recording.by_beginning(), ended(&step), {.outbox = {action(1)}});
    recording.action_begins(action(1), "ab");
    ask(recording, recorder::Verb::Patch);
    recording.action_ended(action(1));
    const QueuedEvent done =
        event(Origin::Action, R"({"type":"MADE","action":"APPLY","actionId":1})");
    recording.stepped(recording.by_event(done, {}), ended(&step, 2), {});
  });

  ASSERT_THAT(found, SizeIs(2));
  ASSERT_THAT(found[0].causes, SizeIs(1));
  EXPECT_EQ(found[0].causes[0].what, Waking::Cause::Answer);
  EXPECT_EQ(found[0].causes[0].event, "action MADE of APPLY#1");
  ASSERT_THAT(found[1].requests, SizeIs(1));
  EXPECT_EQ(found[0].causes[0].id, found[1].requests[0].id);
}

// An earlier reconcile has requested the action.
TEST(StepRecording, AnActionThatGoesOnIsATurnThatLeadsToWhoAskedForIt) {
  const Step step;
  const auto found = recorder::stories_of([&](recorder::Recorder& recorder) {
    reconcile::GuestRecorder workflows(&recorder, recorder::Contract::Workflow);
    StepRecording(workflows, workflow(), "").stepped({}, ended(&step, 3), {.outbox = {action(3)}});
    StepRecording recording(workflows, workflow(), "");
    recording.action_begins(action(3), "ab");
    ask(recording, recorder::Verb::Get);
    recording.action_ended(action(3));
    recording.action_begins(action(3), "ab");
    ask(recording, recorder::Verb::Patch);
  });

  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[1].timers, ElementsAre(3U));
  ASSERT_THAT(found[0].causes, SizeIs(1));
  EXPECT_EQ(found[0].causes[0].what, Waking::Cause::Timer);
  EXPECT_EQ(found[0].causes[0].id, 3U);
  EXPECT_EQ(found[0].causes[0].event, "APPLY#3 continues");
  EXPECT_THAT(found[0].requests, SizeIs(2));
}

TEST(StepRecording, EventsSayWhatBroughtThem) {
  const Ledger ledger{.resources = {{.api_version = "apps/v1",
                                     .kind = "Deployment",
                                     .namespace_ = "shop",
                                     .name = "web",
                                     .seen = "41"}}};
  const auto told = [&ledger](const QueuedEvent& queued) {
    const Step step;
    const auto found = stories([&](StepRecording& recording) {
      recording.stepped(recording.by_event(queued, ledger), ended(&step), ledger);
    });
    return found.at(0).causes.at(0);
  };

  const recorder::Cause signal = told(event(Origin::Signal, R"({"type":"GO"})", 12));
  EXPECT_EQ(signal.what, Waking::Cause::Modified);
  EXPECT_EQ(signal.event, "signal GO");
  EXPECT_EQ(signal.object.name, "order");
  EXPECT_EQ(signal.object.version, 12U);
  EXPECT_EQ(told(event(Origin::Signal, R"({"type":"GO"})")).what, Waking::Cause::Event);

  const recorder::Cause change =
      told(event(Origin::Change, R"({"type":"K8S_RESOURCE_CHANGED","resourceName":"web",
                                      "apiVersion":"apps/v1","kind":"Deployment"})"));
  EXPECT_EQ(change.what, Waking::Cause::Modified);
  EXPECT_EQ(change.object, (recorder::ObjectVersion{.group = "apps",
                                                    .kind = "Deployment",
                                                    .namespace_ = "shop",
                                                    .name = "web",
                                                    .version = 41}));

  const recorder::Cause timer =
      told(event(Origin::Timer, R"({"type":"LATE"})", number_of_timer("late")));
  EXPECT_EQ(timer.what, Waking::Cause::Timer);
  EXPECT_EQ(timer.id, number_of_timer("late"));
  EXPECT_EQ(told(event(Origin::Timeout, R"({"type":"TIMEOUT"})")).event, "timeout TIMEOUT");
  // An action of a host that is gone: its request is not known.
  const recorder::Cause action =
      told(event(Origin::Action, R"({"type":"MADE","action":"APPLY","actionId":5})"));
  EXPECT_EQ(action.what, Waking::Cause::Timer);
  EXPECT_EQ(action.id, 5U);
}

TEST(StepRecording, ADelayAndTheBeginningLeadToTheTurnThatSetThem) {
  const Step step{.timers_started = {{.id = "late", .delay = std::chrono::seconds(9)}}};
  const auto found = stories([&](StepRecording& recording) {
    recording.stepped(recording.by_beginning(), ended(&step), {});
    recording.stepped(recording.by_event(event(Origin::Host, R"({"type":"PROVISION"})"), {}),
                      ended(&step), {});
  });

  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].causes.at(0).event, "host PROVISION");
  EXPECT_THAT(found[1].timers, ElementsAre(found[0].causes[0].id, number_of_timer("late")));
}

TEST(StepRecording, AStepThatFailsIsATurnThatFailedWithItsCost) {
  const auto found = stories([](StepRecording& recording) {
    recording.stepped(StepRecording::by_question(), ended(nullptr), {});
  });

  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].outcome, recorder::Turn::Outcome::Failed);
  EXPECT_EQ(found[0].cpu, std::chrono::milliseconds(2));
}

TEST(StepRecording, AStatusIsATurnOfItsOwnWhereThereIsNone) {
  const Step step;
  const auto found = stories([](StepRecording& recording) {
    recording.status_begins("ab");
    ask(recording, recorder::Verb::Patch);
    recording.status_begins("ab");
    ask(recording, recorder::Verb::Patch);
  });

  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].causes.at(0).what, Waking::Cause::Modified);
  EXPECT_EQ(found[0].causes[0].object.version, 7U);
  EXPECT_THAT(found[0].requests, SizeIs(2));
}

TEST(StepRecording, BoundsWhatATurnSets) {
  const Step step;
  Ledger ledger;
  for (std::int64_t id = 1; id <= 20; ++id)
    ledger.outbox.push_back(action(id));
  const auto found =
      stories([&](StepRecording& recording) { recording.stepped({}, ended(&step), ledger); });

  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].timers, SizeIs(16));
}

TEST(StepRecording, TellsNothingWithoutARecorder) {
  reconcile::GuestRecorder none(nullptr, recorder::Contract::Workflow);
  StepRecording recording(none, workflow(), "");
  const Step step;
  recording.stepped(recording.by_beginning(), ended(&step), {.outbox = {action(1)}});
  recording.action_begins(action(1), "ab");
  recording.status_begins("ab");
  ask(recording, recorder::Verb::Patch);
}

}  // namespace
}  // namespace hangar::workflows
