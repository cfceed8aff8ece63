#include "workflows/decision.h"

#include "abi/statemachine/delays.h"
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/limits.h"
#include "workflows/actions.h"
#include "workflows/ledger.h"
#include "workflows/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::workflows {
namespace {

using abi::statemachine::Action;
using abi::statemachine::Step;
using abi::statemachine::Timer;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const WallTime kNow = *parse_rfc3339("2026-04-08T12:00:00Z");

// The article's database provisioner, as a table: state and event to state; state to actions.
class Provisioner {
 public:
  Step start() const { return enter("idle"); }

  Step step(const std::string& state, std::string_view event) const {
    const std::string from(json::string_at(*json::parse(state), {"value"}));
    const auto found = transitions_.find({from, std::string(event)});
    if (found == transitions_.end()) {
      return {.state = state, .is_handled = false, .value = json::dump(json::Value(from))};
    }
    return enter(found->second);
  }

 private:
  Step enter(const std::string& name) const {
    Step step{.state = json::dump(json::Object{{"value", name}}),
              .value = json::dump(json::Value(name)),
              .is_final = name == "ready" || name == "failed"};
    if (const auto found = actions_.find(name); found != actions_.end())
      step.actions = found->second;
    return step;
  }

  const std::map<std::pair<std::string, std::string>, std::string> transitions_ = {
      {{"idle", "PROVISION"}, "creatingPvc"},
      {{"creatingPvc", "K8S_RESOURCE_CREATED"}, "creatingDeployment"},
      {{"creatingPvc", "FAILURE"}, "failed"},
      {{"creatingDeployment", "K8S_RESOURCE_CREATED"}, "healthChecking"},
      {{"creatingDeployment", "FAILURE"}, "failed"},
      {{"healthChecking", "HEALTH_CHECK_PASSED"}, "ready"},
      {{"healthChecking", "FAILURE"}, "failed"},
  };
  const std::map<std::string, std::vector<Action>> actions_ = {
      {"creatingPvc", {{"CREATE_PVC", R"({"size":"1Gi"})"}}},
      {"creatingDeployment", {{"CREATE_DEPLOYMENT", R"({"imageName":"postgres:13"})"}}},
      {"healthChecking", {{"RUN_HEALTH_CHECK", R"({"deploymentName":"db"})"}}},
      {"failed", {{"DELETE_RESOURCES", "{}"}}},
  };
};

Rules rules() {
  return {.key = {.namespace_ = "team", .name = "db"}, .uid = "0a1b"};
}

// The ledger after a round trip through the API server.
Ledger stored(const Ledger& ledger) {
  json::Value status = json::Object();
  put_ledger(status, ledger);
  Result<Ledger> read = parse_ledger(&status);
  EXPECT_TRUE(read) << read.error().message();
  return *std::move(read);
}

Step step_to(std::string_view name, std::vector<Action> actions = {}) {
  return {.state = json::dump(json::Object{{"value", name}}),
          .actions = std::move(actions),
          .value = json::dump(json::Value(name))};
}

// A workflow in `step`, which ignored PROVISION; nothing is left to write.
Decision begun(const Step& step, Rules with = rules()) {
  Decision decision(Ledger(), std::move(with));
  EXPECT_TRUE(std::holds_alternative<Decision::Start>(decision.next(kNow)));
  EXPECT_TRUE(decision.on_started(step, {.sha256 = "abc", .resolved = "here"}, "r1", kNow));
  if (!step.is_final) {
    EXPECT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow)));
    EXPECT_TRUE(decision.on_decided({.state = step.state, .is_handled = false}, kNow));
  }
  EXPECT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();
  return decision;
}

// Lets the machine answer with `step`.
void decide(Decision& decision, const Step& step, WallTime now = kNow) {
  ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(now)));
  ASSERT_TRUE(decision.on_decided(step, now));
}

// A host that may be killed between any two of its steps, and the world that survives it.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  // Runs until the workflow has finished. Between any two steps the host is killed with a chance of
  // one in `odds`.
  void run(std::uint32_t odds) {
    for (int lives = 0; !is_over(); ++lives) {
      ASSERT_LT(lives, 10'000) << "no progress";
      live(odds);
      now_ += seconds(1);
    }
  }

  const Ledger& ledger() const { return stored_; }
  // Effects by action: more than one for one action is one too many.
  const std::map<std::int64_t, int>& effects() const { return effects_; }
  const std::vector<std::string>& path() const { return path_; }
  std::set<std::int64_t> failing;  // Actions whose every attempt fails.

 private:
  bool is_over() const { return stored_.is_finished() && stored_.outbox.empty(); }

  bool dies(std::uint32_t odds) { return odds > 0 && random_() % odds == 0; }

  void live(std::uint32_t odds) {
    Decision decision(stored(stored_), rules());
    while (true) {
      if (dies(odds)) return;
      const Decision::Next next = decision.next(now_);
      if (std::holds_alternative<Decision::Start>(next)) {
        ASSERT_TRUE(decision.on_started(machine_.start(), {.sha256 = "abc"}, "r1", now_));
      } else if (std::holds_alternative<Decision::Ask>(next)) {
        const Step step = machine_.step(decision.ledger().state, type_of(decision.event().body));
        ASSERT_TRUE(decision.on_decided(step, now_));
      } else if (std::holds_alternative<Decision::Write>(next)) {
        stored_ = decision.ledger();
        if (path_.empty() || path_.back() != stored_.value) path_.push_back(stored_.value);
        if (dies(odds)) return;  // Before the answer arrives.
        decision.on_written();
      } else if (const auto* const execute = std::get_if<Decision::Execute>(&next)) {
        carry_out(decision, *execute, odds);
        if (is_dead_) {
          is_dead_ = false;
          return;
        }
      } else {
        return;
      }
    }
  }

  void carry_out(Decision& decision, const Decision::Execute& next, std::uint32_t odds) {
    const auto& outbox = stored_.outbox;
    const auto found = std::ranges::find(outbox, next.id, &PendingAction::id);
    ASSERT_NE(found, outbox.end()) << "carried out before it was written";
    const PendingAction action = *found;
    if (failing.contains(action.id)) {
      (void)decision.on_failed(action.id, {.reason = "Denied", .message = "a \"quoted\"\nmessage"},
                               {}, 0, now_);
      return;
    }
    // The cluster shows the action's mark; a fresh one cannot have left it.
    const bool was_done = effects_.contains(action.id);
    ASSERT_FALSE(next.is_fresh && was_done) << "said to be fresh, and was done";
    if (!was_done) ++effects_[action.id];
    is_dead_ = dies(odds);
    if (!is_dead_) decision.on_done(action.id, done_event(action));
  }

  std::mt19937_64 random_;
  const Provisioner machine_;
  Ledger stored_;
  WallTime now_ = kNow;
  std::map<std::int64_t, int> effects_;
  std::vector<std::string> path_;
  bool is_dead_ = false;
};

