// The flight contract, wherever a flight runs: in this process, or in a guest process.
#include "abi/flight/evaluation.h"

#include "abi/flight/lookups.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "domains/test_processes.h"
#include "io/all.h"
#include "io/event.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/module.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::abi::flight {
namespace {

enum class Place : std::uint8_t { Here, GuestProcess };

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Gives the same answer to every question, and records the questions.
class Answers : public Lookups {
 public:
  io::Task<LookupAnswer> lookup(LookupRequest request) override {
    requests.push_back(std::move(request));
    co_return answer;
  }
  io::Task<LookupAnswer> rest_mapping(std::string group, std::string kind) override {
    mappings.emplace_back(std::move(group), std::move(kind));
    co_return answer;
  }

  LookupAnswer answer{.state = LookupState::Ok, .body = "{\"kind\":\"Deployment\"}"};
  std::vector<LookupRequest> requests;
  std::vector<std::pair<std::string, std::string>> mappings;
};

// Answers when the test allows it.
class LateAnswers : public Answers {
 public:
  explicit LateAnswers(io::Loop& loop) : released(loop) {}
  io::Task<LookupAnswer> lookup(LookupRequest request) override {
    requests.push_back(std::move(request));
    if (on_lookup) on_lookup();
    co_await released.wait();
    co_return answer;
  }

  std::function<void()> on_lookup;
  io::OneShot<bool> released;
};

// One engine for all tests: reserving its pool takes seconds under ThreadSanitizer.
class FlightTest : public testing::TestWithParam<Place> {
 public:
  static void SetUpTestSuite() {
    shared_rig = std::make_unique<wasm::GuestRig>();
    here = std::make_unique<Runtime>(shared_rig->engine());
    processes = std::make_unique<domains::GuestProcesses>(
        domains::GuestProcesses::Parts{.engine = shared_rig->engine(), .metrics = metrics},
        domains::GuestProcesses::Options{.program = HANGAR_GUEST_PROGRAM, .thread_count = 2},
        std::nullopt);
    elsewhere = std::make_unique<Runtime>(shared_rig->engine(), processes.get());
  }
  static void TearDownTestSuite() {
    elsewhere.reset();
    processes.reset();
    domains::end_waiting_tasks(shared_rig->loop());
    here.reset();
    shared_rig.reset();
  }

  Result<Output> run(const std::string& guest, Evaluation evaluation = {},
                     std::stop_token stop = {}) {
    return rig_.await(
        evaluate(runtime_, rig_.load(guest), std::move(evaluation), answers_, std::move(stop)));
  }

  // Fails the test unless the guest ends with an error of `kind` that contains `text`.
  void expect_error(const std::string& guest, ErrorKind kind, const std::string& text,
                    Evaluation evaluation = {}) {
    SCOPED_TRACE(guest);
    const Result<Output> output = run(guest, std::move(evaluation));
    ASSERT_FALSE(output.has_value());
    EXPECT_EQ(name_of(output.error().kind()), name_of(kind));
    EXPECT_THAT(output.error().message(), HasSubstr(text));
  }

  void expect_exit(const std::string& guest, std::uint32_t code, Evaluation evaluation = {}) {
    SCOPED_TRACE(guest);
    const Result<Output> output = run(guest, std::move(evaluation));
    ASSERT_TRUE(output.has_value()) << output.error().message();
    EXPECT_EQ(output->exit_code, code);
  }

 protected:
  inline static Metrics metrics;
  inline static std::unique_ptr<wasm::GuestRig> shared_rig;
  inline static std::unique_ptr<Runtime> here;
  inline static std::unique_ptr<domains::GuestProcesses> processes;
  inline static std::unique_ptr<Runtime> elsewhere;
  wasm::GuestRig& rig_ = *shared_rig;
  Runtime& runtime_ = GetParam() == Place::Here ? *here : *elsewhere;
  Answers answers_;
};

const Evaluation kShort{.timeout = milliseconds(30)};

TEST_P(FlightTest, ReadsStdinAndPrintsToStdout) {
  const Result<Output> output = run("echo", {.stdin_bytes = "a custom resource"});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->stdout_bytes, "a custom resource");
  EXPECT_EQ(output->stderr_bytes, "");
  EXPECT_EQ(output->exit_code, 0U);
  EXPECT_EQ(output->memory_bytes, 64 * limits::kKiB);
  EXPECT_GT(output->cpu_time.count(), 0);
}

