// What an operator does with its guest, which is a script here.
#include "operators/running_operator.h"

#include "abi/kube_runtime/carried_guest.h"
#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/messages.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/reservation_queue.h"
#include "gateway/gateway.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "operators/guest_reviews.h"
#include "operators/life.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"
#include "operators/operator_modules.h"
#include "operators/operator_series.h"
#include "operators/outbound.h"
#include "operators/sleep_planner.h"
#include "output/log_files.h"
#include "output/log_writer.h"
#include "tenants/rules.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/test_guests.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

using abi::kube_runtime::CarriedGuest;
using abi::kube_runtime::Guest;
using abi::kube_runtime::GuestOptions;
using abi::kube_runtime::Guests;
using abi::kube_runtime::HttpRequest;
using abi::kube_runtime::Listener;
using abi::kube_runtime::TurnOutcome;
using abi::kube_runtime::Wakeup;
using limits::kMiB;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What all guests do, and what they have done.
struct Script {
  explicit Script(io::Loop& on) : loop(on), let_go(on) {}

  io::Loop& loop;
  std::deque<TurnOutcome> outcomes;  // Of the next turns; after them, turns succeed.
  std::optional<Error> sleep_error;
  std::uint64_t memory_bytes = kMiB;
  bool holds_wakes = false;  // Until let_go, or until the turn is stopped.
  io::Event let_go;
  bool loads_ahead = false;
  // What it takes to suspend a guest and to resume it: wall time, and processor time of each.
  Duration suspend_time{};
  Duration resume_time{};
  Duration cpu_time{};
  std::vector<std::string> acts;
  Guests::Events events;  // Of the last guest.
};

// Takes reviews, and answers each in the turn that it is handed over in.
class ScriptedGuest final : public Guest {
 public:
  explicit ScriptedGuest(Script& script) : script_(script) {}
  ~ScriptedGuest() override { script_.acts.emplace_back("gone"); }

  io::Task<TurnOutcome> start(std::stop_token, budget::Consumer) override {
    script_.acts.emplace_back("start");
    is_resident_ = true;
    co_return next_outcome();
  }
  io::Task<TurnOutcome> wake(std::vector<Wakeup> wakeups, std::stop_token stop,
                             budget::Consumer) override {
    script_.acts.push_back(fmt::format("wake {}", wakeups.size()));
    const bool was_asleep = !is_resident_;
    co_await resume();
    while (script_.holds_wakes && !stop.stop_requested())
      (void)co_await script_.let_go.wait(stop);
    if (stop.stop_requested()) {
      co_return TurnOutcome{.ended = fail(ErrorKind::Cancelled, "stopping")};
    }
    TurnOutcome outcome = next_outcome();
    outcome.was_asleep = was_asleep;
    if (was_asleep) {
      outcome.resume_time = script_.resume_time;
      outcome.resume_cpu_time = script_.cpu_time;
    }
    if (!outcome.ended) co_return outcome;
    for (const Wakeup& wakeup : wakeups)
      outcome.answers.push_back({.id = wakeup.id, .status = 200, .body = wakeup.bytes});
    co_return outcome;
  }
  io::Task<Result<Loaded>> load(std::stop_token, budget::Consumer) override {
    script_.acts.emplace_back("load");
    if (is_resident_) co_return Loaded{};
    co_await resume();
    co_return Loaded{.resume_time = script_.resume_time, .cpu_time = script_.cpu_time};
  }
  [[nodiscard]] bool listens(Listener listener) const override {
    return listener == Listener::Webhooks;
  }
  [[nodiscard]] Result<Inbound> hand_in(Listener, const HttpRequest& request) override {
    ++last_id_;
    return Inbound{.id = last_id_, .wakeup = {.id = last_id_, .bytes = request.body}};
  }
  void forget(std::uint64_t) override {}
  [[nodiscard]] std::uint64_t memory_bytes_needed() const override {
    return is_resident_ ? 0 : script_.memory_bytes;
  }
  void provide(std::optional<budget::Reservation> memory) override { memory_ = std::move(memory); }
  Result<CarriedGuest> carry() override {
    return fail(ErrorKind::Unavailable, "a script is not carried");
  }
  io::Task<Result<Duration>> sleep(budget::Tenant) override {
    script_.acts.emplace_back("sleep");
    if (script_.sleep_error) co_return std::unexpected(*script_.sleep_error);
    co_await pass(script_.suspend_time);
    is_resident_ = false;
    memory_.reset();
    co_return script_.cpu_time;
  }
  [[nodiscard]] std::uint64_t resident_bytes() const override {
    return is_resident_ ? script_.memory_bytes : 0;
  }
  [[nodiscard]] std::uint64_t disk_bytes() const override { return 0; }

