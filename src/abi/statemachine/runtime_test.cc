#include "abi/statemachine/runtime.h"

#include "abi/statemachine/delays.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/file.h"
#include "json/value.h"
#include "wasm/limits.h"
#include "wasm/plugin.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

testing::Matcher<const Action&> is_action(const std::string& type,
                                          const std::string& params = "{}") {
  return AllOf(Field("type", &Action::type, type), Field("params", &Action::params, params));
}

testing::Matcher<const Timer&> is_timer(const std::string& id, Duration delay,
                                        const std::string& event) {
  return AllOf(Field("id", &Timer::id, id), Field("delay", &Timer::delay, delay),
               Field("event", &Timer::event, event));
}

class MachineTest : public testing::Test {
 public:
  // One rig for all tests: QuickJS is compiled once.
  static void SetUpTestSuite() {
    rig = std::make_unique<wasm::GuestRig>();
    directory = std::make_unique<wasm::TemporaryDirectory>();
    runtime = std::make_unique<Runtime>(rig->cache(), directory->path() / "images");
  }
  static void TearDownTestSuite() {
    runtime.reset();
    directory.reset();
    rig.reset();
  }

  static Result<std::shared_ptr<Machine>> try_load(std::string bytes, MachineLimits limits = {}) {
    return rig->await(
        runtime->load(std::make_shared<const std::string>(std::move(bytes)), limits, {}));
  }
  static std::shared_ptr<Machine> load(std::string bytes, MachineLimits limits = {}) {
    auto machine = try_load(std::move(bytes), limits);
    EXPECT_TRUE(machine.has_value()) << machine.error().message();
    return machine ? *std::move(machine) : nullptr;
  }
  // A file that examples/build.sh has built from tests/guests/machines and examples.
  static std::string built(const std::string& file) {
    auto bytes =
        io::read_file(std::filesystem::path(HANGAR_MACHINES_DIR) / file, limits::kModuleBytesMax);
    EXPECT_TRUE(bytes.has_value()) << file;
    return bytes ? *std::move(bytes) : std::string();
  }
  static std::string guest(const std::string& name) { return *wasm::GuestRig::bytes_of(name); }
  static std::string carrying(const std::string& module, const std::string& plugin) {
    const std::string module_bytes = guest(module);
    const std::string plugin_bytes = guest(plugin);
    const auto both = wasm::carry_plugin(std::as_bytes(std::span(module_bytes)),
                                         std::as_bytes(std::span(plugin_bytes)));
    return both ? *both : both.error().message();
  }

  static Result<Step> try_start(Machine& machine, std::string input = "{}") {
    return rig->await(machine.start(std::move(input), {}));
  }
  static Result<Step> try_step(Machine& machine, const Step& before, std::string event) {
    return rig->await(machine.step(before.state, std::move(event), {}));
  }
  static Step value_of(Result<Step> step) {
    EXPECT_TRUE(step.has_value()) << step.error().message();
    return step ? *std::move(step) : Step{};
  }
  static Step start(Machine& machine, std::string input = "{}") {
    return value_of(try_start(machine, std::move(input)));
  }
  static Step step(Machine& machine, const Step& before, std::string event) {
    return value_of(try_step(machine, before, std::move(event)));
  }
  // Sends an event that has only a type.
  static Step send(Machine& machine, const Step& before, const std::string& type) {
    return step(machine, before, R"({"type":")" + type + R"("})");
  }

  template <class T>
  static void expect_error(const Result<T>& result, ErrorKind kind, const std::string& text) {
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(name_of(result.error().kind()), name_of(kind));
    EXPECT_THAT(result.error().message(), HasSubstr(text));
  }
  static void expect_load_error(std::string bytes, ErrorKind kind, const std::string& text,
                                MachineLimits limits = {}) {
    SCOPED_TRACE(text);
    expect_error(try_load(std::move(bytes), limits), kind, text);
  }
  // Expects the error of an answer to an event.
  static void expect_step_error(std::string bytes, ErrorKind kind, const std::string& text,
                                MachineLimits limits = {}) {
    SCOPED_TRACE(text);
    const auto machine = load(std::move(bytes), limits);
    ASSERT_NE(machine, nullptr);
    expect_error(try_step(*machine, {.state = "{}"}, R"({"type":"GO"})"), kind, text);
  }

  inline static std::unique_ptr<wasm::GuestRig> rig;
  inline static std::unique_ptr<wasm::TemporaryDirectory> directory;
  inline static std::unique_ptr<Runtime> runtime;
};

// The unchanged published example, in all its shapes.
class ProvisionerTest : public MachineTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ProvisionerTest,
                         testing::Values("database_provisioner.js", "provisioner_handle_event.wasm",
                                         "provisioner_command.wasm"));

TEST_P(ProvisionerTest, GoesFromIdleToReady) {
  const auto machine = load(built(GetParam()));
  ASSERT_NE(machine, nullptr);

  const Step idle = start(*machine, R"({"owner":"anna"})");
  EXPECT_EQ(idle.value, R"("idle")");
  EXPECT_THAT(idle.actions, IsEmpty());
  EXPECT_THAT(idle.state, HasSubstr(R"("owner":"anna")"));

  const Step volume = send(*machine, idle, "PROVISION");
  EXPECT_EQ(volume.value, R"("creatingPvc")");
  EXPECT_THAT(volume.actions, ElementsAre(is_action("CREATE_PVC", R"({"size":"1Gi"})")));

  const Step deployment =
      step(*machine, volume, R"({"type":"K8S_RESOURCE_CREATED","resourceName":"data"})");
  EXPECT_THAT(deployment.actions,
              ElementsAre(is_action("CREATE_DEPLOYMENT", R"({"imageName":"postgres:13"})")));

  const Step health =
      step(*machine, deployment, R"({"type":"K8S_RESOURCE_CREATED","resourceName":"db"})");
  EXPECT_THAT(health.actions,
              ElementsAre(is_action("RUN_HEALTH_CHECK", R"({"deploymentName":"db"})")));
  EXPECT_FALSE(health.is_final);

  const Step ready = send(*machine, health, "HEALTH_CHECK_PASSED");
  EXPECT_EQ(ready.value, R"("ready")");
  EXPECT_THAT(ready.actions, IsEmpty());
  EXPECT_TRUE(ready.is_final);
}