TEST_P(FlightTest, SeesExactlyTheArgumentsAndEnvironmentOfTheContract) {
  const Result<Output> output = run("arguments", {.release = "examples.com.Backend.ns.web",
                                                  .namespace_ = "ns",
                                                  .args = {"-v", ""},
                                                  .host_version = "0.1.0"});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  using namespace std::string_literals;
  EXPECT_EQ(output->stdout_bytes,
            "examples.com.Backend.ns.web\0-v\0\0"
            "YOKE_RELEASE=examples.com.Backend.ns.web\0YOKE_NAMESPACE=ns\0"
            "NAMESPACE=ns\0YOKE_VERSION=v0.20.12\0HANGAR_VERSION=0.1.0\0"s);
}

TEST_P(FlightTest, SeesFurtherVariablesButNoneInPlaceOfTheContracts) {
  const Result<Output> output =
      run("arguments", {.release = "web",
                        .namespace_ = "ns",
                        .host_version = "0.1.0",
                        .environment = {"COLOR=blue", "NAMESPACE=other", "YOKE=", "NAMESPACES=a"}});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  using namespace std::string_literals;
  EXPECT_EQ(output->stdout_bytes,
            "web\0YOKE_RELEASE=web\0YOKE_NAMESPACE=ns\0NAMESPACE=ns\0YOKE_VERSION=v0.20.12\0"
            "HANGAR_VERSION=0.1.0\0COLOR=blue\0YOKE=\0NAMESPACES=a\0"s);
}

TEST_P(FlightTest, RefusesArgumentsThatTheGuestWouldReadCut) {
  expect_error("echo", ErrorKind::InvalidInput, "null byte", {.release = std::string("a\0b", 3)});
  expect_error("echo", ErrorKind::InvalidInput, "null byte",
               {.environment = {std::string("A=a\0b", 5)}});
}

TEST_P(FlightTest, ExitCodesAreOutputs) {
  expect_exit("exit_0", 0);
  expect_exit("exit_3", 3);
  expect_exit("exit_in_start", 5);
}

TEST_P(FlightTest, TrapsAreGuestFaultsThatNameTheFault) {
  expect_error("unreachable", ErrorKind::GuestFault,
               "wasm trap: unreachable executed; at flight::inner < outer < ");
  expect_error("trap_in_start", ErrorKind::GuestFault, "unreachable executed; at boom");
  expect_error("out_of_bounds", ErrorKind::GuestFault, "out of bounds memory access");
  expect_error("stack_overflow", ErrorKind::GuestFault, "call stack exhausted; at down < down");
  expect_error("hostile_names", ErrorKind::GuestFault, "unreachable executed; at ");
}

TEST_P(FlightTest, EndlessLoopsEndWithTheirTimeout) {
  const std::string text =
      "module closed with context deadline exceeded: execution timeout (30ms) exceeded";
  expect_error("endless_loop", ErrorKind::LimitExceeded, text, kShort);
  expect_error("endless_loop_in_start", ErrorKind::LimitExceeded, text, kShort);
  expect_error("malloc_loops", ErrorKind::LimitExceeded, text, kShort);
}

TEST_P(FlightTest, TheTimeoutSaysWhereTheGuestWas) {
  expect_error("endless_loop", ErrorKind::LimitExceeded, "exceeded; at spin < ", kShort);
}

TEST_P(FlightTest, WaitingCountsTowardsTheTimeout) {
  expect_error("sleep_for_ever", ErrorKind::LimitExceeded, "execution timeout (30ms) exceeded",
               kShort);
  expect_error("malloc_sleeps_for_ever", ErrorKind::LimitExceeded,
               "execution timeout (30ms) exceeded", kShort);
}

TEST_P(FlightTest, MemoryEndsAtItsLimit) {
  const Result<Output> output = run("memory_bomb", {.memory_bytes_max = 16 * limits::kMiB});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->exit_code, 42U);
  EXPECT_LE(output->memory_bytes, 16 * limits::kMiB);
  EXPECT_GT(output->memory_bytes, 14 * limits::kMiB);
}

TEST_P(FlightTest, MemoryThatIsTooLargeFromTheStartIsALimit) {
  expect_error("memory_at_start", ErrorKind::LimitExceeded, "64 MiB of memory at its start",
               {.memory_bytes_max = 63 * limits::kMiB});
  expect_error("memory_at_start", ErrorKind::LimitExceeded, "its limit is 64 KiB",
               {.memory_bytes_max = 64 * limits::kKiB});
  expect_exit("memory_at_start", 0, {.memory_bytes_max = 64 * limits::kMiB});
  expect_error("hidden_memory_at_start", ErrorKind::LimitExceeded, "memory",
               {.memory_bytes_max = 63 * limits::kMiB});
}