 private:
  TurnOutcome next_outcome() {
    if (script_.outcomes.empty()) return {};
    TurnOutcome outcome = std::move(script_.outcomes.front());
    script_.outcomes.pop_front();
    return outcome;
  }

  io::Task<void> pass(Duration time) {
    if (time > Duration::zero()) (void)co_await script_.loop.sleep(time, {});
  }
  io::Task<void> resume() {
    if (is_resident_) co_return;
    co_await pass(script_.resume_time);
    is_resident_ = true;
  }

  Script& script_;
  bool is_resident_ = false;
  std::uint64_t last_id_ = 0;
  std::optional<budget::Reservation> memory_;
};

class ScriptedGuests final : public Guests {
 public:
  explicit ScriptedGuests(Script& script) : script_(script) {}

  std::unique_ptr<Guest> make(std::shared_ptr<const wasm::SleepableModule>, GuestOptions,
                              Events events) override {
    script_.events = std::move(events);
    return std::make_unique<ScriptedGuest>(script_);
  }
  Result<std::unique_ptr<Guest>> take_over(std::shared_ptr<const wasm::SleepableModule>,
                                           GuestOptions, Events, budget::Tenant,
                                           CarriedGuest) override {
    return fail(ErrorKind::Corrupt, "nothing was carried");
  }
  void discard(CarriedGuest) override {}
  [[nodiscard]] bool loads_ahead() const override { return script_.loads_ahead; }
  [[nodiscard]] bool has_places_alone() const override { return false; }

 private:
  Script& script_;
};

class RunningOperatorTest : public testing::Test {
 public:
  static void SetUpTestSuite() {
    accounts = std::make_unique<budget::Accounts>(
        budget::Accounts::Limits{.host_bytes_max = 64 * kMiB, .tenant_bytes_max = 64 * kMiB});
    rig = std::make_unique<wasm::GuestRig>(wasm::Engine::Options{.memory = accounts.get()});
    images = std::make_unique<wasm::TemporaryDirectory>();
    const auto bytes = wasm::GuestRig::bytes_of("kube_runtime_journal");
    auto loaded = rig->await(wasm::SleepableModule::load(rig->cache(), wasm::Digest::of(*bytes),
                                                         bytes, images->path(), {}));
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message();
    module = *std::move(loaded);
  }
  static void TearDownTestSuite() {
    module.reset();
    images.reset();
    rig.reset();
    accounts.reset();
  }

 protected:
  enum class Time : std::uint8_t { Real, Virtual };
  explicit RunningOperatorTest(Time time = Time::Real)
      : time_(time == Time::Virtual
                  ? std::make_unique<io::VirtualTime>(io::VirtualTime::Options{.seed = 1})
                  : nullptr),
        simulated_loop_(time_ ? std::make_unique<io::Loop>() : nullptr),
        loop_(time_ ? *simulated_loop_ : rig->loop()) {
    spec_.key = {.namespace_ = "team", .name = "prices"};
    spec_.sleep.after = Duration::zero();
  }
  ~RunningOperatorTest() override {
    stop();
    operator_.reset();
    // Requests that were begun in the last turn of the loop, and their ends, have been posted only:
    // the loop outlives the gateway that they are for.
    bool has_come_to_the_end = false;
    loop_.post([&has_come_to_the_end] { has_come_to_the_end = true; });
    loop_.run_until([&] { return has_come_to_the_end && loop_.spawned_count() == 0; });
  }