TEST_P(ProvisionerTest, IgnoresWhatItsStateDoesNotKnow) {
  const auto machine = load(built(GetParam()));
  ASSERT_NE(machine, nullptr);
  const Step volume = send(*machine, start(*machine), "PROVISION");

  const Step same = send(*machine, volume, "PROVISION");

  EXPECT_FALSE(same.is_handled);
  EXPECT_THAT(same.actions, IsEmpty()) << "an action is asked for once";
  EXPECT_EQ(same.state, volume.state);
  const Step failed = step(*machine, volume, R"({"type":"FAILURE","message":"no \"quota\""})");
  EXPECT_THAT(failed.actions, ElementsAre(is_action("DELETE_RESOURCES")));
  EXPECT_TRUE(failed.is_final);
  EXPECT_FALSE(send(*machine, failed, "PROVISION").is_handled);
}

// The same machine as users of either major version write it.
class EverythingTest : public MachineTest, public testing::WithParamInterface<bool> {
 public:
  static bool is_4() { return GetParam(); }
  static std::shared_ptr<Machine> load_it() {
    return load(built(is_4() ? "everything_v4.js" : "everything_v5.js"));
  }
  static std::string timeout() {
    return is_4() ? "xstate.after(60000)#everything.working"
                  : "xstate.after.long.everything.working";
  }
};
INSTANTIATE_TEST_SUITE_P(XState4, EverythingTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(XState5, EverythingTest, testing::Values(false));

TEST_P(EverythingTest, AsksForTheActionsOfStatesThatAreEntered) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const auto greeting =
      ElementsAre(is_action("GREET"), is_action("ANNOUNCE", R"({"from":"entry"})"));

  const Step idle = start(*machine);
  EXPECT_THAT(idle.actions, greeting);
  EXPECT_THAT(send(*machine, idle, "LOOP").actions, greeting) << "entered again";
  const Step noted = step(*machine, idle, R"({"type":"NOTE","text":"hi"})");
  EXPECT_TRUE(noted.is_handled);
  EXPECT_THAT(noted.actions, IsEmpty()) << "not entered";
  EXPECT_THAT(noted.state, HasSubstr(R"("log":["hi"])"));
}

TEST_P(EverythingTest, KeepsRegionsApart) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);

  const Step working = send(*machine, start(*machine, R"({"name":"n1"})"), "START");
  EXPECT_EQ(working.value, R"({"working":{"disk":"making","net":"making"}})");
  EXPECT_THAT(working.actions,
              ElementsAre(is_action("WORK"), is_action("MAKE_DISK", R"({"name":"n1"})"),
                          is_action("MAKE_NET")));
  const Step disk = send(*machine, working, "DISK");
  EXPECT_EQ(disk.value, R"({"working":{"disk":"made","net":"making"}})");
  EXPECT_THAT(disk.actions, IsEmpty());
  const Step done = send(*machine, disk, "NET");
  EXPECT_EQ(done.value, R"("done")");
  EXPECT_THAT(done.actions, ElementsAre(is_action("CELEBRATE")));
  EXPECT_TRUE(done.is_final);
  EXPECT_EQ(done.output, R"({"name":"n1"})");
  EXPECT_FALSE(step(*machine, done, R"({"type":"NOTE","text":"late"})").is_handled);
}

