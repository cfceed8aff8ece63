// Decisions with the machines that the tree builds: what a machine's actors need from a ledger
// across restarts of the host.
#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/result.h"
#include "base/time.h"
#include "io/file.h"
#include "json/value.h"
#include "wasm/limits.h"
#include "wasm/test_guests.h"
#include "workflows/decision.h"
#include "workflows/ledger.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::workflows {
namespace {

using abi::statemachine::Machine;
using abi::statemachine::Step;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const WallTime kBegin = *parse_rfc3339("2026-04-08T12:00:00Z");

class ActorsTest : public testing::TestWithParam<const char*> {
 public:
  static void SetUpTestSuite() {
    rig = std::make_unique<wasm::GuestRig>();
    directory = std::make_unique<wasm::TemporaryDirectory>();
    runtime =
        std::make_unique<abi::statemachine::Runtime>(rig->cache(), directory->path() / "images");
  }
  static void TearDownTestSuite() {
    runtime.reset();
    directory.reset();
    rig.reset();
  }

  void SetUp() override {
    auto bytes = io::read_file(std::filesystem::path(HANGAR_MACHINES_DIR) / GetParam(),
                               limits::kModuleBytesMax);
    ASSERT_TRUE(bytes) << GetParam();
    auto loaded =
        rig->await(runtime->load(std::make_shared<const std::string>(*std::move(bytes)), {}, {}));
    ASSERT_TRUE(loaded) << loaded.error().message();
    machine_ = *std::move(loaded);
  }

  // One lifetime of a host: until nothing is left to do, or until the host is killed.
  void live(std::uint32_t odds = 0) {
    Decision decision(ledger_, {.key = {.namespace_ = "team", .name = "family"}, .uid = "0a1b"});
    while (!dies(odds)) {
      const Decision::Next next = decision.next(now_);
      if (std::holds_alternative<Decision::Start>(next)) {
        take(decision.on_started(
            value_of(rig->await(machine_->start(R"({"name":"n1","rest":60000})", {}))),
            {.sha256 = "abc"}, "r1", now_));
      } else if (std::holds_alternative<Decision::Ask>(next)) {
        take(decision.on_decided(
            value_of(rig->await(
                machine_->step(decision.ledger().state, json::dump(decision.event().body), {}))),
            now_));
      } else if (std::holds_alternative<Decision::Write>(next)) {
        store(decision.ledger());
        decision.on_written();
      } else if (const auto* const execute = std::get_if<Decision::Execute>(&next)) {
        carry_out(decision, execute->id);
      } else {
        return;
      }
    }
  }

  void signal(const std::string& type) {
    Decision decision(ledger_, {.key = {.namespace_ = "team", .name = "family"}, .uid = "0a1b"});
    ASSERT_TRUE(decision.on_signal(fmt::format("{}", ++signals_), json::Object{{"type", type}}));
    store(decision.ledger());
    live();
  }

  void wait(Duration duration) {
    now_ += std::chrono::duration_cast<WallTime::duration>(duration);
    live();
  }

  // Ids of all timers, in the form that cancels them.
  std::vector<std::string> timers() const {
    std::vector<std::string> ids;
    for (const RunningTimer& timer : ledger_.timers)
      ids.push_back(timer.id.substr(0, timer.id.find(':')));
    return ids;
  }
  json::Value context() const {
    const json::Value state = *json::parse(ledger_.state);
    const json::Value* const found = json::find(state, {"context"});
    return found == nullptr ? json::Value() : *found;
  }
  std::string seen() const {
    const json::Value context = this->context();
    const json::Value* const found = json::find(context, {"seen"});
    return found == nullptr ? std::string() : json::dump(*found);
  }

  inline static std::unique_ptr<wasm::GuestRig> rig;
  inline static std::unique_ptr<wasm::TemporaryDirectory> directory;
  inline static std::unique_ptr<abi::statemachine::Runtime> runtime;

  Ledger ledger_;  // As the API server stores it.
  WallTime now_ = kBegin;
  bool is_failing_ = false;  // The action that a machine requests fails.
  int done_ = 0;

 private:
  bool dies(std::uint32_t odds) { return odds > 0 && random_() % odds == 0; }