  void start() {
    operator_ = std::make_shared<RunningOperator>(
        parts_, spec_, OperatorModule{.code = module, .resolved = "configmap://team/m"});
    operator_->start();
  }
  // The guest waits for memory until the result gives back what it holds of it.
  budget::Reservation start_without_room() {
    auto others = accounts->reserve({.tenant = budget::Tenant::of_namespace("others"), .name = "x"},
                                    63 * kMiB);
    EXPECT_TRUE(others.has_value());
    script_.memory_bytes = 32 * kMiB;
    start();
    run_until([] { return rig->engine().memory()->waiting_count() == 1; });
    return std::move(others).value();
  }
  void stop() {
    if (!operator_) return;
    bool has_stopped = false;
    loop_.spawn([](RunningOperator& running, bool& done) -> io::Task<void> {
      co_await running.stop();
      done = true;
    }(*operator_, has_stopped));
    run_until([&has_stopped] { return has_stopped; });
  }
  // An event for the guest. The answer comes later.
  std::shared_ptr<std::optional<GuestReviews::Answer>> review(std::string body) {
    auto answer = std::make_shared<std::optional<GuestReviews::Answer>>();
    loop_.spawn([](std::shared_ptr<RunningOperator> running, std::string text,
                   std::shared_ptr<std::optional<GuestReviews::Answer>> into) -> io::Task<void> {
      *into = co_await running->review(
          {.method = "POST", .uri = "/validate", .body = std::move(text)}, {});
    }(operator_, std::move(body), answer));
    return answer;
  }
  void run_until(const std::function<bool()>& done) {
    bool is_late = false;
    const io::Loop::Timer timer =
        loop_.after(std::chrono::seconds(60), [&is_late] { is_late = true; });
    loop_.run_until([&] { return is_late || done(); });
    EXPECT_FALSE(is_late);
  }
  void run_until(Phase phase) {
    run_until([this, phase] { return operator_->life().phase() == phase; });
  }
  // Counted for requests and answers.
  [[nodiscard]] std::uint64_t answers_bytes() const { return answers_.held_bytes(); }

  inline static std::unique_ptr<budget::Accounts> accounts;
  inline static std::unique_ptr<wasm::GuestRig> rig;

  inline static std::unique_ptr<wasm::TemporaryDirectory> images;
  inline static std::shared_ptr<const wasm::SleepableModule> module;

  const std::unique_ptr<io::VirtualTime> time_;
  const std::unique_ptr<io::Loop> simulated_loop_;
  io::Loop& loop_;
  wasm::TemporaryDirectory directory_;
  Operator spec_;
  Script script_{loop_};
  std::vector<std::string> failures_;
  bool may_load_ahead_ = true;
  Metrics metrics_;
  std::shared_ptr<RunningOperator> operator_;

 private:
  std::shared_ptr<kube::Credentials> nobody() {
    kube::Login login;
    login.cluster.server = "http://127.0.0.1:1";
    return std::make_shared<kube::Credentials>(loop_, std::move(login), Log());
  }

