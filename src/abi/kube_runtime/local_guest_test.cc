#include "abi/kube_runtime/local_guest.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "base/consumer.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/loop.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/snapshot/handed_module.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleepable_native.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Runs each test twice: with guests that stay in memory, and with guests that are suspended after
// every turn. The results must be the same.
class GuestTest : public testing::TestWithParam<bool> {
 public:
  // One engine for all tests: reserving its pool takes seconds under ThreadSanitizer.
  static void SetUpTestSuite() {
    shared_rig = std::make_unique<wasm::GuestRig>();
    shared_runtime = std::make_unique<Runtime>(shared_rig->engine());
    directory = std::make_unique<wasm::TemporaryDirectory>();
    auto opened = wasm::SnapshotStore::open(directory->path() / "snapshots");
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    store = *std::move(opened);
    shared_guests = std::make_unique<LocalGuests>(*shared_runtime, *store);
  }
  static void TearDownTestSuite() {
    shared_guests.reset();
    store.reset();
    directory.reset();
    shared_runtime.reset();
    shared_rig.reset();
  }

  std::shared_ptr<const wasm::SleepableModule> load(const std::string& name) {
    const auto bytes = wasm::GuestRig::bytes_of(name);
    auto module = rig_.await(wasm::SleepableModule::load(rig_.cache(), wasm::Digest::of(*bytes),
                                                         bytes, directory->path() / "images", {}));
    EXPECT_TRUE(module.has_value()) << name << ": " << module.error().message();
    return module ? *std::move(module) : nullptr;
  }

  std::unique_ptr<LocalGuest> make(const std::string& name, GuestOptions options = {}) {
    return std::make_unique<LocalGuest>(guests_, load(name), std::move(options));
  }

  TurnOutcome start(LocalGuest& guest, std::stop_token stop = {}) {
    return after_turn(guest, rig_.await(guest.start(std::move(stop))));
  }
  TurnOutcome wake(LocalGuest& guest, std::vector<Wakeup> wakeups, std::stop_token stop = {}) {
    return after_turn(guest, rig_.await(guest.wake(std::move(wakeups), std::move(stop))));
  }

  // Returns a guest that has started and waits.
  std::unique_ptr<LocalGuest> make_waiting(const std::string& name, GuestOptions options = {}) {
    auto guest = make(name, std::move(options));
    const TurnOutcome outcome = start(*guest);
    EXPECT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
    EXPECT_EQ(outcome.exit_code, std::nullopt);
    return guest;
  }

  static void expect_error(const TurnOutcome& outcome, ErrorKind kind, const std::string& text) {
    ASSERT_FALSE(outcome.ended.has_value()) << text;
    EXPECT_EQ(name_of(outcome.ended.error().kind()), name_of(kind));
    EXPECT_THAT(outcome.ended.error().message(), HasSubstr(text));
    EXPECT_EQ(outcome.exit_code, std::nullopt);
    EXPECT_THAT(outcome.calls, IsEmpty());
    EXPECT_THAT(outcome.delays, IsEmpty());
  }
  void expect_start_error(const std::string& name, ErrorKind kind, const std::string& text,
                          GuestOptions options = {}) {
    SCOPED_TRACE(name);
    expect_error(start(*make(name, std::move(options))), kind, text);
  }
  // Expects the error when the guest's first delay wakes it with three bytes.
  void expect_wakeup_error(const std::string& name, ErrorKind kind, const std::string& text,
                           GuestOptions options = {}) {
    SCOPED_TRACE(name);
    const auto guest = make_waiting(name, std::move(options));
    expect_error(wake(*guest, {{.id = 0, .bytes = "abc"}}), kind, text);
    expect_error(wake(*guest, {{.id = 0, .bytes = "abc"}}), ErrorKind::InvalidInput,
                 "no longer exists");
  }
  void expect_exit(const std::string& name, std::uint32_t code, GuestOptions options = {}) {
    SCOPED_TRACE(name);
    const TurnOutcome outcome = start(*make(name, std::move(options)));
    ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_THAT(outcome.delays, IsEmpty());
  }

  static std::vector<std::string> texts_of(const TurnOutcome& outcome) {
    std::vector<std::string> texts;
    for (const OutputLine& line : outcome.output)
      texts.push_back(line.text);
    return texts;
  }

 private:
  TurnOutcome after_turn(LocalGuest& guest, TurnOutcome outcome) {
    if (outcome.ended && !outcome.exit_code && GetParam()) {
      const Result<Duration> slept = rig_.await(guest.sleep());
      EXPECT_TRUE(slept.has_value()) << slept.error().message();
      EXPECT_TRUE(guest.is_asleep());
    }
    return outcome;
  }

 protected:
  inline static std::unique_ptr<wasm::GuestRig> shared_rig;
  inline static std::unique_ptr<Runtime> shared_runtime;
  inline static std::unique_ptr<wasm::TemporaryDirectory> directory;
  inline static std::unique_ptr<wasm::SnapshotStore> store;
  inline static std::unique_ptr<LocalGuests> shared_guests;
  wasm::GuestRig& rig_ = *shared_rig;
  Runtime& runtime_ = *shared_runtime;
  LocalGuests& guests_ = *shared_guests;
};

INSTANTIATE_TEST_SUITE_P(Staying, GuestTest, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Sleeping, GuestTest, testing::Values(true));