TEST(Decision, RunsTheProvisionerWithOneWriteATransition) {
  World world(1);

  world.run(0);

  EXPECT_THAT(world.path(),
              ElementsAre("creatingPvc", "creatingDeployment", "healthChecking", "ready"));
  EXPECT_THAT(world.effects(), SizeIs(3));
  EXPECT_FALSE(world.ledger().has_failed);
}

TEST(Decision, RepeatsNoEffectAndLosesNoneHoweverOftenTheHostIsKilled) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);

    world.run(4);

    ASSERT_EQ(world.ledger().value, "ready");
    ASSERT_THAT(world.effects(), SizeIs(3));
    for (const auto& [id, count] : world.effects())
      ASSERT_EQ(count, 1);
    ASSERT_EQ(world.ledger().transitions, 5);
  }
}

TEST(Decision, FailsAndCleansUpOnceHoweverOftenTheHostIsKilled) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);
    world.failing = {2};

    world.run(4);

    ASSERT_EQ(world.ledger().value, "failed");
    ASSERT_TRUE(world.ledger().has_failed);
    ASSERT_EQ(world.ledger().failure, "a \"quoted\"\nmessage");
    ASSERT_THAT(world.effects(), ElementsAre(testing::Pair(1, 1), testing::Pair(3, 1)));
  }
}

TEST(Decision, HandsOutAnActionOnlyOnceItIsWritten) {
  Decision decision(Ledger(), rules());
  ASSERT_TRUE(decision.on_started(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}),
                                  {.sha256 = "abc"}, "r1", kNow));
  decide(decision, {.state = "{}", .is_handled = false});

  ASSERT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();

  const Decision::Next next = decision.next(kNow);
  ASSERT_TRUE(std::holds_alternative<Decision::Execute>(next));
  EXPECT_EQ(std::get<Decision::Execute>(next).id, 1);
  EXPECT_TRUE(std::get<Decision::Execute>(next).is_fresh);
}

TEST(Decision, IsNotFreshForTheNextHost) {
  const Decision before = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}));

  Decision after(stored(before.ledger()), rules());
  const Decision::Next next = after.next(kNow);

  ASSERT_TRUE(std::holds_alternative<Decision::Execute>(next));
  EXPECT_FALSE(std::get<Decision::Execute>(next).is_fresh);
}

// Actors -------------------------------------------------------------------------------------

abi::statemachine::Actor actor(std::string id, std::string value) {
  return {.id = std::move(id), .value = std::move(value), .status = "", .definition = ""};
}

// In state making, with a worker that has requested a wait and a volume, and has a delay.
Step with_worker() {
  Step step =
      step_to("making", {{"WAIT_FOR", R"({"apiVersion":"v1","kind":"Pod","name":"p"})", "worker#1"},
                         {"CREATE_PVC", R"({"size":"1Gi"})", "worker#1"}});
  step.actors = {actor("worker#1", R"("resting")")};
  step.timers_started = {{.id = "worker#1:later",
                          .delay = minutes(1),
                          .event = R"({"type":"LATER","hangar.actor":"worker#1"})"},
                         {.id = "own", .delay = minutes(1), .event = R"({"type":"OWN"})"}};
  return step;
}

TEST(Decision, TellsAnActorWhatItsActionCameTo) {
  Decision decision(stored(begun(with_worker()).ledger()), rules());
  ASSERT_EQ(decision.ledger().outbox.at(1).actor, "worker#1") << "the next host knows";

  decision.on_done(2, json::Object{{"type", "K8S_RESOURCE_CREATED"}});
  EXPECT_FALSE(decision.on_failed(1, {.reason = "Denied", .is_final = true}, {}, 0, kNow));

  for (const QueuedEvent& event : decision.ledger().inbox)
    EXPECT_EQ(actor_of(event.body), "worker#1") << type_of(event.body);
  EXPECT_THAT(decision.ledger().inbox, SizeIs(2));
}

TEST(Decision, NamesTheActorWhoseFailureNobodyKnows) {
  Decision decision = begun(with_worker());
  EXPECT_FALSE(decision.on_failed(2, {.reason = "Denied", .message = "may not", .is_final = true},
                                  {}, 0, kNow));

  decide(decision, {.state = "{}", .is_handled = false});

  EXPECT_EQ(decision.ledger().failure, "may not (for worker#1)");
}

TEST(Decision, GivesUpWaitsAndDelaysOfAnActorThatIsStopped) {
  Decision decision = begun(with_worker());
  ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "GIVE_UP"}}));

  Step idle = step_to("idle", {{"RUN_HEALTH_CHECK", R"({"deploymentName":"db"})", "worker#1"}});
  idle.actors_stopped = {"worker#1"};
  decide(decision, idle);

  std::vector<std::string> left;
  for (const PendingAction& action : decision.ledger().outbox)
    left.push_back(action.type);
  EXPECT_THAT(left, ElementsAre("CREATE_PVC", "RUN_HEALTH_CHECK"))
      << "what is made goes on, and what it asked for last";
  ASSERT_THAT(decision.ledger().timers, SizeIs(1));
  EXPECT_EQ(decision.ledger().timers[0].id, "own");
  EXPECT_THAT(decision.ledger().actors, IsEmpty());
}

TEST(Decision, RemembersWhereActorsAreAndSinceWhen) {
  Decision decision = begun(with_worker());
  ASSERT_THAT(decision.ledger().actors, SizeIs(1));
  EXPECT_EQ(decision.ledger().actors[0].value, "resting");
  EXPECT_EQ(decision.ledger().actors[0].entered_at, kNow);

  ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "GO"}}));
  Step next = step_to("making");
  next.actors = {actor("worker#1", R"("resting")"), actor("other#2", R"({"a":"b"})")};
  decide(decision, next, kNow + seconds(5));
  EXPECT_EQ(decision.ledger().actors.at(0).entered_at, kNow) << "it is where it was";
  EXPECT_THAT(decision.ledger().history.back().actors,
              ElementsAre(R"(other#2 began in {"a":"b"})"));

  ASSERT_TRUE(decision.on_signal("2", json::Object{{"type", "GO"}}));
  next.actors = {{.id = "worker#1", .value = R"("made")", .status = "done", .definition = ""}};
  decide(decision, next, kNow + seconds(9));
  EXPECT_EQ(decision.ledger().actors.at(0).entered_at, kNow + seconds(9));
  EXPECT_THAT(decision.ledger().history.back().actors,
              ElementsAre("worker#1: resting -> made (done)", R"(other#2 ended in {"a":"b"})"));
  const Ledger read = stored(decision.ledger());
  EXPECT_EQ(read.actors.at(0).status, "done");
  EXPECT_EQ(read.history.back().actors, decision.ledger().history.back().actors);
}