  http::Client http_{loop_};
  kube::Client client_{loop_, http_, nobody(), metrics_, Log()};
  kube::Cache cache_{loop_, client_, metrics_, Log()};
  kube::Discovery discovery_{client_};
  gateway::Gateway gateway_{{.loop = loop_,
                             .client = client_,
                             .cache = cache_,
                             .discovery = discovery_,
                             .metrics = metrics_,
                             .log = Log()}};
  Outbound outbound_{
      {.loop = loop_, .client = http_, .metrics = metrics_, .rules_of = [](const std::string&) {
         return std::make_shared<const tenants::Rules>();
       }}};
  budget::Accounts answers_{{}};
  output::LogWriter output_{loop_, output::LogFiles(directory_.path()), Log()};
  budget::FairSlots starts_{loop_, {.slots = 4}};
  budget::FairSlots large_starts_{loop_, {.slots = 4}};
  budget::FairSlots turns_{loop_, {.slots = 4}};
  OperatorMetrics of_all_{metrics_};
  OperatorSeriesPool series_{/*own_max=*/1};
  SleepPlanners planners_{metrics_};
  ScriptedGuests guests_{script_};
  const ReadInputs read_inputs_ = [](const Operator&,
                                     std::stop_token) -> io::Task<Result<GuestInputs>> {
    co_return GuestInputs();
  };
  const RunningOperator::Parts parts_{
      .loop = loop_,
      .engine = rig->engine(),
      .guests = guests_,
      .output = output_,
      .read_inputs = read_inputs_,
      .log = Log(),
      .starts = starts_,
      .large_starts = large_starts_,
      .turns = turns_,
      .requests = {.loop = loop_, .gateway = gateway_, .answers = answers_, .outbound = outbound_},
      .ledger = {.metrics = of_all_, .series = series_, .recorder = nullptr},
      .planners = planners_,
      .may_load_ahead = [this](const budget::Consumer&, std::uint64_t) { return may_load_ahead_; },
      .on_change = [](RunningOperator&) {},
      .on_failure = [this](RunningOperator&,
                           const Error& error) { failures_.push_back(error.message()); },
      .on_bound = [](RunningOperator&, const std::string&) {}};
};

TEST_F(RunningOperatorTest, StartsSleepsAndWakesForWhatArrives) {
  start();
  EXPECT_EQ(operator_->life().phase(), Phase::Starting);
  run_until(Phase::Asleep);
  EXPECT_EQ(operator_->resident_bytes(), 0U);
  EXPECT_EQ(accounts->held_bytes(), 0U);

  const auto answer = review("is it valid?");
  run_until([&answer] { return answer->has_value(); });
  ASSERT_TRUE((*answer)->has_value()) << (*answer)->error().message();
  EXPECT_EQ((**answer)->body, "is it valid?");
  run_until(Phase::Asleep);
  stop();

  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "wake 1", "sleep", "gone"));
  EXPECT_EQ(operator_->ledger().figures().wakes, 1U);
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(RunningOperatorTest, WhatArrivesTogetherIsOneTurn) {
  start();
  run_until(Phase::Asleep);

  const auto first = review("1");
  const auto second = review("2");
  run_until([&] { return first->has_value() && second->has_value(); });

  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "wake 2"));
}

TEST_F(RunningOperatorTest, AFailedTurnEndsTheGuestAndAnotherStartsLater) {
  start();
  run_until(Phase::Asleep);
  script_.outcomes.push_back({.ended = fail(ErrorKind::GuestFault, "unreachable executed")});

  const auto answer = review("1");
  run_until([this] { return !failures_.empty(); });

  EXPECT_THAT(failures_, ElementsAre("unreachable executed"));
  EXPECT_EQ(operator_->troubles().last_error, "unreachable executed");
  EXPECT_EQ(operator_->ledger().figures().failures, 1U);
  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "wake 1", "gone"));
  EXPECT_EQ(operator_->life().phase(), Phase::BackOff);
  run_until([&answer] { return answer->has_value(); });
  EXPECT_EQ((*answer)->error().kind(), ErrorKind::Unavailable);
  const auto meanwhile = review("2");
  run_until([&meanwhile] { return meanwhile->has_value(); });
  EXPECT_THAT((*meanwhile)->error().message(), HasSubstr("BackOff"));

  run_until(Phase::Asleep);
  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "wake 1", "gone", "start", "sleep"));
  EXPECT_EQ(operator_->life().start_count(), 2U);
}