const GuestOptions kShort{.cpu_time_max = milliseconds(50)};

TEST_P(GuestTest, StartTellsWhatItAskedFor) {
  const auto guest = make("kube_runtime_journal");

  const TurnOutcome outcome = start(*guest);

  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_EQ(outcome.exit_code, std::nullopt);
  ASSERT_EQ(outcome.calls.size(), 2U);
  EXPECT_EQ(outcome.calls[0].id, 0U);
  EXPECT_FALSE(outcome.calls[0].is_stream);
  EXPECT_EQ(outcome.calls[0].request, (HttpRequest{.method = "GET", .uri = "/"}));
  EXPECT_EQ(outcome.calls[1].id, 1U);
  EXPECT_TRUE(outcome.calls[1].is_stream);
  ASSERT_EQ(outcome.delays.size(), 1U);
  EXPECT_EQ(outcome.delays[0].id, 2U);
  EXPECT_EQ(outcome.delays[0].duration, milliseconds(1500));
  EXPECT_TRUE(guest->waits_for(2));
  EXPECT_FALSE(guest->waits_for(3));
}

TEST_P(GuestTest, WakeupsAreDeliveredInTheirOrderWithTheirBytes) {
  const auto guest = make_waiting("kube_runtime_journal");

  TurnOutcome outcome =
      wake(*guest,
           {{.id = 0, .bytes = "meta"}, {.id = 1, .bytes = "line"}, {.id = 0, .finished = true}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  // An empty body also has an address.
  EXPECT_THAT(texts_of(outcome), ElementsAre("1100bmeta", "2210bline", "3301b"));
  EXPECT_EQ(outcome.was_asleep, GetParam());

  outcome =
      wake(*guest, {{.id = 1, .bytes = "another"}, {.id = 2, .finished = true, .is_null = true}});
  EXPECT_THAT(texts_of(outcome), ElementsAre("4410banother", "5521n"));
  EXPECT_EQ(outcome.exit_code, std::nullopt);
}

TEST_P(GuestTest, IsLoadedWithoutATurnAndHasItsNextOneAsIfItHadNotSlept) {
  const auto guest = make_waiting("kube_runtime_journal");
  const bool was_asleep = guest->is_asleep();

  const Result<Guest::Loaded> loaded = rig_.await(guest->load({}));

  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  EXPECT_EQ(loaded->resume_time > Duration::zero(), was_asleep);
  EXPECT_FALSE(guest->is_asleep());
  EXPECT_TRUE(guest->waits_for(2));
  EXPECT_EQ(rig_.await(guest->load({}))->resume_time, Duration::zero());

  const TurnOutcome outcome = wake(*guest, {{.id = 0, .bytes = "meta"}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_FALSE(outcome.was_asleep);
}

TEST_P(GuestTest, IdsThatItDoesNotWaitForAreSkipped) {
  const auto guest = make_waiting("kube_runtime_journal");

  EXPECT_THAT(texts_of(wake(*guest, {{.id = 7, .bytes = "never asked for"},
                                     {.id = 2, .finished = true, .is_null = true},
                                     {.id = 2, .finished = true, .is_null = true}})),
              ElementsAre("1121n"));
  EXPECT_FALSE(guest->waits_for(2));
  const TurnOutcome nothing = wake(*guest, {{.id = 2, .bytes = "late"}});
  EXPECT_TRUE(nothing.ended.has_value());
  EXPECT_FALSE(nothing.was_asleep);
  EXPECT_THAT(nothing.output, IsEmpty());
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .bytes = "x"}})), ElementsAre("2210bx"));
}

TEST_P(GuestTest, ANullPointerHasNoLength) {
  const auto guest = make_waiting("kube_runtime_journal");
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .is_null = true, .bytes = "not for it"}})),
              ElementsAre("1110n"));
}

TEST_P(GuestTest, AnswersMayBeLargerThanItsMemoryWas) {
  const auto guest = make_waiting("kube_runtime_journal", {.output_bytes_max = 8 * limits::kMiB});
  const std::string large(4 * limits::kMiB, 'x');
  for (int times = 0; times < 2; ++times) {
    const TurnOutcome outcome = wake(*guest, {{.id = 1, .bytes = large}});
    ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
    std::size_t total = 0;
    for (const OutputLine& line : outcome.output)
      total += line.text.size();
    EXPECT_EQ(total, 5 + large.size());
  }
}

TEST_P(GuestTest, HasFinishedWhenNothingCanWakeIt) {
  expect_exit("exit_0", 0);
  expect_exit("kube_runtime_waits_for_nothing", 0);

  const auto guest = make_waiting("kube_runtime_journal");
  const TurnOutcome outcome = wake(*guest, {{.id = 0, .finished = true},
                                            {.id = 1, .finished = true, .is_null = true},
                                            {.id = 2, .finished = true, .is_null = true}});
  ASSERT_TRUE(outcome.ended.has_value());
  EXPECT_EQ(outcome.exit_code, 0U);
  EXPECT_EQ(outcome.output.size(), 3U);
  EXPECT_FALSE(guest->waits_for(0));
}