  static Step value_of(Result<Step> step) {
    EXPECT_TRUE(step) << step.error().message();
    return step ? *std::move(step) : Step{};
  }
  static void take(const Result<>& taken) { ASSERT_TRUE(taken) << taken.error().message(); }
  void store(const Ledger& ledger) {
    json::Value status = json::Object();
    put_ledger(status, ledger);
    Result<Ledger> read = parse_ledger(&status);
    ASSERT_TRUE(read) << read.error().message();
    ledger_ = *std::move(read);
  }
  void carry_out(Decision& decision, std::int64_t id) {
    ASSERT_NE(ledger_.find_action(id), nullptr) << "carried out before it was written";
    if (is_failing_) {
      (void)decision.on_failed(id, {.reason = "Denied", .message = "may not", .is_final = true}, {},
                               0, now_);
      return;
    }
    ++done_;
    decision.on_done(id, json::Object{{"type", "K8S_RESOURCE_CREATED"}, {"resourceName", "n1"}});
  }

  std::shared_ptr<Machine> machine_;
  std::mt19937_64 random_{7};
  int signals_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Majors, ActorsTest,
                         testing::Values("family_v4.js", "family_v5.js", "family_entry_v4.js"));

TEST_P(ActorsTest, ADelayOfAnActorIsOverForWhateverHostComesLater) {
  live();
  ASSERT_EQ(ledger_.value, "making");
  ASSERT_THAT(ledger_.actors, SizeIs(1));
  EXPECT_EQ(ledger_.actors[0].id, "worker#1");
  EXPECT_EQ(ledger_.actors[0].value, "resting") << "it got the event of its action";
  ASSERT_THAT(timers(), ElementsAre("worker#1"));
  EXPECT_EQ(ledger_.timers[0].due, kBegin + minutes(1));

  wait(seconds(59));
  EXPECT_EQ(ledger_.value, "making");
  wait(seconds(1));

  EXPECT_EQ(ledger_.value, "watching");
  EXPECT_EQ(json::string_at(context(), {"made"}), "n1") << "its output";
  EXPECT_THAT(timers(), ElementsAre("watcher/clock#3"));
}

TEST_P(ActorsTest, KilledHostsRepeatNothingOfWhatActorsAskFor) {
  while (ledger_.value != "watching") {
    live(3);
    now_ += seconds(7);
    ASSERT_LT(now_ - kBegin, minutes(60)) << "no progress";
  }

  EXPECT_EQ(ledger_.next_action, 2) << "it was asked for once";
  EXPECT_EQ(json::string_at(context(), {"made"}), "n1");
}

TEST_P(ActorsTest, ADelayOfAnActorThatIsStoppedIsNeverOver) {
  live();
  ASSERT_THAT(timers(), ElementsAre("worker#1"));

  signal("GIVE_UP");
  EXPECT_EQ(ledger_.value, "idle");
  EXPECT_THAT(timers(), IsEmpty());
  EXPECT_THAT(ledger_.actors, IsEmpty());
  signal("AGAIN");
  ASSERT_THAT(timers(), ElementsAre("worker#2"));
  const WallTime due = ledger_.timers[0].due;

  wait(seconds(59));
  EXPECT_EQ(ledger_.value, "making");
  EXPECT_EQ(ledger_.timers.at(0).due, due);
}

TEST_P(ActorsTest, AnActorIsToldThatItsActionFailedAndTellsTheOneAbove) {
  is_failing_ = true;

  live();

  EXPECT_EQ(ledger_.value, "broken") << "it threw";
  EXPECT_EQ(json::string_at(context(), {"why"}), "bad disk");
  EXPECT_THAT(ledger_.actors, IsEmpty());
  EXPECT_EQ(ledger_.failure, "") << "somebody knew it";
}

TEST_P(ActorsTest, SpawnedActorsLiveOnFromStepToStep) {
  live();
  wait(minutes(1));
  ASSERT_EQ(ledger_.value, "watching");

  signal("ADD");
  signal("LATER");
  wait(seconds(5));
  EXPECT_EQ(seen(), R"(["counted 1","counted 2"])");
  wait(minutes(11));
  EXPECT_EQ(seen(), R"(["counted 1","counted 2","ticked"])");
  EXPECT_THAT(timers(), ElementsAre("watcher/clock#3")) << "and again";
  signal("STOP");
  EXPECT_THAT(timers(), IsEmpty());
  signal("END");
  EXPECT_TRUE(ledger_.is_finished());
  EXPECT_THAT(json::dump(*ledger_.output), HasSubstr(R"("made":"n1")"));
}

}  // namespace
}  // namespace hangar::workflows