TEST(Decision, RemembersAFewChangesOfManyActors) {
  Decision decision(Ledger(), rules());
  Step step = step_to("a");
  for (std::size_t number = 0; number < limits::kWorkflowActorsMax; ++number)
    step.actors.push_back(actor(fmt::format("w#{}", number), '"' + std::string(1000, 'x') + '"'));
  ASSERT_TRUE(decision.on_started(step, {.sha256 = "abc"}, "r1", kNow));

  EXPECT_THAT(decision.ledger().history.at(0).actors, SizeIs(16));
  EXPECT_EQ(decision.ledger().history[0].actors.back(), "and 49 more");
  EXPECT_EQ(decision.ledger().actors.at(0).value.size(), 256U);
  step.actors.push_back(actor("w#64", "1"));
  const Result<> refused =
      Decision(Ledger(), rules()).on_started(step, {.sha256 = "abc"}, "r1", kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused.error().message(), HasSubstr("actors: 65"));
}

TEST(Decision, TakesTheDelaysOfActorsOfAnotherMachine) {
  Step step = step_to("making");
  step.actors = {actor("worker#1", R"("resting")")};
  step.timers_started = {
      {.id = "worker#1:xstate.after.1.disk.resting",
       .delay = minutes(1),
       .event = R"({"type":"xstate.after.1.disk.resting","hangar.actor":"worker#1"})"},
      {.id = "xstate.after.9.m.making",
       .delay = minutes(9),
       .event = R"({"type":"xstate.after.9.m.making"})"}};
  Decision decision = begun(step);
  const std::vector<abi::statemachine::Delay> delays{
      {.event = "xstate.after.9.m.making", .duration = minutes(9)},
      {.event = "xstate.after.2.disk.resting", .duration = minutes(2), .actor = "worker#1"},
      {.event = "xstate.after.1.disk.resting", .duration = minutes(1), .actor = "other#2"}};

  EXPECT_THAT(decision.missing_delays(delays), ElementsAre(delays[1], delays[2]));
  decision.take_delays(delays, kNow - minutes(5));

  std::map<std::string, WallTime> due;
  for (const RunningTimer& timer : decision.ledger().timers)
    due[timer.id] = timer.due;
  EXPECT_THAT(due, testing::UnorderedElementsAre(
                       testing::Pair("xstate.after.9.m.making", kNow + minutes(9)),
                       testing::Pair("worker#1:xstate.after.2.disk.resting", kNow + minutes(2)),
                       testing::Pair("other#2:xstate.after.1.disk.resting", kNow - minutes(4))))
      << "since the actor is where it is, if that is known";
}

TEST(Decision, RetriesWithGrowingIntervalsAndThenSendsFailure) {
  const RetryPolicy policy{.attempts_max = 3,
                           .initial_interval = seconds(2),
                           .interval_max = seconds(3),
                           .factor = 2,
                           .jitter = 0.5};
  Decision decision = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}));
  const Decision::Failure failure{.reason = "Forbidden", .message = "may not"};

  EXPECT_TRUE(decision.on_failed(1, failure, policy, 0, kNow));
  EXPECT_EQ(decision.ledger().outbox[0].not_before, kNow + seconds(2));
  EXPECT_TRUE(decision.on_failed(1, failure, policy, 1, kNow));
  EXPECT_EQ(decision.ledger().outbox[0].not_before, kNow + milliseconds(4500));
  EXPECT_FALSE(decision.on_failed(1, failure, policy, 0, kNow));

  EXPECT_THAT(decision.ledger().outbox, IsEmpty());
  ASSERT_THAT(decision.ledger().inbox, SizeIs(1));
  const json::Value& event = decision.ledger().inbox[0].body;
  EXPECT_EQ(type_of(event), "FAILURE");
  EXPECT_EQ(json::string_at(event, {"message"}), "may not");
  EXPECT_EQ(json::string_at(event, {"reason"}), "Forbidden");
  EXPECT_EQ(json::string_at(event, {"action"}), "CREATE_PVC");
  EXPECT_EQ(json::int_at(event, {"attempts"}), 3);
}

TEST(Decision, DoesNotRetryWhatNoRepetitionMends) {
  struct Case {
    const char* name;
    Decision::Failure failure;
  };
  for (const Case& one : {Case{"by kind", {.reason = "Invalid", .kind = "InvalidInput"}},
                          Case{"by reason", {.reason = "InvalidInput"}},
                          Case{"for good", {.reason = "JobFailed", .is_final = true}}}) {
    SCOPED_TRACE(one.name);
    Decision decision = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}));
    EXPECT_FALSE(decision.on_failed(1, one.failure, {}, 0, kNow));
  }
}

TEST(Decision, DoesNotRetryBeyondTheActionsTimeout) {
  Decision decision = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi","timeout":"10s"})"}}));

  EXPECT_TRUE(decision.on_failed(1, {.reason = "x"}, {}, 0, kNow + seconds(8)));
  EXPECT_FALSE(decision.on_failed(1, {.reason = "x"}, {}, 0, kNow + seconds(9)));
}

TEST(Decision, WaitsNoLongerThanTheActionsTimeout) {
  Decision decision =
      begun(step_to("a", {{"RUN_HEALTH_CHECK", R"({"deploymentName":"db","timeout":"1m"})"}}));
  ASSERT_TRUE(std::holds_alternative<Decision::Execute>(decision.next(kNow)));

  EXPECT_TRUE(decision.on_waiting(1, "Deployment team/db: 0 of 1", kNow + seconds(59)));
  const Decision::Next next = decision.next(kNow + seconds(59));
  ASSERT_TRUE(std::holds_alternative<Decision::Wait>(next));
  EXPECT_EQ(std::get<Decision::Wait>(next).until, kNow + minutes(1));

  EXPECT_FALSE(decision.on_waiting(1, "Deployment team/db: 0 of 1", kNow + minutes(1)));
  const json::Value& event = decision.ledger().inbox.at(0).body;
  EXPECT_EQ(json::string_at(event, {"reason"}), "TimedOut");
  EXPECT_EQ(json::string_at(event, {"message"}),
            "RUN_HEALTH_CHECK timed out after 1m: Deployment team/db: 0 of 1");
}