TEST_P(GuestTest, ExitCodesAreNoErrors) {
  expect_exit("exit_3", 3);
  expect_exit("exit_in_start", 5);
  expect_exit("kube_runtime_exit_in_start", 3);

  const auto guest = make_waiting("kube_runtime_exit_in_wakeup");
  const TurnOutcome outcome = wake(*guest, {{.id = 0, .finished = true, .is_null = true}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_EQ(outcome.exit_code, 5U);
  EXPECT_THAT(outcome.delays, IsEmpty());
  expect_error(wake(*guest, {{.id = 1, .is_null = true}}), ErrorKind::InvalidInput,
               "no longer exists");

  const auto leaves = make_waiting("kube_runtime_allocate_exits");
  EXPECT_EQ(wake(*leaves, {{.id = 0, .bytes = "abc"}}).exit_code, 7U);
}

TEST_P(GuestTest, ReactorsAreInitializedFirst) {
  const auto guest = make("kube_runtime_reactor");
  const TurnOutcome outcome = start(*guest);
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("initialize", "start"));
  EXPECT_EQ(outcome.delays.size(), 1U);

  const auto alone = make("kube_runtime_reactor_alone");
  EXPECT_EQ(start(*alone).delays.size(), 1U);
}

TEST_P(GuestTest, AGuestWithASchedulerRunsOnceAfterAllAnswersUntilItIsIdle) {
  const auto guest = make("kube_runtime_idle");

  // A poll that would not block finds the idle descriptor busy.
  TurnOutcome outcome = start(*guest);
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("1c", "1i"));
  EXPECT_EQ(outcome.calls.size(), 1U);
  // The guest's own delay, and the host's for the clock of the last poll.
  ASSERT_EQ(outcome.delays.size(), 2U);
  EXPECT_EQ(outcome.delays[0].id, 1U);
  EXPECT_EQ(outcome.delays[0].duration, milliseconds(60000));
  std::uint64_t timer = outcome.delays[1].id;
  EXPECT_LE(outcome.delays[1].duration, milliseconds(1500));
  EXPECT_TRUE(guest->waits_for(timer));

  // The end of the host's timer is not an answer for the guest.
  outcome = wake(*guest, {{.id = timer, .finished = true, .is_null = true}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("1i"));
  EXPECT_THAT(outcome.cancelled, IsEmpty());
  ASSERT_EQ(outcome.delays.size(), 1U);
  timer = outcome.delays[0].id;

  outcome = wake(*guest, {{.id = 0, .bytes = "a"}, {.id = 0, .bytes = "b"}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("w0", "w0", "1i"));
  EXPECT_THAT(outcome.cancelled, ElementsAre(0U, timer));
  EXPECT_THAT(outcome.delays, IsEmpty());
  EXPECT_FALSE(guest->waits_for(0));
  EXPECT_FALSE(guest->waits_for(timer));
}

TEST_P(GuestTest, AGuestWithASchedulerDealsWithEventsBeforeItGetsAnswers) {
  const auto guest = make_waiting("kube_runtime_idle");

  TurnOutcome outcome =
      wake(*guest, {{.id = 0, .is_event = true, .bytes = "event"}, {.id = 0, .bytes = "answer"}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("w0", "1i", "w0", "1i"));
}

TEST_P(GuestTest, AGuestWithASchedulerRunsOnceIfNoAnswerIsLeftAfterTheEvents) {
  const auto guest = make_waiting("kube_runtime_idle");

  // The event ends the call, so that nothing waits for the answer.
  const TurnOutcome outcome =
      wake(*guest, {{.id = 0, .finished = true, .is_event = true, .bytes = "event"},
                    {.id = 0, .bytes = "answer"}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("w0", "1i"));
}

TEST_P(GuestTest, TheHeadOfAWatchComesBeforeItsEvents) {
  const auto guest = make_waiting("kube_runtime_idle");

  TurnOutcome outcome =
      wake(*guest, {{.id = 0, .bytes = "head"}, {.id = 0, .is_event = true, .bytes = "event"}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("w0", "w0", "1i"));
}

TEST_P(GuestTest, AGuestGetsNoAnswerToWhatItHasCancelledOverAnEventOfTheSameTurn) {
  const auto guest = make_waiting("kube_runtime_idle");
  ASSERT_TRUE(wake(*guest, {{.id = 0, .is_event = true, .bytes = "a"}}).ended.has_value());

  // It cancels the request in its third run.
  const TurnOutcome outcome = wake(*guest, {{.id = 0, .is_event = true, .bytes = "event"},
                                            {.id = 0, .finished = true, .bytes = "answer"}});

  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_THAT(texts_of(outcome), ElementsAre("w0", "1i", "1i"));
  EXPECT_THAT(outcome.cancelled, Not(testing::Contains(0U)));
}

TEST_P(GuestTest, AGuestThatIsIdleForEverHasFailed) {
  const auto guest = make_waiting("kube_runtime_idle");
  ASSERT_EQ(wake(*guest, {{.id = 0, .bytes = "a"}}).delays.size(), 1U);
  ASSERT_TRUE(wake(*guest, {{.id = 0, .bytes = "a"}}).ended.has_value());

  expect_error(wake(*guest, {{.id = 1, .finished = true, .is_null = true}}), ErrorKind::GuestFault,
               "nothing can wake it");
}

HttpRequest asking(const std::string& method) {
  return {.method = method, .uri = "/metrics"};
}

TEST_P(GuestTest, ARequestIntoItIsAnsweredOnce) {
  const auto guest = make_waiting("kube_runtime_serves");
  ASSERT_TRUE(guest->listens(Listener::Metrics));

  const auto first = guest->hand_in(Listener::Metrics, asking("GET"));
  const auto second = guest->hand_in(Listener::Metrics, asking("GET"));
  ASSERT_TRUE(first.has_value() && second.has_value());
  const TurnOutcome outcome = wake(*guest, {first->wakeup, second->wakeup});

  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_EQ(outcome.was_asleep, GetParam());
  EXPECT_THAT(outcome.answers,
              ElementsAre(InboundAnswer{.id = first->id, .status = 200, .body = "ok"},
                          InboundAnswer{.id = second->id, .status = 200, .body = "ok"}));
}

TEST_P(GuestTest, ARequestIntoItMayBeAnsweredInALaterTurn) {
  const auto guest = make_waiting("kube_runtime_serves");
  const auto kept = guest->hand_in(Listener::Metrics, asking("HEAD"));
  EXPECT_THAT(wake(*guest, {kept->wakeup}).answers, IsEmpty());

  const auto later = guest->hand_in(Listener::Metrics, asking("LATER"));
  const TurnOutcome outcome = wake(*guest, {later->wakeup});

  ASSERT_EQ(outcome.answers.size(), 1U);
  EXPECT_EQ(outcome.answers[0].id, kept->id);
}

TEST_P(GuestTest, AGuestThatNeverAnswersGetsNoFurtherRequests) {
  const auto guest = make_waiting("kube_runtime_serves");
  std::vector<Wakeup> wakeups;
  for (std::uint32_t index = 0; index < limits::kGuestInboundMax; ++index) {
    auto handed = guest->hand_in(Listener::Metrics, asking("HEAD"));
    ASSERT_TRUE(handed.has_value());
    wakeups.push_back(std::move(handed->wakeup));
  }
  EXPECT_EQ(guest->hand_in(Listener::Metrics, asking("GET")).error().kind(),
            ErrorKind::Unavailable);
  ASSERT_TRUE(wake(*guest, std::move(wakeups)).ended.has_value());
  EXPECT_EQ(guest->hand_in(Listener::Metrics, asking("GET")).error().message(),
            "the guest has not answered 8 earlier requests");
}

TEST_P(GuestTest, AGuestThatDoesNotServeGetsNoRequests) {
  const auto never = make_waiting("kube_runtime_journal");
  EXPECT_FALSE(never->listens(Listener::Metrics));
  EXPECT_EQ(never->hand_in(Listener::Metrics, asking("GET")).error().kind(), ErrorKind::NotFound);

  const auto no_longer = make_waiting("kube_runtime_serves");
  const auto last = no_longer->hand_in(Listener::Metrics, asking("NEVER"));
  ASSERT_TRUE(wake(*no_longer, {last->wakeup}).ended.has_value());
  EXPECT_FALSE(no_longer->listens(Listener::Metrics));
}

TEST_P(GuestTest, AnAnswerThatIsNoneEndsTheGuest) {
  const auto no_status = make_waiting("kube_runtime_serves");
  const auto bad = no_status->hand_in(Listener::Metrics, asking("BAD"));
  expect_error(wake(*no_status, {bad->wakeup}), ErrorKind::GuestFault,
               "the status is 0, it is to be 200 to 599");

  const auto too_much = make_waiting("kube_runtime_serves");
  const auto more = too_much->hand_in(Listener::Metrics, asking("MORE"));
  expect_error(wake(*too_much, {more->wakeup}), ErrorKind::LimitExceeded,
               "an answer of 4194305 bytes, the most is 4194304");
}

HttpRequest review_at(const std::string& path) {
  return {.method = "POST", .uri = path};
}

TEST_P(GuestTest, WebhooksAloneKeepItAlive) {
  const auto guest = make_waiting("kube_runtime_webhooks");
  ASSERT_TRUE(guest->listens(Listener::Webhooks));
  EXPECT_FALSE(guest->listens(Listener::Metrics));

  const auto review = guest->hand_in(Listener::Webhooks, review_at("/ok"));
  const TurnOutcome outcome = wake(*guest, {review->wakeup});

  EXPECT_EQ(outcome.exit_code, std::nullopt);
  EXPECT_THAT(outcome.answers,
              ElementsAre(InboundAnswer{.id = review->id, .status = 200, .body = "ok"}));
  const auto last = guest->hand_in(Listener::Webhooks, review_at("/close"));
  EXPECT_EQ(wake(*guest, {last->wakeup}).exit_code, 0U) << "it no longer waits for anything";
}

TEST_P(GuestTest, ALateAnswerToAForgottenRequestIsIgnored) {
  const auto guest = make_waiting("kube_runtime_webhooks");
  const auto never = guest->hand_in(Listener::Webhooks, review_at("/never"));
  ASSERT_TRUE(wake(*guest, {never->wakeup}).ended.has_value());

  guest->forget(never->id);

  const auto next = guest->hand_in(Listener::Webhooks, review_at("/different"));
  EXPECT_THAT(wake(*guest, {next->wakeup}).answers, IsEmpty());
}

TEST_P(GuestTest, AListenerAloneDoesNotKeepItAlive) {
  const auto guest = make_waiting("kube_runtime_serves");
  EXPECT_EQ(wake(*guest, {{.id = 0, .finished = true, .is_null = true}}).exit_code, 0U);
}

TEST_P(GuestTest, ModulesThatAreNoOperatorsAreRefusedWithTheReason) {
  constexpr ErrorKind kInvalid = ErrorKind::InvalidInput;
  expect_start_error(
      "wrong_imports", kInvalid,
      "module imports env.foo(i32) -> (i32), which an operator does not get; "
      "operators get wasi_snapshot_preview1, http-proxy-abi.{request,request_stream}, "
      "delay-abi.delay, turn-abi.{idle_descriptor,cancel} and inbound-abi.{serve,respond}");
  expect_start_error("lookup", kInvalid, "module imports host.k8s_lookup");
  expect_start_error("missing_start", kInvalid, "exports no function _start");
  expect_start_error("start_with_result", kInvalid, "exports no function _start");
  expect_start_error("kube_runtime_allocate_missing", kInvalid, "exports wakeup and not allocate");
  expect_start_error("kube_runtime_wakeup_missing", kInvalid, "exports allocate and not wakeup");
  expect_start_error("kube_runtime_wakeup_type", kInvalid, "its wakeup (i64, i32, i32, i32) -> ()");
  expect_start_error("kube_runtime_memory_missing", kInvalid, "exports no memory");
  expect_start_error("kube_runtime_idle_not_run", kInvalid,
                     "is to import turn-abi.idle_descriptor and export run_until_idle");
  expect_start_error("kube_runtime_run_not_idle", kInvalid,
                     "is to import turn-abi.idle_descriptor and export run_until_idle");
}

TEST_P(GuestTest, AModuleOfAnotherContractIsCalledWhatItSeemsToBe) {
  constexpr ErrorKind kInvalid = ErrorKind::InvalidInput;
  expect_start_error("lookup", kInvalid, "it seems to be a flight: name it in an Airway");
  expect_start_error("machine_packed", kInvalid, "it seems to be a state machine");
}

TEST_P(GuestTest, AProgramThatCanAskForNothingCannotLiveOn) {
  const auto check = [this](const std::string& name) {
    const auto code = rig_.await(load(name)->code(budget::unnamed_consumer()));
    EXPECT_TRUE(code.has_value());
    return Runtime::check_can_live_on(**code);
  };
  for (const char* const name : {"kube_runtime_journal", "kube_runtime_reactor_alone",
                                 "kube_runtime_waits_for_nothing", "kube_runtime_no_request"}) {
    EXPECT_TRUE(check(name).has_value()) << name;
  }
  for (const char* const name : {"poll_stdio", "exit_0", "echo"}) {
    const Result<> refused = check(name);
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(refused.error().message(), HasSubstr("it seems to be an ordinary WASI program"));
  }
}

TEST_P(GuestTest, OptionsThatTheGuestWouldReadCutAreRefused) {
  constexpr ErrorKind kInvalid = ErrorKind::InvalidInput;
  const std::string null("a\0b", 3);
  expect_start_error("exit_0", kInvalid, "argument contains a null byte", {.args = {null}});
  expect_start_error("exit_0", kInvalid, "environment contains a null", {.environment = {null}});
  expect_start_error("exit_0", kInvalid, "file etc/key: not the absolute path",
                     {.files = {{"etc/key", ""}}});
}

TEST_P(GuestTest, GivesArgumentsEnvironmentAndAnEmptyStdin) {
  using namespace std::string_literals;
  EXPECT_THAT(
      texts_of(start(*make("arguments", {.args = {"operator", "-v"}, .environment = {"A=b"}}))),
      ElementsAre("operator\0-v\0A=b\0"s));
  EXPECT_THAT(start(*make("echo")).output, IsEmpty());
}

TEST_P(GuestTest, KeepsWhatItWasGivenAndWhereItIsInItsFilesFromTurnToTurn) {
  using namespace std::string_literals;
  const auto guest =
      make("kube_runtime_process",
           {.args = {"operator", ""},
            .environment = {"A=b", "C="},
            .files = {{"/key", "value"}},
            // Guests of the published contract do not see this.
            .in_pod = {.environment = {"POD=1"}, .files = {{"/key", "other"}, {"/x", ""}}}});
  const std::string given = "operator\0\0A=b\0C=\0"s;

  EXPECT_THAT(texts_of(start(*guest)), ElementsAre(given + "va"));
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 0, .finished = true, .is_null = true}})),
              ElementsAre(given + "lu"));
  EXPECT_TRUE(guest->waits_for(1));
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .finished = true, .is_null = true}})),
              ElementsAre(given + "e"));
  const TurnOutcome outcome = wake(*guest, {{.id = 2, .finished = true, .is_null = true}});
  EXPECT_THAT(texts_of(outcome), ElementsAre(given));
  EXPECT_EQ(outcome.exit_code, 0U);
}