TEST_P(EverythingTest, TurnsDelaysIntoTimers) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const std::string event = R"({"type":")" + timeout() + R"("})";

  const Step working = send(*machine, start(*machine), "START");
  EXPECT_THAT(working.timers_started,
              ElementsAre(is_timer(timeout(), milliseconds(60'000), event)));
  const Step paused = send(*machine, working, "PAUSE");
  EXPECT_THAT(paused.timers_cancelled, ElementsAre(timeout()));
  EXPECT_THAT(paused.timers_started, ElementsAre(is_timer("reminder", milliseconds(5'000),
                                                          R"({"type":"REMIND","at":"once"})")));
  const Step reminded = step(*machine, paused, paused.timers_started.at(0).event);
  EXPECT_THAT(reminded.state, HasSubstr("reminded"));
  EXPECT_THAT(reminded.timers_cancelled, IsEmpty());
  const Step resumed = send(*machine, reminded, "RESUME");
  EXPECT_THAT(resumed.timers_cancelled, ElementsAre("reminder"));
  EXPECT_THAT(resumed.timers_started,
              ElementsAre(is_timer(timeout(), milliseconds(60'000), event)));
  EXPECT_EQ(step(*machine, resumed, event).value, R"("failed")");
}

TEST_P(EverythingTest, TellsTheDelaysOfWhereItIs) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step idle = start(*machine);
  const Step working = send(*machine, idle, "START");
  const Result<std::string> definition = rig->await(machine->definition({}));
  ASSERT_TRUE(definition) << definition.error().message();

  EXPECT_THAT(delays_of(*definition, idle.value).value(), IsEmpty());
  const std::optional<Duration> duration =
      is_4() ? std::optional<Duration>(milliseconds(60'000)) : std::nullopt;
  EXPECT_THAT(delays_of(*definition, working.value).value(),
              ElementsAre(Delay{.event = timeout(), .duration = duration}))
      << "as entering it has started them";
}

TEST_P(EverythingTest, TakesTransitionsWithoutEventsAtOnce) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(send(*machine, start(*machine, R"({"name":"short"})"), "SKIP").value, R"("done")");
  EXPECT_EQ(send(*machine, start(*machine), "SKIP").value, R"("failed")");
}

TEST_P(EverythingTest, SaysWhatItsCodeThrows) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  expect_error(try_step(*machine, start(*machine), R"({"type":"THROW"})"), ErrorKind::GuestFault,
               "no luck");
}

TEST_P(EverythingTest, RefusesStatesThatAreNotItsOwn) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const auto expect_refusal = [&](std::string state, const std::string& text) {
    expect_error(try_step(*machine, {.state = std::move(state)}, R"({"type":"START"})"),
                 ErrorKind::InvalidInput, text);
  };
  expect_refusal("nonsense", "the state is not JSON");
  expect_refusal("[]", "not one of an XState machine");
  expect_refusal("{}", "has no value");
  expect_refusal(R"({"value":7,"context":{}})", "neither a text nor an object");
  expect_refusal(R"({"value":"gone","context":{}})",
                 "the machine everything has no state gone; it has idle, working");
  expect_refusal(R"({"value":{"working":{"disk":"gone","net":"making"}},"context":{}})",
                 "no state working.disk.gone");
}

TEST_P(EverythingTest, CanBeDrawn) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Result<std::string> text = rig->await(machine->definition({}));
  ASSERT_TRUE(text.has_value()) << text.error().message();
  const json::Value definition = json::parse(*text).value();
  EXPECT_EQ(json::string_at(definition, {"id"}), "everything");
  EXPECT_EQ(json::string_at(definition, {"initial"}), "idle");
  EXPECT_EQ(json::string_at(definition, {"states", "working", "type"}), "parallel");
  EXPECT_EQ(json::dump(*json::find(definition, {"states", "idle", "on", "START"})),
            R"([{"target":["#everything.working"]}])");
  EXPECT_EQ(json::dump(
                *json::find(definition, {"states", "working", "after", is_4() ? "60000" : "long"})),
            R"([{"target":["#everything.failed"],"event":")" + timeout() + R"("}])");
  EXPECT_EQ(json::dump(*json::find(definition, {"states", "resumed", "always"})),
            R"([{"target":["#everything.working"]}])");
}

TEST_P(EverythingTest, ComesBackToWhereItWas) {
  const auto machine = load(built(is_4() ? "history_v4.js" : "history_v5.js"));
  ASSERT_NE(machine, nullptr);
  const Step two = send(*machine, start(*machine), "TURN");
  const Step closed = send(*machine, two, "CLOSE");
  EXPECT_EQ(closed.value, R"("closed")");
  const Step open = send(*machine, closed, "OPEN");
  EXPECT_EQ(open.value, R"({"book":"two"})");
  EXPECT_THAT(open.actions, ElementsAre(is_action("READ_TWO")));
}

TEST_P(EverythingTest, RefusesInputThatIsNoObject) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  expect_error(try_start(*machine, "nonsense"), ErrorKind::InvalidInput, "the input is not JSON");
  if (is_4())
    expect_error(try_start(*machine, "[1]"), ErrorKind::InvalidInput, "the input is not an object");
}

// --- Machines that a machine invokes and spawns ---

testing::Matcher<const Actor&> is_actor(const std::string& id, const std::string& value) {
  return AllOf(Field("id", &Actor::id, id), Field("value", &Actor::value, value),
               Field("status", &Actor::status, ""));
}

// The same family of machines as users of either major version write it.
class FamilyTest : public MachineTest, public testing::WithParamInterface<const char*> {
 public:
  static bool is_4() { return std::string_view(GetParam()).contains("_v4"); }
  static std::string name_of(const std::string& machine) {
    return machine + (is_4() ? "_v4.js" : "_v5.js");
  }
  static std::shared_ptr<Machine> load_it() { return load(built(GetParam())); }

  // The state in which its worker has requested a ConfigMap.
  static Step making(Machine& machine) {
    return send(machine, start(machine, R"({"name":"n1","rest":3000})"), "PROVISION");
  }
  // The state in which its worker has the ConfigMap, and rests.
  static Step resting(Machine& machine, const std::string& worker = "worker#1") {
    return step(machine, making(machine), made(worker));
  }
  // The state in which its worker is done, and its watcher exists.
  static Step watching(Machine& machine) {
    const Step before = resting(machine);
    return step(machine, before, before.timers_started.at(0).event);
  }
  static std::string made(const std::string& actor) {
    return R"({"type":"K8S_RESOURCE_CREATED","resourceName":"n1","hangar.actor":")" + actor +
           R"("})";
  }
  static std::string delay() {
    return is_4() ? "xstate.after(rest)#disk.resting" : "xstate.after.rest.disk.resting";
  }
  static std::string tick() {
    return is_4() ? "xstate.after(600000)#clock.on" : "xstate.after.600000.clock.on";
  }
  static std::string event_for(const std::string& actor, const std::string& type) {
    return R"({"type":")" + type + R"(","hangar.actor":")" + actor + R"("})";
  }
  static std::string watcher_value() { return is_4() ? R"("on")" : "{}"; }
};
INSTANTIATE_TEST_SUITE_P(Bundles, FamilyTest,
                         testing::Values("family_v4.js", "family_v5.js", "family_entry_v4.js"));

TEST_P(FamilyTest, AnInvokedMachineAsksForItsOwnActionsAndGetsTheirEvents) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);

  const Step making = FamilyTest::making(*machine);
  EXPECT_EQ(making.value, R"("making")");
  ASSERT_EQ(making.actions.size(), 1U);
  EXPECT_EQ(making.actions[0].type, "APPLY");
  EXPECT_THAT(making.actions[0].params, HasSubstr(R"("name":"n1")")) << "its input";
  EXPECT_EQ(making.actions[0].actor, "worker#1");
  EXPECT_THAT(making.actors, ElementsAre(is_actor("worker#1", R"("making")")));

  EXPECT_FALSE(send(*machine, making, "K8S_RESOURCE_CREATED").is_handled) << "it was not asked";
  const Step resting = step(*machine, making, made("worker#1"));
  EXPECT_TRUE(resting.is_handled);
  EXPECT_EQ(resting.value, R"("making")");
  EXPECT_THAT(resting.actors, ElementsAre(is_actor("worker#1", R"("resting")")));
}

TEST_P(FamilyTest, ADelayOfAnActorIsTheHostsAndComesToThatActor) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step resting = FamilyTest::resting(*machine);

  ASSERT_THAT(resting.timers_started,
              ElementsAre(is_timer("worker#1:" + delay(), milliseconds(3000),
                                   event_for("worker#1", delay()))));
  EXPECT_FALSE(send(*machine, resting, delay()).is_handled) << "the machine itself has none";

  const Step done = step(*machine, resting, resting.timers_started[0].event);
  EXPECT_EQ(done.value, R"("watching")") << "onDone, in the same step";
  EXPECT_THAT(done.state, HasSubstr(R"("made":"n1")")) << "with its output";
  EXPECT_THAT(done.actors_stopped, ElementsAre("worker#1"));
}

TEST_P(FamilyTest, WhatAnActorThrowsIsAnErrorOfTheOneAbove) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step resting = FamilyTest::resting(*machine);

  const Step broken = send(*machine, resting, "FAIL");

  EXPECT_EQ(broken.value, R"("broken")");
  EXPECT_THAT(broken.state, HasSubstr(R"("why":"bad disk")"));
  EXPECT_THAT(broken.actors, IsEmpty());
  EXPECT_THAT(broken.actors_stopped, ElementsAre("worker#1"));
}

TEST_P(FamilyTest, ActorsAnswerWithinTheStep) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);

  const Step told = send(*machine, resting(*machine), "PING");

  EXPECT_THAT(told.state, HasSubstr(R"("seen":["pong"])"));
  EXPECT_THAT(told.timers_started, IsEmpty());
}