TEST(Decision, WritesWhatHindersAWaitOnceAndThatItIsOver) {
  Decision decision =
      begun(step_to("a", {{"RUN_HEALTH_CHECK", R"({"deploymentName":"db","timeout":"1m"})"}}));
  ASSERT_TRUE(std::holds_alternative<Decision::Execute>(decision.next(kNow)));

  EXPECT_TRUE(decision.on_waiting(1, "0 of 1", kNow, "nobody may watch"));
  EXPECT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  EXPECT_EQ(decision.ledger().outbox.at(0).last_error, "nobody may watch");
  decision.on_written();
  EXPECT_TRUE(decision.on_waiting(1, "0 of 1", kNow, "nobody may watch"));
  EXPECT_TRUE(std::holds_alternative<Decision::Wait>(decision.next(kNow)));

  EXPECT_TRUE(decision.on_waiting(1, "0 of 1", kNow));
  EXPECT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  EXPECT_EQ(decision.ledger().outbox.at(0).last_error, "");
}

TEST(Decision, WritesNothingForAnEventThatMeansNothing) {
  Decision decision = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}));
  ASSERT_THAT(decision.ledger().resources, SizeIs(1));
  decision.on_done(1, json::Object{{"type", "DONE"}});
  decide(decision, step_to("b"));
  decision.on_written();

  decision.on_change(0, "42", json::Object{{"type", "K8S_RESOURCE_CHANGED"}});
  decide(decision, {.state = "{}", .is_handled = false});

  EXPECT_TRUE(std::holds_alternative<Decision::Wait>(decision.next(kNow)));
  EXPECT_EQ(decision.ledger().resources[0].seen, "42");
}

TEST(Decision, TakesASignalOnceAndInOrder) {
  Decision decision = begun(step_to("a"));

  EXPECT_TRUE(decision.on_signal("1", json::Object{{"type", "ONE"}}));
  EXPECT_TRUE(decision.on_signal("2", json::Object{{"type", "TWO"}}));
  EXPECT_FALSE(decision.on_signal("1", json::Object{{"type", "ONE"}}));

  EXPECT_EQ(type_of(decision.event().body), "ONE");
  decide(decision, step_to("b"));
  EXPECT_EQ(type_of(decision.event().body), "TWO");
  Decision next(stored(decision.ledger()), rules());
  EXPECT_FALSE(next.on_signal("2", json::Object{{"type", "TWO"}}));
}

TEST(Decision, KeepsADelayOverARestartAndCancelsIt) {
  Step waiting = step_to("a");
  waiting.timers_started = {
      {.id = "t", .delay = minutes(5), .event = R"({"type":"xstate.after.300000.a"})"}};
  const Decision before = begun(waiting);
  ASSERT_THAT(before.ledger().timers, SizeIs(1));

  Decision after(stored(before.ledger()), rules());
  const Decision::Next next = after.next(kNow + minutes(4));
  ASSERT_TRUE(std::holds_alternative<Decision::Wait>(next));
  EXPECT_EQ(std::get<Decision::Wait>(next).until, kNow + minutes(5));
  ASSERT_TRUE(std::holds_alternative<Decision::Ask>(after.next(kNow + minutes(5))));
  EXPECT_EQ(type_of(after.event().body), "xstate.after.300000.a");
  EXPECT_THAT(after.ledger().timers, IsEmpty());

  Decision left(stored(before.ledger()), rules());
  ASSERT_TRUE(left.on_signal("1", json::Object{{"type", "GO"}}));
  Step leaving = step_to("b");
  leaving.timers_cancelled = {"t"};
  decide(left, leaving);
  EXPECT_THAT(left.ledger().timers, IsEmpty());
}

TEST(Decision, StartsADelayAnewWhenItsStateIsEnteredAgain) {
  Step waiting = step_to("a");
  waiting.timers_started = {{.id = "t", .delay = minutes(5), .event = R"({"type":"LATE"})"}};
  Decision decision = begun(waiting);
  ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "AGAIN"}}));

  Step again = waiting;
  again.timers_cancelled = {"t"};
  decide(decision, again, kNow + minutes(1));

  ASSERT_THAT(decision.ledger().timers, SizeIs(1));
  EXPECT_EQ(decision.ledger().timers[0].due, kNow + minutes(6));
}

TEST(Decision, LetsEachOfSeveralDelayedEventsOfOneTypeArrive) {
  Step ticking = step_to("a");
  ticking.timers_started = {
      {.id = "TICK", .delay = minutes(1), .event = R"({"type":"TICK","n":1})", .replaces = false},
      {.id = "TICK", .delay = minutes(2), .event = R"({"type":"TICK","n":2})", .replaces = false}};
  Decision decision = begun(ticking);
  ASSERT_THAT(decision.ledger().timers, SizeIs(2));

  ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow + minutes(1))));
  EXPECT_EQ(json::int_at(decision.event().body, {"n"}), 1);
  Step left = step_to("b");
  left.timers_cancelled = {"TICK"};
  decide(decision, left, kNow + minutes(1));
  EXPECT_THAT(decision.ledger().timers, IsEmpty());
}

TEST(Decision, TakesTheDelaysOfAnotherMachine) {
  Step waiting = step_to("soaking");
  waiting.timers_started = {
      {.id = "xstate.after.8000.m.soaking",
       .delay = seconds(8),
       .event = R"({"type":"xstate.after.8000.m.soaking"})"},
      {.id = "reminder", .delay = minutes(1), .event = R"({"type":"REMIND"})"}};
  Decision decision = begun(waiting);

  const abi::statemachine::Delay shorter{.event = "xstate.after.2000.m.soaking",
                                         .duration = seconds(2)};
  const abi::statemachine::Delay named{.event = "xstate.after.long.m.soaking", .duration = {}};
  EXPECT_THAT(decision.missing_delays({shorter, named}), ElementsAre(shorter, named));
  decision.take_delays({shorter, named}, kNow);

  ASSERT_THAT(decision.ledger().timers, SizeIs(2));
  EXPECT_EQ(decision.ledger().timers[0].id, "reminder") << "none that a state has";
  EXPECT_EQ(decision.ledger().timers[1].id, shorter.event);
  EXPECT_EQ(decision.ledger().timers[1].due, kNow + seconds(2));
  EXPECT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();
  EXPECT_THAT(decision.missing_delays({shorter}), IsEmpty());
  decision.take_delays({shorter}, kNow);
  EXPECT_TRUE(std::holds_alternative<Decision::Wait>(decision.next(kNow))) << "as before";
}