TEST_P(GuestTest, AGuestWithASchedulerFindsWhatAPodHasUnlessItIsGivenSomethingElse) {
  using namespace std::string_literals;
  const Surroundings in_pod{.environment = {"POD=1", "A=pod", "AB=2"}, .files = {{"/key", "pod"}}};

  const auto guest = make("kube_runtime_in_pod", {.environment = {"A="}, .in_pod = in_pod});
  EXPECT_THAT(texts_of(start(*guest)), ElementsAre("A=\0POD=1\0AB=2\0pod"s));

  const auto given = make("kube_runtime_in_pod", {.files = {{"/key", "own"}}, .in_pod = in_pod});
  EXPECT_THAT(texts_of(start(*given)), ElementsAre("POD=1\0A=pod\0AB=2\0own"s));
}

TEST_P(GuestTest, FilesCanBeReadInEveryWayAndNotBeChanged) {
  expect_exit("kube_runtime_files", 0,
              {.files = {{"/etc/config/key", "value"}, {"/etc/zone", ""}}});
}

TEST_P(GuestTest, BadPointersToFunctionsOfFilesAnswerEfault) {
  expect_exit("kube_runtime_bad_pointers", 0, {.files = {{"/key", "value"}}});
  expect_exit("wasi_bad_pointers", 0, {.args = {"operator"}, .environment = {"A=b"}});
}