TEST_P(FlightTest, TablesEndAtTheirLimit) {
  expect_exit("table_bomb", 42);
  expect_error("large_table", ErrorKind::LimitExceeded, "table");
}

TEST_P(FlightTest, TablesCountAsMemory) {
  expect_error("many_tables", ErrorKind::LimitExceeded, "exceeds table limits",
               {.memory_bytes_max = limits::kMiB});
  const Result<Output> output = run("many_tables", {.memory_bytes_max = 33 * limits::kMiB});
  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_GE(output->memory_bytes, 8 * 500'000 * 8U);
}

TEST_P(FlightTest, AModuleThatDoesNotFitThePoolRunsOnDemand) {
  EXPECT_EQ(rig_.load("two_tables")->allocation(), wasm::Module::Allocation::OnDemand);
  EXPECT_EQ(rig_.load("exit_3")->allocation(), wasm::Module::Allocation::Pooled);
  expect_exit("two_tables", 6);
}

TEST_P(FlightTest, StdoutHasALimitAndStderrIsCut) {
  expect_error("endless_stdout", ErrorKind::LimitExceeded, "stdout is larger than 16777216 bytes");

  expect_error("endless_stderr", ErrorKind::LimitExceeded, "execution timeout", kShort);
}

TEST_P(FlightTest, ModulesThatAreNoFlightsAreRefusedWithTheReason) {
  expect_error("wrong_imports", ErrorKind::InvalidInput,
               "module imports env.foo(i32) -> (i32), which a flight does not get; flights get "
               "wasi_snapshot_preview1 and host.{k8s_lookup,k8s_rest_mapping}");
  expect_error("wrong_import_type", ErrorKind::InvalidInput,
               "module imports wasi_snapshot_preview1.fd_write(i32) -> (i32), which");
  expect_error("vector_import", ErrorKind::InvalidInput, "env.simd(v128) -> ()");
  expect_error("missing_start", ErrorKind::InvalidInput, "exports no function _start");
  expect_error("start_with_result", ErrorKind::InvalidInput, "exports no function _start");
}

TEST_P(FlightTest, AModuleOfAnotherContractIsCalledWhatItSeemsToBe) {
  expect_error("kube_runtime_journal", ErrorKind::InvalidInput,
               "it seems to be a long-running controller: name it in an Operator");
  expect_error("machine_packed", ErrorKind::InvalidInput, "it seems to be a state machine");
}

TEST_P(FlightTest, AGuestWithoutMemoryFaultsWhenTheHostNeedsIt) {
  expect_error("missing_memory", ErrorKind::GuestFault,
               "wasi_snapshot_preview1.random_get: the module exports no memory");
  expect_error("memory_is_a_function", ErrorKind::GuestFault, "is not a memory");
}

TEST_P(FlightTest, BadPointersToWasiAnswerEfault) {
  expect_exit("wasi_bad_pointers", 0, {.release = "release"});
}

TEST_P(FlightTest, WhatWasiDoesNotOfferAnswersWithItsErrno) {
  expect_exit("wasi_refusals", 0);
}

TEST_P(FlightTest, EveryFunctionOfPreview1CanBeImported) {
  expect_exit("imports_everything", 0);
}

TEST_P(FlightTest, PollWaitsForClocksAndAnswersDescriptorsAtOnce) {
  expect_exit("sleep_a_moment", 0);
  expect_exit("poll_stdio", 0, {.stdin_bytes = "12345"});
}

TEST_P(FlightTest, LookupsHandTheAnswerToTheGuestsAllocator) {
  const Result<Output> output = run("lookup");

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->stdout_bytes, "{\"kind\":\"Deployment\"}");
  EXPECT_EQ(output->exit_code, 0U);
  ASSERT_EQ(answers_.requests.size(), 1U);
  EXPECT_EQ(answers_.requests[0].name, "app");
  EXPECT_EQ(answers_.requests[0].namespace_, "default");
  EXPECT_EQ(answers_.requests[0].kind, "Deployment");
  EXPECT_EQ(answers_.requests[0].api_version, "apps/v1");
}

TEST_P(FlightTest, LookupsThatFailWriteTheStateAndTheirMessage) {
  for (const LookupState state :
       {LookupState::FeatureNotGranted, LookupState::Error, LookupState::NotFound,
        LookupState::Unauthenticated, LookupState::Forbidden}) {
    answers_.answer = {.state = state, .body = "why"};
    const Result<Output> output = run("lookup");
    ASSERT_TRUE(output.has_value()) << output.error().message();
    EXPECT_EQ(output->exit_code, static_cast<std::uint32_t>(state));
    EXPECT_EQ(output->stdout_bytes, "why");
  }
}