TEST(Decision, TurnsATimeoutThatTheStateDoesNotKnowIntoAFailure) {
  Rules with = rules();
  with.state_timeouts["slow"] = minutes(1);
  Decision decision = begun(step_to("slow"), with);

  decide(decision, {.state = "{}", .is_handled = false}, kNow + minutes(1));

  ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow + minutes(1))));
  EXPECT_EQ(type_of(decision.event().body), "FAILURE");
  EXPECT_EQ(json::string_at(decision.event().body, {"reason"}), "TimedOut");
  decide(decision, {.state = "{}", .is_handled = false}, kNow + minutes(1));
  EXPECT_THAT(decision.ledger().failure, HasSubstr("the state slow took longer than 1m"));
}

TEST(Decision, ForgetsTheTimeoutOfAStateThatWasLeft) {
  Rules with = rules();
  with.state_timeouts["slow"] = minutes(1);
  with.timeout = minutes(10);
  Decision decision = begun(step_to("slow"), with);
  ASSERT_THAT(decision.ledger().timers, SizeIs(2));
  ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "GO"}}));

  decide(decision, step_to("fast"));

  ASSERT_THAT(decision.ledger().timers, SizeIs(1));
  EXPECT_EQ(decision.ledger().timers[0].due, kNow + minutes(10));
}

TEST(Decision, ForgetsTheTimeoutOfAStateAlsoWhenNoStateHasOneAnyMore) {
  Rules with = rules();
  with.state_timeouts["slow"] = minutes(1);
  Ledger ledger = begun(step_to("slow"), with).ledger();
  ASSERT_THAT(ledger.timers, SizeIs(1));
  ledger.inbox.push_back({.origin = Origin::Signal, .body = json::Object{{"type", "GO"}}});

  Decision decision(ledger, rules());
  decide(decision, step_to("fast"));

  EXPECT_THAT(decision.ledger().timers, IsEmpty());
}

TEST(Decision, KeepsTheEventWhenTheMachineCannotDecide) {
  Decision decision = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}));
  decision.on_done(1, json::Object{{"type", "DONE"}});
  ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow)));

  decision.on_stuck();

  ASSERT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();
  EXPECT_TRUE(std::holds_alternative<Decision::Wait>(decision.next(kNow)));
  const Ledger written = stored(decision.ledger());
  EXPECT_THAT(written.outbox, IsEmpty());
  ASSERT_THAT(written.inbox, SizeIs(1));
  EXPECT_EQ(type_of(written.inbox[0].body), "DONE");
}

TEST(Decision, RefusesAnAnswerThatALedgerDoesNotHold) {
  struct Case {
    const char* name;
    Step step;
    ErrorKind kind;
  };
  Step large = step_to("b");
  large.state = "\"" + std::string(limits::kWorkflowStateBytesMax, 'x') + "\"";
  Step garbage = step_to("b");
  garbage.state = "garbage";
  const Step many = step_to(
      "b", std::vector<Action>(limits::kWorkflowOutboxMax + 1, {"EMIT", R"({"reason":"X"})"}));
  const Step odd = step_to("b", {{"EMIT", "[]"}});
  Step endless = step_to("b");
  endless.timers_started = {{.id = "t", .delay = Duration::max(), .event = R"({"type":"LATE"})"}};
  Step everywhere = step_to("b");
  everywhere.value = "\"" + std::string(limits::kWorkflowValueBytesMax, 'x') + "\"";
  // Each of the inner states has the long name in its path.
  json::Object inner;
  for (int i = 0; i < 1000; ++i)
    inner[fmt::format("s{}", i)] = json::Object();
  Step deep = step_to("b");
  deep.value = json::dump(json::Object{{std::string(30 * limits::kKiB, 'x'), std::move(inner)}});
  ASSERT_LT(deep.value.size(), limits::kWorkflowValueBytesMax);
  Step ending = step_to("b");
  ending.actors_stopped.assign(limits::kWorkflowStoppedMax + 1, "worker");
  Step silent = step_to("b");
  silent.timers_started = {{.id = "t", .delay = seconds(1), .event = "{}"}};
  for (const Case& one : {Case{"a large state", large, ErrorKind::LimitExceeded},
                          Case{"a large value", everywhere, ErrorKind::LimitExceeded},
                          Case{"long paths of states", deep, ErrorKind::LimitExceeded},
                          Case{"many stopped actors", ending, ErrorKind::LimitExceeded},
                          Case{"no JSON", garbage, ErrorKind::InvalidInput},
                          Case{"many actions", many, ErrorKind::LimitExceeded},
                          Case{"odd params", odd, ErrorKind::InvalidInput},
                          Case{"an endless delay", endless, ErrorKind::InvalidInput},
                          Case{"a delay without event", silent, ErrorKind::InvalidInput}}) {
    SCOPED_TRACE(one.name);
    Decision decision = begun(step_to("a"));
    ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "GO"}}));
    ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow)));

    const Result<> taken = decision.on_decided(one.step, kNow);

    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().kind(), one.kind);
    EXPECT_EQ(decision.ledger().value, "a");
    EXPECT_THAT(decision.ledger().inbox, SizeIs(1));
  }
}

TEST(Decision, LeavesSignalsWhereTheyAreOnceTheInboxIsFull) {
  Decision decision = begun(step_to("a"));
  decision.on_stuck();
  const std::string text(60 * limits::kKiB, 'x');
  std::size_t taken = 0;
  while (
      decision.on_signal(fmt::format("{}", taken), json::Object{{"type", "DATA"}, {"text", text}}))
    ++taken;
  EXPECT_EQ(taken, limits::kWorkflowInboxBytesMax / (60 * limits::kKiB));
  EXPECT_THAT(decision.ledger().signals, SizeIs(taken)) << "it is not remembered either";
  EXPECT_FALSE(decision.on_signal("small", json::Object{{"type", "GO"}})) << "it overtakes none";

  ASSERT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();
  const Decision::Next next = decision.next(kNow);
  ASSERT_TRUE(std::holds_alternative<Decision::Wait>(next));
  EXPECT_EQ(std::get<Decision::Wait>(next).until, std::nullopt) << "a stuck machine makes no room";
}