TEST_P(GuestTest, BadPointersAndBytesOfRequestsFaultTheGuest) {
  constexpr ErrorKind kFault = ErrorKind::GuestFault;
  expect_start_error("kube_runtime_bad_request", kFault,
                     "http-proxy-abi.request: 37 bytes at address 65500 do not lie in the guest's");
  expect_start_error("kube_runtime_bad_request_stream", kFault, "http-proxy-abi.request_stream: ");
  expect_start_error("kube_runtime_bad_request_wraps", kFault, "2 bytes at address 4294967295");
  expect_start_error("kube_runtime_no_request", kFault,
                     "http-proxy-abi.request: the bytes are not a request: the method is to have 4 "
                     "bytes, 0 are left");
  expect_wakeup_error(
      "kube_runtime_no_request_in_wakeup", kFault,
      "http-proxy-abi.request: the bytes are not a request: they end in the method");
}

TEST_P(GuestTest, RequestsThatAreTooLargeAreALimit) {
  expect_start_error("kube_runtime_large_request", ErrorKind::LimitExceeded,
                     "a request of 4194305 bytes, the most is 4194304");
}

TEST_P(GuestTest, AnAllocateThatBreaksTheContractFaultsTheGuest) {
  constexpr ErrorKind kFault = ErrorKind::GuestFault;
  expect_wakeup_error("kube_runtime_allocate_garbage", kFault,
                      "allocate's answer: 3 bytes at address 65535 do not lie in the guest's");
  expect_wakeup_error("kube_runtime_allocate_null", kFault, "allocate has no memory for 3 bytes");
  expect_wakeup_error("kube_runtime_allocate_traps", kFault, "unreachable executed; at give_up");
  expect_wakeup_error("kube_runtime_allocate_loops", ErrorKind::LimitExceeded, "", kShort);
}