TEST_P(FlightTest, TheStateIsWrittenOnlyOnErrors) {
  expect_exit("lookup_leaves_state_alone", 99);
  answers_.answer.state = LookupState::NotFound;
  expect_exit("lookup_leaves_state_alone", 3);
}

TEST_P(FlightTest, AnEmptyAnswerNeedsNoMemory) {
  answers_.answer.body = "";
  const Result<Output> output = run("malloc_traps");
  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->stdout_bytes, "");
}

TEST_P(FlightTest, RestMappingsAreAskedForByGroupAndKind) {
  const Result<Output> output = run("rest_mapping");

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->stdout_bytes, answers_.answer.body);
  EXPECT_THAT(answers_.mappings, testing::ElementsAre(testing::Pair("apps/v1", "Deployment")));
}

TEST_P(FlightTest, LookupsWorkInTheStartSectionAndManyTimes) {
  EXPECT_EQ(run("lookup_in_start")->stdout_bytes, answers_.answer.body);
  expect_exit("lookup_many", 0);
  EXPECT_EQ(answers_.requests.size(), 101U);
}

TEST_P(FlightTest, MallocMayGrowTheMemoryAndWait) {
  EXPECT_EQ(run("grow_during_host_call")->stdout_bytes, answers_.answer.body);
  EXPECT_EQ(run("malloc_sleeps")->stdout_bytes, answers_.answer.body);
}

TEST_P(FlightTest, AMallocThatBreaksTheContractFaultsTheGuest) {
  expect_error("malloc_traps", ErrorKind::GuestFault,
               "host.k8s_lookup: malloc: unreachable executed; at give_up < allocate");
  expect_error("malloc_returns_garbage", ErrorKind::GuestFault, "malloc's answer: ");
  expect_error("malloc_returns_highest_address", ErrorKind::GuestFault, "malloc's answer: ");
  expect_error("malloc_recurses", ErrorKind::GuestFault,
               "malloc calls a host function that needs malloc");
  expect_error("malloc_overflows_stack", ErrorKind::GuestFault, "call stack exhausted");
  expect_error("malloc_missing", ErrorKind::GuestFault, "exports no function malloc");
  expect_error("malloc_wrong_type", ErrorKind::GuestFault,
               "exports no function malloc of type (i32) -> (i64)");
  expect_exit("malloc_exits", 7);
}

TEST_P(FlightTest, BadPointersToHostFunctionsFaultTheGuestBeforeTheClusterIsAsked) {
  for (const std::string guest : {"state", "name", "namespace", "api_version"}) {
    expect_error("lookup_bad_" + guest, ErrorKind::GuestFault, "do not lie in the guest's");
  }
  expect_error("lookup_bad_kind", ErrorKind::GuestFault, "host.k8s_lookup: a name of 4294967295");
  for (const std::string guest : {"state", "group", "kind"}) {
    expect_error("rest_mapping_bad_" + guest, ErrorKind::GuestFault, "host.k8s_rest_mapping: ");
  }
  EXPECT_TRUE(answers_.requests.empty());
  EXPECT_TRUE(answers_.mappings.empty());
}

TEST_P(FlightTest, ALookupThatTakesTooLongEndsTheGuestAtItsTimeout) {
  LateAnswers late(rig_.loop());
  io::Loop::Timer release;
  late.on_lookup = [&] {
    release = rig_.loop().after(milliseconds(60), [&] { late.released.set(true); });
  };

  const Result<Output> output =
      rig_.await(evaluate(runtime_, rig_.load("lookup"), {.timeout = milliseconds(30)}, late, {}));

  ASSERT_FALSE(output.has_value());
  EXPECT_THAT(output.error().message(), HasSubstr("execution timeout (30ms) exceeded"));
  EXPECT_EQ(rig_.engine().running_count(), 0U);
}

TEST_P(FlightTest, StopsWhereverTheGuestIs) {
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(run("echo", {}, stopped.get_token()).error().kind(), ErrorKind::Cancelled);

  for (const std::string guest : {"endless_loop", "sleep_for_ever", "malloc_sleeps_for_ever"}) {
    SCOPED_TRACE(guest);
    std::stop_source source;
    const io::Loop::Timer timer =
        rig_.loop().after(milliseconds(20), [&source] { source.request_stop(); });
    const Result<Output> output = run(guest, {.timeout = seconds(-1)}, source.get_token());
    ASSERT_FALSE(output.has_value());
    EXPECT_EQ(output.error().kind(), ErrorKind::Cancelled);
  }
}