TEST_P(FamilyTest, AnActorIsStoppedWithTheStateThatInvokesIt) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step resting = FamilyTest::resting(*machine);

  const Step idle = send(*machine, resting, "GIVE_UP");
  EXPECT_EQ(idle.value, R"("idle")");
  EXPECT_THAT(idle.actors, IsEmpty());
  EXPECT_THAT(idle.actors_stopped, ElementsAre("worker#1"));

  const Step again = send(*machine, idle, "AGAIN");
  ASSERT_THAT(again.actors, ElementsAre(is_actor("worker#2", R"("making")")))
      << "another one with the same id";
  EXPECT_FALSE(step(*machine, again, made("worker#1")).is_handled)
      << "what the first one asked for is not for the second";
  EXPECT_FALSE(step(*machine, again, resting.timers_started.at(0).event).is_handled);
}

TEST_P(FamilyTest, AFailureOfAnActorThatIsGoneComesToTheOneAbove) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step idle = send(*machine, resting(*machine), "GIVE_UP");
  const Step again = send(*machine, idle, "AGAIN");

  const Step failed =
      step(*machine, again,
           R"({"type":"GIVE_UP","actionId":1,"reason":"Denied","hangar.actor":"worker#1"})");

  EXPECT_EQ(failed.value, R"("idle")") << "here under a name that it knows";
  const Step unknown =
      step(*machine, again,
           R"({"type":"FAILURE","actionId":1,"reason":"Denied","hangar.actor":"worker#1"})");
  EXPECT_FALSE(unknown.is_handled);
}

TEST_P(FamilyTest, SpawnedMachinesAreSentToAndStopped) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);

  const Step watching = FamilyTest::watching(*machine);
  EXPECT_THAT(watching.actors, ElementsAre(is_actor("watcher#2", watcher_value()),
                                           is_actor("watcher/clock#3", R"("on")")));
  const Step twice = send(*machine, send(*machine, watching, "ADD"), "ADD");
  EXPECT_THAT(twice.state, HasSubstr(R"("seen":["counted 1","counted 2"])"));
  const Step stopped = send(*machine, twice, "STOP");
  EXPECT_THAT(stopped.actors, IsEmpty());
  EXPECT_THAT(stopped.actors_stopped, ElementsAre("watcher#2", "watcher/clock#3"));
}

TEST_P(FamilyTest, ADelayedEventToAnActorIsAddressed) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);

  const Step later = send(*machine, watching(*machine), "LATER");

  ASSERT_THAT(later.timers_started,
              ElementsAre(is_timer("later", milliseconds(5000), event_for("watcher#2", "ADD"))));
  const Step added = step(*machine, later, later.timers_started[0].event);
  EXPECT_THAT(added.state, HasSubstr(R"("seen":["counted 1"])"));
}

TEST_P(FamilyTest, ActorsOfActorsHaveDelaysToo) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step watching = FamilyTest::watching(*machine);
  const auto timer = is_timer("watcher/clock#3:" + tick(), milliseconds(600'000),
                              event_for("watcher/clock#3", tick()));

  EXPECT_THAT(watching.timers_started, ElementsAre(timer));
  const Step ticked = step(*machine, watching, event_for("watcher/clock#3", tick()));
  EXPECT_THAT(ticked.state, HasSubstr(R"("seen":["ticked"])")) << "through two machines";
  EXPECT_THAT(ticked.timers_started, ElementsAre(timer)) << "entered again";
  EXPECT_THAT(ticked.timers_cancelled, ElementsAre("watcher/clock#3:" + tick()));
}

TEST_P(FamilyTest, TheEndOfTheMachineIsTheEndOfItsActors) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);

  const Step done = send(*machine, watching(*machine), "END");

  EXPECT_TRUE(done.is_final);
  EXPECT_EQ(done.output, R"({"made":"n1","seen":[]})");
  EXPECT_THAT(done.actors, IsEmpty());
  EXPECT_THAT(done.actors_stopped, ElementsAre("watcher#2", "watcher/clock#3"));
}

TEST_P(FamilyTest, TellsWhereItsActorsAreAndWhatTheyCanDo) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step resting = FamilyTest::resting(*machine);

  const Result<std::vector<Actor>> actors = rig->await(machine->actors(resting.state, {}));

  ASSERT_TRUE(actors) << actors.error().message();
  ASSERT_THAT(*actors, ElementsAre(is_actor("worker#1", R"("resting")")));
  const auto delays = delays_of(actors->at(0).definition, actors->at(0).value);
  ASSERT_TRUE(delays) << delays.error().message();
  EXPECT_THAT(*delays, ElementsAre(Delay{.event = delay(), .duration = std::nullopt}));
  const Result<std::string> definition = rig->await(machine->definition({}));
  ASSERT_TRUE(definition) << definition.error().message();
  EXPECT_THAT(*definition, HasSubstr(R"("invoke":[{"id":"worker")"));
}