// The number of these events that an inbox has room for.
constexpr std::size_t kLargeEvents = 4;
json::Value large_event() {
  return json::Object{{"type", "DATA"}, {"text", std::string(60 * limits::kKiB, 'x')}};
}

// Lets the machine ignore everything in the inbox, and writes that.
void drain(Decision& decision) {
  while (std::holds_alternative<Decision::Ask>(decision.next(kNow)))
    ASSERT_TRUE(decision.on_decided({.state = "{}", .is_handled = false}, kNow));
  ASSERT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();
}

// When a decision that waits looks again.
std::optional<WallTime> wait_of(Decision& decision) {
  const Decision::Next next = decision.next(kNow);
  EXPECT_TRUE(std::holds_alternative<Decision::Wait>(next));
  const auto* const wait = std::get_if<Decision::Wait>(&next);
  return wait == nullptr ? std::nullopt : wait->until;
}

TEST(Decision, LooksAgainAtOnceForSignalsThatFoundNoRoom) {
  Decision decision = begun(step_to("a"));
  EXPECT_EQ(wait_of(decision), std::nullopt);
  for (std::size_t number = 0; number < kLargeEvents; ++number)
    ASSERT_TRUE(decision.on_signal(fmt::format("{}", number), large_event()));
  ASSERT_FALSE(decision.on_signal("one more", large_event()));

  drain(decision);

  EXPECT_EQ(wait_of(decision), kNow);
  Decision again(stored(decision.ledger()), rules());
  EXPECT_FALSE(again.on_signal("0", large_event())) << "it is known";
  EXPECT_TRUE(again.on_signal("one more", large_event()));
  drain(again);
  EXPECT_EQ(wait_of(again), std::nullopt);
}

TEST(Decision, LooksAgainAtOnceForChangesThatFoundNoRoom) {
  Decision decision = begun(step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}}));
  decision.on_done(1, json::Object{{"type", "DONE"}});
  drain(decision);
  ASSERT_THAT(decision.ledger().resources, SizeIs(1));
  Ledger full = decision.ledger();
  for (std::size_t number = 0; number < kLargeEvents; ++number)
    full.inbox.push_back({.origin = Origin::Signal, .body = large_event()});
  Decision again(full, rules());
  again.on_change(0, "42", large_event());
  ASSERT_NE(again.ledger().resources[0].seen, "42");

  drain(again);

  EXPECT_EQ(wait_of(again), kNow);
}

TEST(Decision, TakesAllSignalsOnceTheMachineHasEnded) {
  Ledger ended = begun(step_to("a")).ledger();
  ended.finished_at = kNow;
  for (std::size_t count = 0; count < limits::kWorkflowInboxMax; ++count)
    ended.inbox.push_back({.origin = Origin::Signal, .body = json::Object{{"type", "MORE"}}});
  Decision decision(ended, rules());

  EXPECT_TRUE(decision.on_signal("1", json::Object{{"type", "GO"}}));

  EXPECT_THAT(decision.ledger().inbox, SizeIs(limits::kWorkflowInboxMax)) << "none is kept";
}

TEST(Decision, KnowsAFailureByAnyName) {
  Step asking = step_to("a", {{"EMIT", R"({"reason":"R","onError":"BROKEN"})"}});
  Decision decision = begun(asking);
  EXPECT_FALSE(decision.on_failed(1, {.reason = "Forbidden", .message = "no", .is_final = true}, {},
                                  0, kNow));
  ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow)));
  EXPECT_EQ(type_of(decision.event().body), "BROKEN");
  ASSERT_TRUE(decision.on_decided({.state = asking.state, .is_handled = false}, kNow));
  EXPECT_EQ(decision.ledger().failure, "no");
}

TEST(Decision, TellsOfADeletionOnce) {
  const std::string object = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})";
  Decision decision = begun(step_to("a", {{"APPLY", R"({"manifest":)" + object + "}"}}));
  ASSERT_THAT(decision.ledger().resources, SizeIs(1));
  const json::Value about =
      json::Object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"resourceName", "c"}};
  decision.on_made(about, "7");
  json::Value made = about;
  made.as_object()["type"] = "K8S_RESOURCE_CREATED";
  decision.on_done(1, made);
  decide(decision,
         step_to("b", {{"DELETE", R"({"apiVersion":"v1","kind":"ConfigMap","name":"c"})"}}));
  decision.on_written();

  json::Value deleted = about;
  deleted.as_object()["type"] = "K8S_RESOURCE_DELETED";
  decision.on_change(0, std::string(kSeenDeleted), deleted);
  EXPECT_THAT(decision.ledger().inbox, IsEmpty()) << "that the action is done will say it";
  decision.on_done(2, deleted);
  EXPECT_THAT(decision.ledger().inbox, SizeIs(1));
  EXPECT_EQ(decision.ledger().resources[0].seen, kSeenDeleted) << "watches have nothing to tell";
}

TEST(Decision, TellsNoEndOfAJobThatAnotherReplaces) {
  const std::vector<Action> nightly = {{"RUN_JOB", R"({"name":"nightly","image":"busybox"})"}};
  Decision decision = begun(step_to("a", nightly));
  const json::Value job =
      json::Object{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"resourceName", "nightly"}};
  decision.on_made(job, "7");
  decision.on_done(1, json::Object{{"type", "JOB_SUCCEEDED"}});
  decide(decision, step_to("b", nightly));
  decision.on_written();

  decision.on_change(0, std::string(kSeenDeleted), job);

  EXPECT_THAT(decision.ledger().inbox, IsEmpty());
  EXPECT_EQ(decision.ledger().resources[0].seen, "7");
}

// All objects of a workflow may go at once, and each plan of an action copies its manifest.
TEST(Decision, LooksAtALargeManifestOnceHoweverManyObjectsAreDeleted) {
  json::Array parts;
  for (std::size_t i = 0; i < 20'000; ++i)
    parts.emplace_back(json::Object{{"a", json::Object()}});
  const json::Value manifest = json::Object{{"apiVersion", "batch/v1"},
                                            {"kind", "Job"},
                                            {"metadata", json::Object{{"name", "nightly"}}},
                                            {"spec", std::move(parts)}};
  Ledger ledger = begun(step_to("a")).ledger();
  ledger.outbox.push_back({.id = ledger.next_action++,
                           .type = "RUN_JOB",
                           .params = json::Object{{"manifest", manifest}},
                           .requested_at = kNow});
  for (std::size_t i = 0; i < limits::kWorkflowResourcesMax; ++i) {
    ledger.resources.push_back({.api_version = "batch/v1",
                                .kind = "Job",
                                .namespace_ = "team",
                                .name = i == 0 ? "nightly" : fmt::format("job{}", i),
                                .seen = "7"});
  }
  Decision decision(std::move(ledger), rules());
  const auto began = std::chrono::steady_clock::now();

  for (std::size_t i = 0; i < limits::kWorkflowResourcesMax; ++i) {
    decision.on_change(i, std::string(kSeenDeleted),
                       json::Object{{"type", "K8S_RESOURCE_DELETED"}});
  }

  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(1));
  EXPECT_EQ(decision.ledger().resources[0].seen, "7") << "another Job takes its place";
  EXPECT_EQ(decision.ledger().resources[1].seen, kSeenDeleted);
}