TEST_P(FlightTest, GuestsThatWaitHoldNoWorker) {
  // Fifteen times more waiting guests than workers, nearly as many as one tenant may have; no guest
  // is answered before all have asked.
  constexpr std::size_t kGuests = 30;
  LateAnswers late(rig_.loop());
  struct EachLate : Answers {
    explicit EachLate(io::Loop& loop_in) : loop(loop_in) {}
    io::Task<LookupAnswer> lookup(LookupRequest request) override {
      requests.push_back(std::move(request));
      const io::OneShot<bool> turn(loop);
      waiting.push_back(turn);
      if (waiting.size() == kGuests) {
        for (const io::OneShot<bool>& other : waiting)
          other.set(true);
      }
      co_await turn.wait();
      co_return answer;
    }
    io::Loop& loop;
    std::vector<io::OneShot<bool>> waiting;
  } each(rig_.loop());
  const auto module = rig_.load("lookup");
  std::vector<io::Task<Result<Output>>> tasks;
  for (std::size_t index = 0; index < kGuests; ++index)
    tasks.push_back(evaluate(runtime_, module, {}, each, {}));

  const std::vector<Result<Output>> outputs = rig_.await(io::all(rig_.loop(), std::move(tasks)));

  for (const Result<Output>& output : outputs) {
    ASSERT_TRUE(output.has_value()) << output.error().message();
    EXPECT_EQ(output->stdout_bytes, each.answer.body);
  }
}

TEST_P(FlightTest, GuestsThatSpinShareTheWorkersWithOthers) {
  // More spinning guests than workers: only because they yield does the last one get its turn.
  const auto spinning = rig_.load("endless_loop");
  std::stop_source stop;
  std::vector<io::Task<Result<Output>>> tasks;
  for (int index = 0; index < 4; ++index) {
    tasks.push_back(
        evaluate(runtime_, spinning, {.timeout = seconds(-1)}, answers_, stop.get_token()));
  }
  std::optional<std::vector<Result<Output>>> ended;
  rig_.loop().spawn([](auto all, auto& into) -> io::Task<void> {
    into.emplace(co_await std::move(all));
  }(io::all(rig_.loop(), std::move(tasks)), ended));

  EXPECT_EQ(run("exit_3")->exit_code, 3U);

  stop.request_stop();
  rig_.loop().run_until([&ended] { return ended.has_value(); });
  for (const Result<Output>& output : *ended)
    EXPECT_EQ(output.error().kind(), ErrorKind::Cancelled);
}

TEST(FlightSlots, AreWaitedForWhenTheLimitIsReached) {
  Answers answers;
  wasm::GuestRig rig({.runs_max = 2});
  const Runtime runtime(rig.engine());
  const auto module = rig.load("sleep_a_moment");
  std::vector<io::Task<Result<Output>>> tasks;
  for (int index = 0; index < 10; ++index)
    tasks.push_back(evaluate(runtime, module, {}, answers, {}));

  for (const Result<Output>& output : rig.await(io::all(rig.loop(), std::move(tasks))))
    EXPECT_TRUE(output.has_value()) << output.error().message();
}

TEST_P(FlightTest, RunsAgainAfterItsPagesWereReleased) {
  expect_exit("exit_3", 3);
  rig_.load("exit_3")->release_pages();
  expect_exit("exit_3", 3);
}

TEST_P(FlightTest, StateOfOneRunIsNotSeenByTheNext) {
  const auto module = rig_.load("lookup_many");
  for (int index = 0; index < 20; ++index) {
    const auto output = rig_.await(evaluate(runtime_, module, {}, answers_, {}));
    ASSERT_TRUE(output.has_value()) << output.error().message();
  }
  EXPECT_EQ(answers_.requests.size(), 2000U);
}

// ThreadSanitizer would not see what happens in a guest process.
#if __has_feature(thread_sanitizer)
const auto kPlaces = testing::Values(Place::Here);
#else
const auto kPlaces = testing::Values(Place::Here, Place::GuestProcess);
#endif
INSTANTIATE_TEST_SUITE_P(, FlightTest, kPlaces, [](const testing::TestParamInfo<Place>& place) {
  return place.param == Place::Here ? "Here" : "GuestProcess";
});

}  // namespace
}  // namespace hangar::abi::flight