TEST_P(GuestTest, TrapsAreGuestFaultsAndWhatWasPrintedIsKept) {
  expect_start_error("unreachable", ErrorKind::GuestFault, "wasm trap: unreachable executed");
  expect_start_error("trap_in_start", ErrorKind::GuestFault, "unreachable executed; at boom");

  const auto guest = make_waiting("kube_runtime_wakeup_traps");
  const TurnOutcome outcome = wake(*guest, {{.id = 0, .finished = true, .is_null = true}});
  expect_error(outcome, ErrorKind::GuestFault, "unreachable executed; at boom");
  EXPECT_THAT(outcome.output, ElementsAre(OutputLine{OutputStream::Stderr, "panicked at main.rs"}));
}

TEST_P(GuestTest, EndlessLoopsEndWithTheirTime) {
  expect_start_error("kube_runtime_start_loops", ErrorKind::LimitExceeded, "50ms", kShort);
  expect_start_error("endless_loop_in_start", ErrorKind::LimitExceeded, "50ms", kShort);
  expect_wakeup_error("kube_runtime_wakeup_loops", ErrorKind::LimitExceeded, "50ms", kShort);
}

TEST_P(GuestTest, ATaskThatNeverWaitsIsNamedAsTheLikelyCause) {
  const std::string cause = "(likely a task that never waits, such as a goroutine";
  const TurnOutcome outcome = start(*make("kube_runtime_idle_loops", kShort));
  expect_error(outcome, ErrorKind::LimitExceeded, "50ms");
  EXPECT_THAT(outcome.ended.error().message(), HasSubstr(cause));

  const TurnOutcome other = start(*make("kube_runtime_start_loops", kShort));
  EXPECT_THAT(other.ended.error().message(), Not(HasSubstr(cause)));
}

TEST_P(GuestTest, WhoSleepsWithinATurnUsesItsTime) {
  expect_start_error("sleep_for_ever", ErrorKind::LimitExceeded, "50ms of processor time and sleep",
                     kShort);
  expect_wakeup_error("kube_runtime_wakeup_sleeps", ErrorKind::LimitExceeded,
                      "50ms of processor time and sleep", kShort);
  expect_exit("sleep_a_moment", 0);
}