TEST(Decision, ForgetsNoObjectThatIsThere) {
  Ledger full = begun(step_to("a")).ledger();
  full.inbox.push_back({.origin = Origin::Signal, .body = json::Object{{"type", "MORE"}}});
  for (std::size_t i = 0; i < limits::kWorkflowResourcesMax; ++i) {
    full.resources.push_back({.api_version = "v1",
                              .kind = "ConfigMap",
                              .namespace_ = "team",
                              .name = fmt::format("c{}", i),
                              .seen = "7"});
  }
  const auto applying = [](std::string_view name) {
    return step_to("a", {{"APPLY", fmt::format(R"({{"manifest":{{"apiVersion":"v1","kind":)"
                                               R"("ConfigMap","metadata":{{"name":"{}"}}}}}})",
                                               name)}});
  };
  EXPECT_TRUE(Decision(full, rules()).on_decided(applying("c0"), kNow)) << "one that is known";
  const Result<> refused = Decision(full, rules()).on_decided(applying("new"), kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);

  full.resources[3].seen = std::string(kSeenDeleted);
  Decision decision(full, rules());
  ASSERT_TRUE(decision.on_decided(applying("new"), kNow)) << "in place of one that is gone";
  EXPECT_THAT(decision.ledger().resources, SizeIs(limits::kWorkflowResourcesMax));
  EXPECT_EQ(decision.ledger().resources[3].name, "c4");
}

TEST(Decision, BoundsTheHistory) {
  Rules with = rules();
  with.history_max = 3;
  Decision decision = begun(step_to("a"), with);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(decision.on_signal(fmt::format("{}", i), json::Object{{"type", "GO"}}));
    decide(decision, step_to(fmt::format("s{}", i)));
  }

  ASSERT_THAT(decision.ledger().history, SizeIs(3));
  EXPECT_EQ(decision.ledger().history[2].to, "s9");
  EXPECT_EQ(decision.ledger().history[2].sequence, 11);
}

TEST(Decision, LetsOthersHaveTheirTurnWhenAMachineAnswersItselfForEver) {
  Decision decision = begun(step_to("a"));
  ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "GO"}}));
  Step again = step_to("a");
  again.timers_started = {{.id = "t", .delay = {}, .event = R"({"type":"GO"})"}};
  std::size_t steps = 0;
  while (std::holds_alternative<Decision::Ask>(decision.next(kNow))) {
    ASSERT_TRUE(decision.on_decided(again, kNow));
    ASSERT_LE(++steps, limits::kWorkflowStepsMax);
  }

  ASSERT_TRUE(std::holds_alternative<Decision::Write>(decision.next(kNow)));
  decision.on_written();
  const Decision::Next next = decision.next(kNow);
  ASSERT_TRUE(std::holds_alternative<Decision::Wait>(next));
  EXPECT_EQ(std::get<Decision::Wait>(next).until, kNow);
}

TEST(Decision, DropsWaitsWhenTheMachineHasEnded) {
  Decision decision = begun(step_to("a", {{"WAIT_FOR", "{}"}, {"EMIT", R"({"reason":"X"})"}}));
  ASSERT_TRUE(decision.on_signal("1", json::Object{{"type", "GO"}}));
  Step end = step_to("end", {{"DELETE_RESOURCES", "{}"}});
  end.is_final = true;
  end.output = R"({"answer":42})";
  decide(decision, end);

  ASSERT_THAT(decision.ledger().outbox, SizeIs(2));
  EXPECT_EQ(decision.ledger().outbox[0].type, "EMIT");
  EXPECT_EQ(decision.ledger().outbox[1].type, "DELETE_RESOURCES");
  EXPECT_EQ(json::int_at(*decision.ledger().output, {"answer"}), 42);
  EXPECT_FALSE(decision.ledger().has_failed);
}

TEST(Ledger, ComesBackAsItWasWritten) {
  Step step = step_to("a", {{"CREATE_PVC", R"({"size":"1Gi"})"}, {"FROBNICATE", "{}"}});
  step.timers_started = {{.id = "t", .delay = minutes(5), .event = R"({"type":"LATE"})"}};
  Decision decision = begun(step);
  ASSERT_TRUE(decision.on_signal("s1", json::Object{{"type", "GO"}}));
  decision.on_migrated({.request = "1", .is_done = true, .message = "m"}, std::nullopt);
  (void)decision.on_failed(1, {.reason = "x", .message = "why"}, {}, 0, kNow);
  decision.on_pinned(1, "uid");

  json::Value once = json::Object();
  put_ledger(once, decision.ledger());
  json::Value twice = json::Object();
  put_ledger(twice, stored(decision.ledger()));

  EXPECT_EQ(json::dump_pretty(once), json::dump_pretty(twice));
}