// The operator says itself for how long its rate limit holds them back.
TEST_F(RunningOperatorTest, RequestsThatAreHeldBackCountWithTheirHeaders) {
  spec_.limits.requests_per_second = 1;
  TurnOutcome outcome;
  for (std::uint64_t id = 0; id < 10; ++id) {
    HttpRequest request{.method = "GET", .uri = "/", .headers = {}, .body = {}};
    request.headers.assign(4000, {"a", ""});
    outcome.calls.push_back({.id = id, .is_stream = false, .request = std::move(request)});
  }
  script_.outcomes.push_back(std::move(outcome));

  start();
  run_until([this] { return operator_->life().phase() != Phase::Starting; });

  EXPECT_GT(answers_bytes(), kMiB);
  stop();
  EXPECT_EQ(answers_bytes(), 0U);
}

TEST_F(RunningOperatorTest, ManyDelaysCountWhileTheGuestSleeps) {
  TurnOutcome outcome;
  for (std::uint64_t id = 0; id < 5000; ++id)
    outcome.delays.push_back({.id = id, .duration = std::chrono::hours(1)});
  script_.outcomes.push_back(std::move(outcome));

  start();
  run_until(Phase::Asleep);

  EXPECT_GT(answers_bytes(), kMiB);
  outcome = {};
  for (std::uint64_t id = 0; id < 4900; ++id)
    outcome.cancelled.push_back(id);
  script_.outcomes.push_back(std::move(outcome));
  const auto answer = review("wake");
  run_until([&answer] { return answer->has_value(); });
  run_until(Phase::Asleep);
  EXPECT_EQ(answers_bytes(), 0U);
}

TEST_F(RunningOperatorTest, AGuestThatExitsHasCompletedOrFailed) {
  script_.outcomes.push_back({.exit_code = 0});
  start();
  run_until(Phase::Completed);
  stop();
  EXPECT_THAT(failures_, IsEmpty());

  script_.outcomes.push_back({.exit_code = 3});
  start();
  run_until([this] { return !failures_.empty(); });
  EXPECT_EQ(operator_->life().phase(), Phase::BackOff);
  EXPECT_THAT(failures_, ElementsAre("the guest exited with code 3"));
}

TEST_F(RunningOperatorTest, AGuestThatIsLostWithoutATurnStartsAnew) {
  start();
  run_until(Phase::Asleep);

  script_.events.on_lost(Error(ErrorKind::GuestFault, "its process has exited"));
  run_until([this] { return !failures_.empty(); });

  EXPECT_EQ(operator_->life().phase(), Phase::BackOff);
  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "gone"));
}