TEST_P(FamilyTest, RefusesStatesWhoseActorsItDoesNotKnow) {
  const auto machine = load_it();
  ASSERT_NE(machine, nullptr);
  const Step resting = FamilyTest::resting(*machine);
  const auto expect_refusal = [&](const std::string& from, const std::string& to,
                                  const std::string& text) {
    SCOPED_TRACE(text);
    std::string state = resting.state;
    const std::size_t at = state.find(from);
    ASSERT_NE(at, std::string::npos) << state;
    state.replace(at, from.size(), to);
    expect_error(try_step(*machine, {.state = state}, R"({"type":"hangar.probe"})"),
                 ErrorKind::InvalidInput, text);
  };

  expect_refusal(R"("value":"resting")", R"("value":"gone")", "the machine disk has no state gone");
  expect_refusal(R"("session":1)", R"("session":"one")", "whose session is missing");
  expect_refusal(R"("session":1)", R"("session":0)", "whose session is missing");
  expect_refusal(is_4() ? R"("src":"worker","session")" : R"("src":"disk")",
                 is_4() ? R"("src":"gone","session")" : R"("src":"gone")",
                 "which the machine family does not have");
  expect_refusal(R"("children":{"worker":{"snapshot":{)", R"("children":{"worker":{"other":{)",
                 "children that are not actors");
}

TEST_P(FamilyTest, RefusesByNameWhatWouldBeLostWithTheProcess) {
  expect_load_error(built(name_of("promise")), ErrorKind::InvalidInput,
                    is_4() ? "the state hopeful.asking invokes fetchQuota, which is a function"
                           : "the state hopeful.asking invokes fetchQuota, which is a promise");
  expect_load_error(built(name_of("promise")), ErrorKind::InvalidInput,
                    "ask the host for an action");
}

TEST_F(MachineTest, AnswersAfterItsKeptInstancesWereFreed) {
  const auto machine = load(built("family_v5.js"));
  const auto before = try_start(*machine);
  ASSERT_TRUE(before.has_value()) << before.error().message();

  EXPECT_GE(runtime->free_kept(), 1U);
  EXPECT_EQ(runtime->free_kept(), 0U);

  const auto after = try_start(*machine);
  ASSERT_TRUE(after.has_value()) << after.error().message();
  EXPECT_EQ(after->state, before->state);
}

TEST_F(MachineTest, RefusesActorsBehindAnEntryPointOfAnotherKind) {
  expect_load_error(built("family_v5.js") + "\nexport function handle_event() { return '{}'; }",
                    ErrorKind::InvalidInput, "export the machine as default");
  expect_load_error(
      built("family_v4.js") +
          "\nexport const handle_event = () => '{}', initial_state = () => '{\"newState\":1}';",
      ErrorKind::InvalidInput, "export the machine as default");
}

TEST_F(MachineTest, KeepsWhatThePublishedEntryPointAddsForAMachineWithActors) {
  std::string code = built("family_entry_v4.js");
  const std::string answer = "JSON.stringify({ newState: newState.toJSON(), actions })";
  ASSERT_NE(code.find(answer), std::string::npos);
  const auto answering = [&](const std::string& with) {
    std::string changed = code;
    return load(changed.replace(changed.find(answer), answer.size(), with));
  };

  const auto adding = answering(
      "JSON.stringify({newState: newState.toJSON(), actions: [...actions, {type: 'EMIT'}]})");
  ASSERT_NE(adding, nullptr);
  const Step added = send(*adding, start(*adding), "PROVISION");
  ASSERT_EQ(added.actions.size(), 2U);
  EXPECT_EQ(added.actions[0].actor, "worker#1");
  EXPECT_THAT(added.actions[1], is_action("EMIT"));

  const auto changing =
      answering("JSON.stringify({newState: {...newState.toJSON(), value: 'idle'}, actions})");
  ASSERT_NE(changing, nullptr);
  expect_error(try_step(*changing, start(*changing), R"({"type":"PROVISION"})"),
               ErrorKind::InvalidInput, "export the machine as default");
}

TEST_F(MachineTest, AnyShapeMayHaveActorsOfItsOwn) {
  const auto machine = load(R"(export const handle_event = () => JSON.stringify({newState: 1,
      actions: [{type: 'A', actor: 'w#1'}, 'B'],
      actors: [{actor: 'w#1', value: {a: 'b'}}, {actor: 'v/w#2', status: 'done'}], actorsStopped: ['u#0'],
      timersStarted: [{id: 't', delay: 5, event: {type: 'T', 'hangar.actor': 'w#1'}, replaces: false}]});)");
  ASSERT_NE(machine, nullptr);

  const Step first = start(*machine);

  ASSERT_EQ(first.actions.size(), 2U);
  EXPECT_EQ(first.actions[0].actor, "w#1");
  EXPECT_EQ(first.actions[1].actor, "");
  EXPECT_THAT(
      first.actors,
      ElementsAre(Actor{.id = "w#1", .value = R"({"a":"b"})", .status = "", .definition = ""},
                  Actor{.id = "v/w#2", .value = "null", .status = "done", .definition = ""}));
  EXPECT_THAT(first.actors_stopped, ElementsAre("u#0"));
  ASSERT_EQ(first.timers_started.size(), 1U);
  EXPECT_FALSE(first.timers_started[0].replaces);
  for (const char* const answer :
       {R"({"newState":1,"actors":[{}]})", R"({"newState":1,"actors":["w"]})",
        R"({"newState":1,"actors":[{"actor":"\u001b[2J"}]})",
        R"({"newState":1,"actorsStopped":["a b"]})",
        R"({"newState":1,"actions":[{"type":"A","actor":7}]})"}) {
    expect_step_error(
        "export const handle_event = () => " + json::dump(json::Value(std::string_view(answer))),
        ErrorKind::InvalidInput, "actor");
  }
}