TEST(Ledger, SaysWhatIsWrongWithAStatus) {
  struct Case {
    const char* status;
    const char* message;
  };
  for (
      const Case& one :
      {Case{R"({"state":"garbage"})", "status.state"}, Case{R"({"state":7})", "status.state"},
       Case{R"({"transitions":3})", "status.state: is missing"},
       Case{R"({"state":"{}","transitions":1})", "status.run: is missing"},
       Case{R"({"state":"{}","outbox":"x"})", "status.outbox"},
       Case{R"({"state":"{}","outbox":[{"id":3,"type":"A","requestedAt":"2026-04-08T12:00:00Z"}]})",
            "status.outbox[0].id"},
       Case{R"({"state":"{}","inbox":[{"event":{}}]})", "status.inbox[0].event"},
       Case{R"({"state":"{}","inbox":[{"origin":"Later","event":{"type":"A"}}]})",
            "status.inbox[0].origin"},
       Case{R"({"state":"{}","timers":[{"id":"t","due":"soon","event":{"type":"A"}}]})",
            "status.timers[0].due"},
       Case{R"({"state":"{}","history":[{"origin":"Nobody"}]})", "status.history[0]"},
       Case{
           R"({"state":"{}","run":"r","startedAt":"2026-04-08T12:00:00Z","revision":{"sha256":"a"},"nextAction":3,
                "history":[{"origin":"Host","time":"2026-04-08T12:00:00Z","sequence":1,"actions":["APPLY#2","EMIT#3"]}]})",
           "status.nextAction: is 3, and there was an action #3"},
       // Numbers and times with which the host calculates.
       Case{R"({"state":"{}","nextAction":9223372036854775807})",
            "status.nextAction: must be at most 4294967295"},
       Case{R"({"state":"{}","nextAction":-1})", "status.nextAction: must be 0 or more"},
       Case{R"({"state":"{}","transitions":9223372036854775807})",
            "status.transitions: must be at most 4294967295"},
       Case{R"({"state":"{}","nextAction":2,"outbox":[{"id":1,"type":"A","attempts":4294967296,
                "requestedAt":"2026-04-08T12:00:00Z"}]})",
            "status.outbox[0].attempts: must be at most"},
       Case{R"({"state":"{}","history":[{"sequence":9223372036854775807}]})",
            "status.history[0].sequence: must be at most"},
       Case{R"({"state":"{}","enteredAt":"1700-01-01T00:00:00Z"})",
            "status.enteredAt: must be 1970-01-01T00:00:00Z or later"},
       Case{R"({"state":"{}","enteredAt":"2261-01-01T00:00:00Z"})",
            "status.enteredAt: must be before 2200-01-01T00:00:00Z"},
       Case{R"({"state":"{}","timers":[{"id":"t","due":"1700-01-01T00:00:00Z",
                "event":{"type":"A"}}]})",
            "status.timers[0].due: must be 1970"},
       Case{R"({"state":"{}","actors":[{"id":"w","enteredAt":"2261-01-01T00:00:00Z"}]})",
            "status.actors[0].enteredAt: must be before 2200"}}) {
    SCOPED_TRACE(one.status);
    const json::Value status = *json::parse(one.status);

    const Result<Ledger> ledger = parse_ledger(&status);

    ASSERT_FALSE(ledger);
    EXPECT_EQ(ledger.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(ledger.error().message(), HasSubstr(one.message));
  }
}

// The last number is used, and the next leader can read the ledger that has it.
TEST(Decision, RefusesAStepWhoseNumbersALedgerCannotHold) {
  struct Case {
    std::string_view member;
    std::int64_t value;
    bool is_accepted;
  };
  constexpr std::int64_t kMax = limits::kWorkflowNumberMax;
  for (const Case& one : {Case{"nextAction", kMax - 1, true}, Case{"nextAction", kMax, false},
                          Case{"transitions", kMax - 1, true}, Case{"transitions", kMax, false}}) {
    SCOPED_TRACE(fmt::format("{} {}", one.member, one.value));
    json::Value status = json::Object();
    put_ledger(status, begun(step_to("a")).ledger());
    status.as_object()[one.member] = one.value;
    const Result<Ledger> ledger = parse_ledger(&status);
    ASSERT_TRUE(ledger) << ledger.error().message();
    Decision decision(*ledger, rules());
    ASSERT_TRUE(decision.on_signal("s1", json::Object{{"type", "GO"}}));
    ASSERT_TRUE(std::holds_alternative<Decision::Ask>(decision.next(kNow)));

    const Result<> decided =
        decision.on_decided(step_to("b", {{"CREATE_PVC", R"({"size":"1Gi"})"}}), kNow);

    EXPECT_EQ(decided.has_value(), one.is_accepted);
    if (!decided) {
      EXPECT_EQ(decided.error().kind(), ErrorKind::LimitExceeded);
      EXPECT_THAT(decided.error().message(), HasSubstr("begin another workflow"));
    }
    (void)stored(decision.ledger());
  }
}

TEST(Ledger, LeavesMembersOfTheStatusThatItDoesNotKnow) {
  json::Value status = json::Object();
  put_ledger(status, begun(step_to("a")).ledger());
  status.as_object()["later"] = json::Object{{"a", 1}};

  const Result<Ledger> ledger = parse_ledger(&status);
  ASSERT_TRUE(ledger) << ledger.error().message();
  put_ledger(status, *ledger);

  EXPECT_EQ(json::int_at(status, {"later", "a"}), 1);
}

TEST(Ledger, NoticesAStateThatSomebodyElseWrote) {
  const Decision decision = begun(step_to("a"));
  json::Value status = json::Object();
  put_ledger(status, decision.ledger());
  EXPECT_FALSE(parse_ledger(&status)->is_foreign);

  status.as_object()["state"] = R"({"value":"nowhere"})";
  EXPECT_TRUE(parse_ledger(&status)->is_foreign);
  put_ledger(status, *parse_ledger(&status));
  EXPECT_TRUE(parse_ledger(&status)->is_foreign) << "written before the machine was asked";

  const json::Value published = json::Object{{"state", R"({"value":"idle"})"}};
  EXPECT_TRUE(parse_ledger(&published)->is_foreign);
}

TEST(Ledger, NamesEveryActiveState) {
  EXPECT_THAT(active_states("idle"), ElementsAre("idle"));
  EXPECT_THAT(active_states(R"({"a":"b","c":{"d":"e"}})"),
              ElementsAre("a", "a.b", "c", "c.d", "c.d.e"));
  // More than a vector has room for before it moves.
  EXPECT_THAT(active_states(R"({"a":{"b":"c","d":"e","f":{"g":"h","i":"j"}}})"),
              ElementsAre("a", "a.b", "a.b.c", "a.d", "a.d.e", "a.f", "a.f.g", "a.f.g.h", "a.f.i",
                          "a.f.i.j"));
  EXPECT_THAT(active_states(""), IsEmpty());
}

TEST(StatePathBytes, CountsAnOuterNameForEachInnerState) {
  EXPECT_EQ(state_path_bytes("idle"), 4U);
  EXPECT_EQ(state_path_bytes(R"({"abc":{"d":{},"e":{}}})"), 4U + 6U + 6U) << "with their dots";
  EXPECT_EQ(state_path_bytes("{"), 0U);
  const std::string name(limits::kWorkflowPathBytesMax, 'x');
  EXPECT_THAT(active_states(R"({")" + name + R"(":{}})"), IsEmpty());
}

}  // namespace
}  // namespace hangar::workflows