TEST_F(RunningOperatorTest, IsStoppedWhileATurnIsUnderWay) {
  start();
  run_until(Phase::Asleep);
  script_.holds_wakes = true;
  const auto answer = review("1");
  run_until([this] { return script_.acts.back() == "wake 1"; });

  stop();

  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "wake 1", "gone"));
  EXPECT_EQ(accounts->held_bytes(), 0U);
  run_until([&answer] { return answer->has_value(); });
  EXPECT_EQ((*answer)->error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(RunningOperatorTest, WhatArrivesInATurnIsForTheNextOne) {
  start();
  run_until(Phase::Asleep);
  script_.holds_wakes = true;
  const auto first = review("1");
  run_until([this] { return script_.acts.back() == "wake 1"; });
  const auto second = review("2");

  script_.holds_wakes = false;
  script_.let_go.notify_all();
  run_until([&] { return first->has_value() && second->has_value(); });

  EXPECT_TRUE((*first)->has_value() && (*second)->has_value());
  EXPECT_EQ(std::ranges::count(script_.acts, "wake 1"), 2);
}

TEST_F(RunningOperatorTest, WaitsForMemoryThatOthersHold) {
  budget::Reservation others = start_without_room();

  EXPECT_EQ(operator_->life().phase(), Phase::Starting);
  EXPECT_FALSE(operator_->may_be_evicted()) << "it holds nothing";
  EXPECT_NE(rig->engine().memory()->largest_wait(budget::Tenant::host()), nullptr);
  EXPECT_THAT(script_.acts, IsEmpty());
  ASSERT_TRUE(others.resize(0).has_value());
  run_until(Phase::Asleep);
  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep"));
}

TEST_F(RunningOperatorTest, IsStoppedWhileItWaitsForMemory) {
  const budget::Reservation others = start_without_room();

  stop();

  EXPECT_EQ(rig->engine().memory()->waiting_count(), 0U);
  EXPECT_THAT(script_.acts, ElementsAre("gone"));
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(RunningOperatorTest, FailsWhereAllMemoryWouldNotSuffice) {
  script_.memory_bytes = 65 * kMiB;
  start();

  run_until([this] { return !failures_.empty(); });

  EXPECT_EQ(operator_->life().phase(), Phase::BackOff);
  EXPECT_THAT(failures_.front(), HasSubstr("MiB"));
}

TEST_F(RunningOperatorTest, StaysResidentWhereItCannotSleepAndSaysWhy) {
  script_.sleep_error = Error(ErrorKind::Unavailable, "the disk is full");
  start();
  run_until([this] { return !operator_->troubles().sleep_problem.empty(); });

  EXPECT_EQ(operator_->troubles().sleep_problem, "the disk is full");
  EXPECT_EQ(operator_->life().phase(), Phase::Running);
  EXPECT_EQ(operator_->resident_bytes(), kMiB);
  const auto answer = review("1");
  run_until([&answer] { return answer->has_value(); });
  EXPECT_TRUE((*answer)->has_value()) << "it works on";
}

TEST_F(RunningOperatorTest, LeavesMemoryForOthersAndWakesForWhatWaits) {
  spec_.sleep.after = std::chrono::hours(1);
  start();
  run_until([this] { return operator_->life().is_resident(); });
  EXPECT_EQ(operator_->resident_bytes(), kMiB);

  operator_->evict();
  run_until(Phase::Asleep);

  EXPECT_EQ(accounts->held_bytes(), 0U);
  const auto answer = review("1");
  run_until([&answer] { return answer->has_value(); });
  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "wake 1"));
}

TEST_F(RunningOperatorTest, StartsAnewWhereItHasToLeaveMemoryAndCannotSleep) {
  spec_.sleep.kind = SleepPolicy::Kind::Never;
  script_.sleep_error = Error(ErrorKind::InvalidInput, "its module cannot sleep");
  start();
  run_until([this] { return operator_->life().is_resident(); });

  operator_->evict();
  run_until([this] { return !failures_.empty(); });

  EXPECT_THAT(failures_.front(), HasSubstr("had to make room"));
  EXPECT_EQ(operator_->life().phase(), Phase::BackOff);
  EXPECT_THAT(script_.acts, ElementsAre("start", "sleep", "gone"));
}

// Guests of the policy Predictive, whose wakes are minutes apart in virtual time.
class PredictiveOperatorTest : public RunningOperatorTest {
 protected:
  PredictiveOperatorTest() : RunningOperatorTest(Time::Virtual) {
    spec_.sleep = {.kind = SleepPolicy::Kind::Predictive,
                   .after = std::chrono::seconds(1),
                   .wake_latency = std::chrono::milliseconds(100)};
    script_.loads_ahead = true;
    script_.cpu_time = std::chrono::microseconds(500);
  }