TEST_F(MachineTest, ActorsThatNeverComeToRestEndTheStep) {
  // A logic of version 5 that answers every event.
  std::string code = built("family_v5.js");
  const std::string pong = R"(sendParent({ type: "PONG" }))";
  ASSERT_NE(code.find(pong), std::string::npos);
  code.replace(code.find(pong), pong.size(), R"(sendParent({ type: "PING" }))");
  const auto machine = load(code);
  ASSERT_NE(machine, nullptr);
  const Step making = send(*machine, start(*machine), "PROVISION");
  const Step resting =
      step(*machine, making,
           R"({"type":"K8S_RESOURCE_CREATED","resourceName":"n","hangar.actor":"worker#1"})");

  expect_error(try_step(*machine, resting, R"({"type":"PING"})"), ErrorKind::LimitExceeded,
               "sent more than 10000 events");
}

// --- Bundles ---

constexpr std::string_view kCounter = R"(
  globalThis.handle_event = (state, event) => {
    const before = JSON.parse(state) ?? {count: 0};
    return JSON.stringify({newState: {count: before.count + 1}, actions: [{type: 'COUNT', params: {to: before.count + 1}}]});
  };
)";

// A bundle whose entry point has `body`.
std::string entry(const std::string& body) {
  return "export function handle_event(state, event) { " + body + " }";
}

TEST_F(MachineTest, TakesAnyCodeWithTheEntryPoint) {
  const auto machine = load(std::string(kCounter));
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(machine->shape(), Shape::Bundle);
  const Step one = start(*machine);
  EXPECT_EQ(one.state, R"({"count":1})");
  const Step two = send(*machine, one, "GO");
  EXPECT_EQ(two.state, R"({"count":2})");
  EXPECT_THAT(two.actions, ElementsAre(is_action("COUNT", R"({"to":2})")));
  expect_error(rig->await(machine->definition({})), ErrorKind::NotFound, "no XState machine");
}

TEST_F(MachineTest, RemembersNothingBetweenCalls) {
  const auto machine =
      load("let calls = 0; " + entry("return JSON.stringify({newState: ++calls})").substr(7) +
           "globalThis.handle_event = handle_event;");
  ASSERT_NE(machine, nullptr);
  for (int time = 0; time < 3; ++time)
    EXPECT_EQ(send(*machine, {.state = "{}"}, "GO").state, "1");
}