TEST_P(GuestTest, MemoryEndsAtItsLimit) {
  const auto guest =
      make_waiting("kube_runtime_memory_bomb", {.memory_bytes_max = 16 * limits::kMiB});
  const TurnOutcome outcome = wake(*guest, {{.id = 0, .finished = true, .is_null = true}});
  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  EXPECT_EQ(outcome.exit_code, 256U);
  expect_start_error("memory_at_start", ErrorKind::LimitExceeded, "memory",
                     {.memory_bytes_max = 63 * limits::kMiB});
}

TEST_P(GuestTest, OutputOfEachTurnIsBounded) {
  const auto guest = make_waiting("kube_runtime_log_flood", {.output_bytes_max = 10'500});
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    const TurnOutcome outcome = wake(*guest, {{.id = turn, .finished = true, .is_null = true}});
    ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
    ASSERT_EQ(outcome.output.size(), 11U);
    EXPECT_EQ(outcome.output[9].text, std::string(999, 'x'));
    EXPECT_EQ(outcome.output[10].text, std::string(500, 'x'));
    EXPECT_EQ(outcome.output_dropped_bytes, 1'000'000U - 10'500U);
  }
}

TEST_P(GuestTest, FloodsOfRequestsAndDelaysAreLimits) {
  expect_start_error("kube_runtime_request_flood", ErrorKind::LimitExceeded,
                     "the guest asks for more than 16384 requests at once");
  expect_start_error("kube_runtime_delay_flood", ErrorKind::LimitExceeded,
                     "the guest waits for more than 16384 delays at once");
}

TEST_P(GuestTest, RequestsBeyondThoseUnderWayComeWhenOthersHaveFinished) {
  const auto guest = make("kube_runtime_many_requests");
  EXPECT_EQ(start(*guest).calls.size(), limits::kGuestRequestsMax);

  TurnOutcome outcome = wake(*guest, {{.id = 3, .bytes = "meta"}});
  EXPECT_THAT(outcome.calls, IsEmpty());
  outcome = wake(*guest, {{.id = 3, .finished = true}, {.id = 9, .finished = true}});
  ASSERT_EQ(outcome.calls.size(), 2U);
  EXPECT_EQ(outcome.calls[0].id, 256U);
  EXPECT_EQ(outcome.calls[1].id, 257U);
}

TEST_P(GuestTest, HoldsMemoryOrDiskUntilItIsGone) {
  const auto module = load("kube_runtime_journal");
  auto guest = std::make_unique<LocalGuest>(guests_, module, GuestOptions{});
  EXPECT_TRUE(rig_.await(guest->sleep()).has_value());
  EXPECT_FALSE(guest->is_asleep()) << "it has not started";
  start(*guest);
  wake(*guest, {{.id = 1, .bytes = "x"}});

  EXPECT_EQ(guest->is_asleep(), GetParam());
  EXPECT_EQ(guest->disk_bytes() > 0, GetParam());
  EXPECT_EQ(guest->resident_bytes() > 0, !GetParam());
  EXPECT_EQ(store->live_bytes() > 0, GetParam());
  EXPECT_EQ(module->native().instance_count, 1U);
  guest.reset();
  EXPECT_EQ(store->live_bytes(), 0U);
  EXPECT_EQ(module->native().instance_count, 0U);
}

TEST_P(GuestTest, HoldsNothingOnceItIsGone) {
  std::stop_source stopped;
  stopped.request_stop();
  const auto guest = make_waiting("kube_runtime_journal");

  expect_error(wake(*guest, {{.id = 1, .bytes = "x"}}, stopped.get_token()), ErrorKind::Cancelled,
               "");
  EXPECT_FALSE(guest->waits_for(1));
  EXPECT_FALSE(guest->is_asleep());
  EXPECT_EQ(guest->resident_bytes(), 0U);
  EXPECT_EQ(guest->disk_bytes(), 0U);
  EXPECT_EQ(store->live_bytes(), 0U);
  EXPECT_TRUE(rig_.await(guest->sleep()).has_value());
}

TEST_P(GuestTest, StaysAsItWasWhenItCannotSleep) {
  const auto tiny =
      wasm::SnapshotStore::open(directory->path() / "tiny", {.file_bytes_max = 64}).value();
  const LocalGuests guests(runtime_, *tiny);
  LocalGuest guest(guests, load("kube_runtime_journal"), {});
  ASSERT_TRUE(rig_.await(guest.start({})).ended.has_value());
  ASSERT_TRUE(rig_.await(guest.wake({{.id = 1, .bytes = "x"}}, {})).ended.has_value());

  const Result<Duration> slept = rig_.await(guest.sleep());
  ASSERT_FALSE(slept.has_value());
  EXPECT_EQ(name_of(slept.error().kind()), name_of(ErrorKind::Unavailable));
  EXPECT_FALSE(guest.is_asleep());
  EXPECT_GT(guest.resident_bytes(), 0U);
  EXPECT_THAT(texts_of(rig_.await(guest.wake({{.id = 1, .bytes = "x"}}, {}))),
              ElementsAre("2210bx"));
}

// A guest of a module that was handed over, before and after it was moved.
class Traveller {
 public:
  Traveller(wasm::GuestRig& rig, const Runtime& runtime, const wasm::SleepableModule& module,
            wasm::SnapshotStore& store)
      : rig_(rig),
        guests_(runtime, store),
        module_(
            wasm::receive(rig.engine(),
                          rig.await(wasm::hand_over(module, budget::unnamed_consumer())).value())
                .value()),
        guest_(std::make_unique<LocalGuest>(guests_, module_, GuestOptions{})) {}

  LocalGuest& guest() { return *guest_; }

  // Suspends the guest, and makes a new one from its bytes.
  void travel() {
    ASSERT_TRUE(rig_.await(guest_->sleep()).has_value());
    const Result<std::string> bytes = guest_->pack();
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message();
    auto arrived = LocalGuest::unpack(guests_, module_, {}, *bytes, {});
    ASSERT_TRUE(arrived.has_value()) << arrived.error().message();
    guest_ = *std::move(arrived);
    EXPECT_TRUE(guest_->is_asleep());
  }
  [[nodiscard]] Result<std::unique_ptr<LocalGuest>> unpack(std::string_view bytes) const {
    return LocalGuest::unpack(guests_, module_, {}, bytes, {});
  }

 private:
  wasm::GuestRig& rig_;
  const LocalGuests guests_;
  const std::shared_ptr<const wasm::SleepableModule> module_;
  std::unique_ptr<LocalGuest> guest_;
};

TEST_P(GuestTest, GoesOnWhereItWasAfterItHasTravelled) {
  const auto module = load("kube_runtime_journal");
  Traveller traveller(rig_, runtime_, *module, *store);
  const TurnOutcome started = rig_.await(traveller.guest().start({}));
  ASSERT_TRUE(started.ended.has_value()) << started.ended.error().message();

  for (const std::string times : {"1", "2", "3"}) {
    traveller.travel();
    EXPECT_TRUE(traveller.guest().waits_for(1));
    EXPECT_THAT(texts_of(rig_.await(traveller.guest().wake({{.id = 1, .bytes = "x"}}, {}))),
                ElementsAre(times + times + "10bx"));
  }
}

TEST_P(GuestTest, HasItsFilesAndListenersAfterItHasTravelled) {
  const auto module = load("kube_runtime_serves");
  Traveller traveller(rig_, runtime_, *module, *store);
  ASSERT_TRUE(rig_.await(traveller.guest().start({})).ended.has_value());
  ASSERT_TRUE(traveller.guest().listens(Listener::Metrics));

  traveller.travel();

  EXPECT_TRUE(traveller.guest().listens(Listener::Metrics));
  const Result<Guest::Inbound> inbound =
      traveller.guest().hand_in(Listener::Metrics, {.method = "GET", .uri = "/metrics"});
  ASSERT_TRUE(inbound.has_value()) << inbound.error().message();
  const TurnOutcome outcome = rig_.await(traveller.guest().wake({inbound->wakeup}, {}));
  EXPECT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
}

TEST_P(GuestTest, IsNotMadeOfBytesThatAreDamaged) {
  const auto module = load("kube_runtime_journal");
  Traveller traveller(rig_, runtime_, *module, *store);
  ASSERT_TRUE(rig_.await(traveller.guest().start({})).ended.has_value());
  ASSERT_TRUE(rig_.await(traveller.guest().sleep()).has_value());
  const std::string bytes = traveller.guest().pack().value();

  for (const std::size_t place : {std::size_t{0}, std::size_t{33}, std::size_t{45}}) {
    SCOPED_TRACE(place);
    std::string damaged = bytes;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    const auto made = traveller.unpack(damaged);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().kind(), ErrorKind::Unavailable);
  }
  EXPECT_FALSE(traveller.unpack(std::string_view(bytes).substr(0, 20)).has_value());
  // The snapshot is read when the guest wakes.
  std::string damaged = bytes;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  const auto made = traveller.unpack(damaged);
  ASSERT_TRUE(made.has_value());
  expect_error(rig_.await((*made)->wake({{.id = 1, .bytes = "x"}}, {})), ErrorKind::Unavailable,
               "checksum");
}

TEST_P(GuestTest, StopsWhereverItIs) {
  std::stop_source stopped;
  stopped.request_stop();
  expect_error(start(*make("kube_runtime_journal"), stopped.get_token()), ErrorKind::Cancelled, "");

  std::stop_source source;
  const auto guest = make_waiting("kube_runtime_wakeup_loops");
  const io::Loop::Timer timer =
      rig_.loop().after(milliseconds(20), [&source] { source.request_stop(); });
  expect_error(wake(*guest, {{.id = 0, .is_null = true}}, source.get_token()), ErrorKind::Cancelled,
               "");
}

TEST_P(GuestTest, GuestsOfOneModuleDoNotSeeEachOther) {
  const auto module = load("kube_runtime_journal");
  std::vector<std::unique_ptr<LocalGuest>> guests;
  for (int index = 0; index < 8; ++index) {
    guests.push_back(std::make_unique<LocalGuest>(guests_, module, GuestOptions{}));
    ASSERT_TRUE(start(*guests.back()).ended.has_value());
  }
  for (std::size_t times = 1; times <= 3; ++times) {
    for (std::size_t index = 0; index < guests.size(); ++index) {
      const std::string bytes = std::to_string(index);
      const std::string count = std::to_string(times);
      EXPECT_THAT(texts_of(wake(*guests[index], {{.id = 1, .bytes = bytes}})),
                  ElementsAre(count + count + "10b" + bytes));
    }
  }
}

}  // namespace
}  // namespace hangar::abi::kube_runtime