  void pass_until(Instant then) {
    bool has_come = false;
    const io::Loop::Timer timer =
        loop_.after(then - io::Loop::now(), [&has_come] { has_come = true; });
    loop_.run_until([&has_come] { return has_come; });
  }
  // An event for the guest once in each period.
  void wake_each(Duration period, int count) {
    for (int wake = 0; wake < count; ++wake) {
      next_wake_ += period;
      pass_until(next_wake_);
      const auto answer = review("1");
      run_until([&answer] { return answer->has_value(); });
    }
  }
  double sum_of(const std::string& name, const std::string& outcome = {}) {
    double sum = 0;
    for (const Metrics::Family& family : metrics_.collect()) {
      if (family.name != name) continue;
      for (const Metrics::Sample& sample : family.samples) {
        if (outcome.empty() || std::ranges::any_of(sample.labels, [&outcome](const auto& label) {
              return label.second == outcome;
            })) {
          sum += sample.value;
        }
      }
    }
    return sum;
  }

  Instant next_wake_ = io::Loop::now();
};

TEST_F(PredictiveOperatorTest, IsLoadedBeforeItsNextPredictedWake) {
  constexpr std::chrono::minutes kPeriod{10};
  script_.resume_time = std::chrono::milliseconds(300);
  start();
  run_until(Phase::Asleep);
  wake_each(kPeriod, 20);
  const double late_before = sum_of("hangar_operator_late_wakes_total");
  EXPECT_GT(late_before, 0) << "nothing was known of the first ones";
  run_until(Phase::Asleep);
  script_.acts.clear();

  pass_until(next_wake_ + kPeriod / 2);
  EXPECT_EQ(operator_->life().phase(), Phase::Asleep);
  EXPECT_THAT(script_.acts, IsEmpty()) << "it is not loaded long before";
  pass_until(next_wake_ + kPeriod - std::chrono::milliseconds(50));
  EXPECT_EQ(operator_->life().phase(), Phase::Running);
  EXPECT_THAT(script_.acts, ElementsAre("load"));
  wake_each(kPeriod, 1);

  EXPECT_THAT(script_.acts, ElementsAre("load", "wake 1"));
  EXPECT_EQ(sum_of("hangar_operator_late_wakes_total"), late_before);
  EXPECT_GE(sum_of("hangar_operator_loads_ahead_total", "used"), 1);
  EXPECT_EQ(sum_of("hangar_operator_loads_ahead_total", "wasted"), 0);
  // The event after this one does not come.
  run_until(Phase::Asleep);
  script_.acts.clear();
  pass_until(next_wake_ + kPeriod + kPeriod / 2);
  EXPECT_EQ(operator_->life().phase(), Phase::Asleep);
  EXPECT_THAT(script_.acts, ElementsAre("load", "sleep"));
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(PredictiveOperatorTest, IsNotLoadedWhereNoMemoryIsToSpare) {
  constexpr std::chrono::minutes kPeriod{10};
  may_load_ahead_ = false;
  script_.resume_time = std::chrono::milliseconds(300);
  start();
  run_until(Phase::Asleep);
  wake_each(kPeriod, 20);

  EXPECT_EQ(std::ranges::count(script_.acts, "load"), 0);
  EXPECT_EQ(std::ranges::count(script_.acts, "wake 1"), 20);
  EXPECT_GE(sum_of("hangar_operator_loads_ahead_total", "refused"), 1);
}

// A sleep costs its processor time, however long it waits for the disk.
TEST_F(PredictiveOperatorTest, SleepsAtOnceThoughSuspendsWaitForTheDisk) {
  constexpr std::chrono::seconds kPeriod{30};
  script_.memory_bytes = 16 * kMiB;
  script_.suspend_time = std::chrono::seconds(2);
  start();
  run_until(Phase::Asleep);
  wake_each(kPeriod, 20);

  pass_until(next_wake_ + std::chrono::seconds(3));
  EXPECT_EQ(operator_->life().phase(), Phase::Asleep);
  EXPECT_EQ(std::ranges::count(script_.acts, "sleep"), 21);
}

}  // namespace
}  // namespace hangar::operators