TEST_F(MachineTest, ABundleFindsNothingThatItKeptInAnEarlierStep) {
  const auto machine = load(R"(
    const hidden = {in: 'closure'};
    class Keeper { static #secret; static keep(v) { const was = Keeper.#secret; Keeper.#secret = v; return was; } }
    const weak = new WeakMap();
    export function handle_event(state, event) {
      const found = [hidden.secret, globalThis.secret, Object.prototype.secret, JSON.secret, Keeper.keep('s'),
                     weak.get(hidden), handle_event.secret, Symbol.for('kept').secret, new Date(0).getTime.secret];
      hidden.secret = globalThis.secret = Object.prototype.secret = JSON.secret = handle_event.secret = 's';
      weak.set(hidden, 's');
      Date.prototype.getTime.secret = 's';
      Symbol.prototype.secret = 's';
      for (const key of ['parse', 'stringify']) {
        const own = JSON[key];
        JSON[key] = (...args) => typeof args[0] === 'object' ? '{"newState":"forged"}' : own(...args);
      }
      Array.prototype.map = () => ['forged'];
      return '{"newState":' + (found.every((one) => one === undefined) ? '"clean"' : '"dirty"') + '}';
    }
  )");
  ASSERT_NE(machine, nullptr);
  for (int time = 0; time < 3; ++time)
    EXPECT_EQ(send(*machine, {.state = "{}"}, "GO").state, R"("clean")");
}

TEST_F(MachineTest, AStepThatTakesMuchMemoryLeavesTheNextAsItWas) {
  const auto machine =
      load("let kept = []; " +
           entry("const found = kept.length; if (JSON.parse(event).type === 'BIG') kept.push(new "
                 "Array(1000000).fill(1)); return JSON.stringify({newState: found})"));
  ASSERT_NE(machine, nullptr);
  for (const char* const type : {"GO", "BIG", "GO", "BIG", "BIG", "GO"})
    EXPECT_EQ(send(*machine, {.state = "{}"}, type).state, "0");
}

TEST_F(MachineTest, TakesBundlesInAllFormats) {
  for (const char* const text : {
           "export const handle_event = () => '{\"newState\":1}';",
           "export default {}; export const handleEvent = () => '{\"newState\":1}';",
           "const f = () => '{\"newState\":1}'\nexport{f as handle_event};\n//# export",
           "function handle_event() { return '{\"newState\":1}'; } // export handle_event",
           "var handle_event = () => '{\"newState\":1}', exports_ = `\nno export`;",
           "module.exports = {handle_event: () => '{\"newState\":1}'};",
           "exports.handle_event = () => '{\"newState\":1}';",
           "var library = (() => ({handle_event: () => '{\"newState\":1}'}))();",
           "function handle_event() { return '{\"newState\":1}'; }",
           "await Promise.resolve(); export const handle_event = () => '{\"newState\":1}';",
       }) {
    SCOPED_TRACE(text);
    const auto machine = load(text);
    ASSERT_NE(machine, nullptr);
    EXPECT_EQ(start(*machine).state, "1");
  }
}

TEST_F(MachineTest, KeepsWhatIsPrintedOutOfTheAnswer) {
  const auto machine = load("console.log('loading'); " +
                            entry("console.warn('seen', {a: 1}); return '{\"newState\":1}'"));
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(start(*machine).log, "seen {\"a\":1}\n");
}

TEST_F(MachineTest, DrawsOtherNumbersEachTime) {
  const auto machine =
      load(entry("return JSON.stringify({newState: [Math.random(), Date.now()]})"));
  ASSERT_NE(machine, nullptr);
  EXPECT_NE(start(*machine).state, start(*machine).state);
}

TEST_F(MachineTest, SaysWhyABundleIsNoMachine) {
  expect_load_error("", ErrorKind::InvalidInput,
                    "neither a WebAssembly module nor a JavaScript bundle");
  expect_load_error(std::string("text\0text", 9), ErrorKind::InvalidInput, "neither");
  expect_load_error("const a = ;", ErrorKind::InvalidInput, "SyntaxError: ");
  expect_load_error("export const a = 1;", ErrorKind::InvalidInput, "the bundle has no machine");
  expect_load_error("import {createMachine} from 'xstate'; export default createMachine({});",
                    ErrorKind::InvalidInput, "xstate");
  expect_load_error("throw new TypeError('at home')", ErrorKind::GuestFault, "TypeError: at home");
  expect_load_error("export default 1; await Promise.reject(new Error('later'))",
                    ErrorKind::GuestFault, "later");
  expect_load_error("export default 1; await new Promise(() => {})", ErrorKind::GuestFault,
                    "never comes");
  const MachineLimits soon{.cpu_time_max = milliseconds(50)};
  expect_load_error("while (true) {}", ErrorKind::LimitExceeded, "execution timeout", soon);
  expect_load_error("let a = []; while (true) a.push(new Array(100000).fill(0))",
                    ErrorKind::LimitExceeded, "memory", {.memory_bytes_max = 16 * limits::kMiB});
  expect_load_error(std::string(limits::kMachineBundleBytesMax + 1, ' '), ErrorKind::LimitExceeded,
                    "bytes");
}

TEST_F(MachineTest, SaysWhatIsWrongWithAnAnswer) {
  expect_step_error(entry("throw new Error('not today')"), ErrorKind::GuestFault,
                    "Error: not today");
  expect_step_error(entry("throw 'text'"), ErrorKind::GuestFault, "threw text");
  expect_step_error(entry("return undefinedThing"), ErrorKind::GuestFault, "ReferenceError");
  expect_step_error(entry("return 7"), ErrorKind::InvalidInput, "returned number");
  expect_step_error(entry("return 'no JSON'"), ErrorKind::InvalidInput, "not JSON");
  expect_step_error(entry("return '[]'"), ErrorKind::InvalidInput, "no object");
  expect_step_error(entry("return '{}'"), ErrorKind::InvalidInput, "no newState");
  expect_step_error(entry(R"(return '{"error":"sorry"}')"), ErrorKind::InvalidInput,
                    "answered with an error: sorry");
  expect_step_error(entry(R"(return '{"newState":1,"actions":{}}')"), ErrorKind::InvalidInput,
                    "actions are not an array");
  expect_step_error(entry(R"(return '{"newState":1,"actions":[{}]}')"), ErrorKind::InvalidInput,
                    "without a type");
  expect_step_error(entry(R"(return '{"newState":1,"actions":[""]}')"), ErrorKind::InvalidInput,
                    "without a type");
  expect_step_error(entry(R"(return '{"newState":1,"actions":[{"type":"A","params":[]}]}')"),
                    ErrorKind::InvalidInput, "params of action A");
  expect_step_error(
      entry(
          R"(return '{"newState":1,"timersStarted":[{"id":"t","delay":"soon","event":{"type":"T"}}]}')"),
      ErrorKind::InvalidInput, "not a number of milliseconds");
  expect_step_error(entry(R"(return '{"newState":1,"timersStarted":[{"id":"t","delay":1}]}')"),
                    ErrorKind::InvalidInput, "no event");
  expect_step_error(entry("return JSON.stringify({newState: 'x'.repeat(300000)})"),
                    ErrorKind::LimitExceeded, "state has 300002 bytes");
  expect_step_error(entry("return JSON.stringify({newState: 'x'.repeat(2000000)})"),
                    ErrorKind::LimitExceeded, "answer has");
}

TEST_F(MachineTest, EndsMachinesThatGoTooFar) {
  expect_step_error(entry("while (true) {}"), ErrorKind::LimitExceeded, "execution timeout",
                    {.cpu_time_max = milliseconds(50)});
  expect_step_error(entry("let a = []; while (true) a.push(new Array(100000).fill(0))"),
                    ErrorKind::LimitExceeded, "memory", {.memory_bytes_max = 16 * limits::kMiB});
  expect_step_error(entry("const f = () => f() + 1; return f()"), ErrorKind::GuestFault, "");
}

TEST_F(MachineTest, ABadStepHarmsNoOther) {
  const auto machine = load(
      entry("if (JSON.parse(event).type === 'BAD') throw new Error('bad'); Object.prototype.x = 1; "
            "return JSON.stringify({newState: state})"));
  ASSERT_NE(machine, nullptr);
  EXPECT_FALSE(try_step(*machine, {.state = "1"}, R"({"type":"BAD"})").has_value());
  EXPECT_EQ(send(*machine, {.state = "1"}, "GOOD").state, R"("1")");
}

TEST_F(MachineTest, EndsWhenItIsTold) {
  const auto machine = load(entry("while (true) {}"));
  ASSERT_NE(machine, nullptr);
  std::stop_source stop;
  stop.request_stop();
  expect_error(rig->await(machine->step("{}", R"({"type":"GO"})", stop.get_token())),
               ErrorKind::Cancelled, "");
}

// --- Modules ---

TEST_F(MachineTest, TakesAnswersHoweverTheirEndIsMarked) {
  const auto terminated = load(guest("machine_terminated"));
  ASSERT_NE(terminated, nullptr);
  EXPECT_EQ(terminated->shape(), Shape::HandleEvent);
  EXPECT_EQ(start(*terminated, R"({"a":1})").state, R"({"type":"xstate.init","input":{"a":1}})");
  EXPECT_EQ(send(*terminated, {.state = "1"}, "GO").state, R"({"type":"GO"})");

  const auto prefixed = load(guest("machine_prefixed"));
  ASSERT_NE(prefixed, nullptr);
  EXPECT_EQ(start(*prefixed).state, R"("first")");
  EXPECT_EQ(send(*prefixed, {.state = "1"}, "GO").state, R"("after")");

  const auto packed = load(guest("machine_packed"));
  ASSERT_NE(packed, nullptr);
  EXPECT_EQ(send(*packed, {.state = "1"}, "GO").state, "7") << "_initialize was called, once";
}

TEST_F(MachineTest, AModuleFindsNothingThatItKeptInAnEarlierStep) {
  const auto machine = load(guest("machine_remembers"));
  ASSERT_NE(machine, nullptr);
  const auto with_table = load(guest("machine_remembers_in_table"));
  ASSERT_NE(with_table, nullptr);
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(send(*machine, {.state = "1"}, "GO").state, R"("000")");
    EXPECT_EQ(send(*with_table, {.state = "1"}, "GO").state, R"("0")");
  }
}

TEST_F(MachineTest, TakesTheNamedExportOfACommand) {
  const auto machine = load(guest("machine_named"));
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(machine->shape(), Shape::Command);
  EXPECT_EQ(start(*machine).state, R"("named")");
}

// --- Modules with a plugin ---

TEST_F(MachineTest, RunsModulesThatAreLinkedDynamically) {
  for (const auto& [module, state] :
       {std::pair("plugged", R"("started")"), std::pair("plugged_named", R"("named")"),
        std::pair("plugged_v2", R"("second")"), std::pair("plugged_all", R"("all")")}) {
    SCOPED_TRACE(module);
    const auto machine = load(carrying(module, "plugin"));
    ASSERT_NE(machine, nullptr);
    EXPECT_EQ(machine->shape(), Shape::Command);
    EXPECT_EQ(start(*machine).state, state);
    EXPECT_EQ(start(*machine).state, state) << "each step begins anew";
  }
}

TEST_F(MachineTest, TellsWhichModulesLackAPlugin) {
  EXPECT_EQ(missing_plugin(guest("plugged")), "javy-default-plugin-v4");
  EXPECT_EQ(missing_plugin(guest("plugged_all")), "any-plugin");
  EXPECT_EQ(missing_plugin(guest("machine_dynamic_javy")), "javy-default-plugin-v4");
  EXPECT_EQ(missing_plugin(carrying("plugged", "plugin")), std::nullopt);
  EXPECT_EQ(missing_plugin(guest("machine_named")), std::nullopt);
  EXPECT_EQ(missing_plugin(entry("")), std::nullopt);
  EXPECT_EQ(missing_plugin(std::string("\0asm", 4)), std::nullopt);
}

TEST_F(MachineTest, SaysWhyAModuleIsNoMachine) {
  const auto expect_refusal = [](const std::string& name, const std::string& text) {
    expect_load_error(guest(name), ErrorKind::InvalidInput, text);
  };
  expect_refusal("machine_no_allocator", "no function malloc");
  expect_refusal("machine_no_memory", "exports no memory");
  expect_refusal("machine_wrong_type", "is to be a function (i32, i32, i32, i32) -> (i32)");
  expect_refusal("machine_dynamic_javy", "invoke from javy-default-plugin-v4, another module");
  expect_load_error(carrying("plugged", "plugged_v2"), ErrorKind::InvalidInput,
                    "its plugin: module is linked dynamically");
  expect_load_error(carrying("machine_terminated", "plugin"), ErrorKind::InvalidInput,
                    "only commands can be");
  expect_refusal("missing_start", "neither handle_event nor _start");
  expect_refusal("wrong_imports", "which a state machine does not get");
  expect_refusal("lookup", "it seems to be a flight: name it in an Airway");
  expect_refusal("kube_runtime_journal", "it seems to be a long-running controller");
  expect_load_error(std::string("\0asm\x01\0\0\0junk", 12), ErrorKind::InvalidInput, "");
}

TEST_F(MachineTest, SaysWhatAModuleDidWrong) {
  const auto expect_fault = [](const std::string& name, ErrorKind kind, const std::string& text) {
    SCOPED_TRACE(name);
    expect_step_error(guest(name), kind, text, {.cpu_time_max = milliseconds(50)});
  };
  expect_fault("machine_traps", ErrorKind::GuestFault, "unreachable");
  expect_fault("machine_traps", ErrorKind::GuestFault, "; it has printed: the sails are torn");
  expect_fault("machine_loops", ErrorKind::LimitExceeded, "execution timeout");
  expect_fault("machine_null", ErrorKind::GuestFault, "malloc has no memory");
  expect_fault("machine_outside", ErrorKind::GuestFault, "do not lie in");
  expect_fault("machine_endless", ErrorKind::GuestFault, "not null-terminated");
  expect_fault("machine_huge", ErrorKind::LimitExceeded, "bytes, the most is");
  expect_fault("machine_command_silent", ErrorKind::InvalidInput, "not JSON");
  expect_fault("machine_command_fails", ErrorKind::GuestFault, "exited with code 3");
  expect_fault("endless_loop", ErrorKind::LimitExceeded, "execution timeout");
  expect_fault("endless_stdout", ErrorKind::LimitExceeded, "stdout is larger");
}

TEST_F(MachineTest, ModulesAreNotGivenNonsense) {
  for (const char* const name : {"machine_terminated", "machine_named"}) {
    const auto machine = load(guest(name));
    ASSERT_NE(machine, nullptr);
    expect_error(try_step(*machine, {.state = "nonsense"}, "{}"), ErrorKind::InvalidInput,
                 "the state is not JSON");
    expect_error(try_step(*machine, {.state = "1"}, "}"), ErrorKind::InvalidInput,
                 "the event is not JSON");
    expect_error(try_start(*machine, "{"), ErrorKind::InvalidInput, "the input is not JSON");
  }
}

}  // namespace
}  // namespace hangar::abi::statemachine
