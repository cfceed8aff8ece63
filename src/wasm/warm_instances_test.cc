#include "wasm/warm_instances.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/all.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/snapshot/checkpoint.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/test_guests.h"
#include "wasm/wasi/preview1.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

using namespace std::chrono_literals;

class WarmInstancesTest : public ::testing::Test {
 protected:
  explicit WarmInstancesTest(Engine::Options options = {})
      : rig_(options), functions_(rig_.engine()) {
    wasi::add_preview1(functions_);
    instances_.emplace(rig_.engine(), functions_);
  }

  void set_options(WarmInstances::Options options) {
    instances_.emplace(rig_.engine(), functions_, options);
  }

  // A checkpoint of the guest after `calls`.
  std::shared_ptr<const Checkpoint> checkpoint_of(const std::string& guest,
                                                  std::vector<Invocation> calls) {
    const auto bytes = GuestRig::bytes_of(guest);
    const auto module = rig_.await(SleepableModule::load(rig_.cache(), Digest::of(*bytes), bytes,
                                                         directory_.path() / "images", {}));
    EXPECT_TRUE(module.has_value()) << module.error().message();
    Instance instance(rig_.engine(), *module, functions_, state_, kMemoryMax);
    Calls turn(std::move(calls));
    EXPECT_TRUE(rig_.await(instance.run(turn, {}, {})).ended.has_value());
    auto checkpoint = rig_.await(instance.checkpoint(budget::unnamed_consumer()));
    EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message();
    return checkpoint ? *std::move(checkpoint) : nullptr;
  }
  // A checkpoint of a guest whose results depend on all its earlier calls.
  std::shared_ptr<const Checkpoint> sleeper() {
    return checkpoint_of("sleeper", {{.function = "work", .arguments = {30}}});
  }

  io::Task<TurnReport> turn_of(const std::shared_ptr<const Checkpoint>& checkpoint, Turn& turn,
                               TurnLimits limits = {},
                               std::uint64_t memory_bytes_max = kMemoryMax) {
    return instances_->run(checkpoint, memory_bytes_max, turn, state_, limits, {});
  }
  TurnReport run(const std::shared_ptr<const Checkpoint>& checkpoint, Turn& turn,
                 TurnLimits limits = {}, std::uint64_t memory_bytes_max = kMemoryMax) {
    return rig_.await(turn_of(checkpoint, turn, limits, memory_bytes_max));
  }
  std::uint64_t call(const std::shared_ptr<const Checkpoint>& checkpoint, std::string function,
                     std::vector<std::uint64_t> arguments,
                     std::uint64_t memory_bytes_max = kMemoryMax) {
    Calls calls({{.function = std::move(function), .arguments = std::move(arguments)}});
    const TurnReport report = run(checkpoint, calls, {}, memory_bytes_max);
    EXPECT_TRUE(report.ended.has_value()) << report.ended.error().message();
    return calls.results().empty() ? 0 : calls.results().front();
  }

  static constexpr std::uint64_t kMemoryMax = 64 * limits::kMiB;

  TemporaryDirectory directory_;
  GuestRig rig_;
  HostFunctions functions_;
  wasi::Command state_;
  std::optional<WarmInstances> instances_;
};

class OnEveryKernel : public WarmInstancesTest, public ::testing::WithParamInterface<bool> {
 protected:
  OnEveryKernel() : WarmInstancesTest({.scans_page_entries = GetParam()}) {}
};
INSTANTIATE_TEST_SUITE_P(WrittenPages, OnEveryKernel, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Entries" : "Scan"; });

TEST_P(OnEveryKernel, ATurnFindsNothingOfThoseBeforeIt) {
  const auto beginning = sleeper();
  Digest before;
  for (std::uint64_t round = 0; round < 40; ++round) {
    const std::vector<Invocation> work = {{.function = "work", .arguments = {round * round % 300}},
                                          {.function = "store", .arguments = {round * 4096, round}},
                                          {.function = "work", .arguments = {3}}};
    Instance fresh(rig_.engine(), beginning, functions_, state_, kMemoryMax);
    Calls expected(work);
    ASSERT_TRUE(rig_.await(fresh.run(expected, {}, {})).ended.has_value());
    Calls actual(work);
    ASSERT_TRUE(run(beginning, actual).ended.has_value());
    EXPECT_EQ(actual.results(), expected.results()) << "round " << round;
    EXPECT_EQ(actual.memory_before(), expected.memory_before()) << "round " << round;
    EXPECT_EQ(actual.memory_after(), expected.memory_after()) << "round " << round;
    EXPECT_EQ(instances_->kept_count(), 1U);
    if (round == 0) before = actual.memory_before();
    EXPECT_EQ(actual.memory_before(), before);
  }
}

TEST_F(WarmInstancesTest, EachTurnAsksForAllThatItsInstanceHas) {
  const auto beginning = sleeper();
  const auto largest_asked = [&](const Result<>& answer, Result<>& ended) {
    std::uint64_t largest = 0;
    Calls calls({{.function = "work", .arguments = {9}}});
    ended = rig_.await(instances_->run(beginning, kMemoryMax, calls, state_, {}, {},
                                       [&](std::uint64_t bytes) {
                                         largest = std::max(largest, bytes);
                                         return answer;
                                       }))
                .ended;
    return largest;
  };
  Result<> ended;
  const std::uint64_t first = largest_asked({}, ended);
  EXPECT_TRUE(ended.has_value());
  EXPECT_GT(first, kInstanceBytes);
  EXPECT_EQ(instances_->kept_count(), 1U);
  EXPECT_EQ(largest_asked({}, ended), first) << "asked for a kept instance";
  EXPECT_TRUE(ended.has_value());

  largest_asked(fail(ErrorKind::LimitExceeded, "there is none"), ended);
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().kind(), ErrorKind::Unavailable);
  EXPECT_NE(ended.error().message().find("there is none"), std::string::npos);
  EXPECT_EQ(instances_->kept_count(), 0U) << "its memory is free";

  EXPECT_EQ(largest_asked({}, ended), first);
  instances_->clear();
  EXPECT_EQ(instances_->kept_count(), 0U);
}

TEST_F(WarmInstancesTest, AnInstanceThatCannotGoBackIsNotKept) {
  const auto beginning = sleeper();
  const std::uint64_t first = call(beginning, "work", {9});
  const auto expect_ended = [&](const Invocation& invocation, std::string_view what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(instances_->kept_count(), 1U);
    Calls calls({{.function = "work", .arguments = {50}}, invocation});
    (void)run(beginning, calls, {.cpu_time_max = 30ms});
    EXPECT_EQ(instances_->kept_count(), 0U);
    EXPECT_EQ(call(beginning, "work", {9}), first);
  };
  expect_ended({.function = "fail"}, "trapped");
  expect_ended({.function = "spin"}, "timed out");
  expect_ended({.function = "leave"}, "left");
  expect_ended({.function = "missing"}, "was called wrongly");
  expect_ended({.function = "grow", .arguments = {1}}, "grew");
  EXPECT_EQ(call(beginning, "grow", {0}), 4U) << "grown memory is gone";
}

TEST_F(WarmInstancesTest, AnInstanceThatHasWrittenToTooMuchIsNotKept) {
  set_options({.bytes_max = 8 * kPageBytes});
  const auto beginning = sleeper();
  const std::uint64_t first = call(beginning, "work", {1});
  ASSERT_EQ(instances_->kept_count(), 1U);
  call(beginning, "work", {1000});
  EXPECT_EQ(instances_->kept_count(), 0U);
  EXPECT_EQ(call(beginning, "work", {1}), first);
}

TEST_F(WarmInstancesTest, EachCheckpointHasItsOwn) {
  const auto left = sleeper();
  const auto right = checkpoint_of("sleeper", {{.function = "work", .arguments = {31}}});
  const std::uint64_t of_left = call(left, "work", {5});
  const std::uint64_t of_right = call(right, "work", {5});
  EXPECT_NE(of_left, of_right);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(call(left, "work", {5}), of_left);
    EXPECT_EQ(call(right, "work", {5}), of_right);
  }
  EXPECT_EQ(instances_->kept_count(), 2U);
}

TEST_F(WarmInstancesTest, EachNamespaceHasItsOwn) {
  const auto beginning = sleeper();
  const auto turn_for = [&](const std::string& namespace_name) {
    Calls calls({{.function = "work", .arguments = {5}}});
    const TurnReport report =
        run(beginning, calls,
            {.consumer = {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "w"}});
    EXPECT_TRUE(report.ended.has_value());
  };
  turn_for("a");
  turn_for("b");
  turn_for("a");
  EXPECT_EQ(instances_->kept_count(), 2U);
}

TEST_F(WarmInstancesTest, EachLimitOfMemoryHasItsOwn) {
  const auto beginning = sleeper();
  call(beginning, "work", {5});
  EXPECT_EQ(call(beginning, "grow", {1}, 4 * 65536), 0xffff'ffffU);
  EXPECT_EQ(call(beginning, "grow", {1}), 4U);
}

TEST_F(WarmInstancesTest, TurnsAtATimeHaveAnInstanceEachAndFewAreKept) {
  set_options({.kept_max = 3});
  const auto beginning = sleeper();
  const std::uint64_t first = call(beginning, "work", {17});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Calls>> calls;
    std::vector<io::Task<TurnReport>> turns;
    for (int index = 0; index < 12; ++index) {
      calls.push_back(std::make_unique<Calls>(
          std::vector<Invocation>{{.function = "work", .arguments = {17}}}));
      turns.push_back(turn_of(beginning, *calls.back()));
    }
    for (const TurnReport& report : rig_.await(io::all(rig_.loop(), std::move(turns))))
      EXPECT_TRUE(report.ended.has_value());
    for (const auto& each : calls)
      EXPECT_EQ(each->results(), std::vector<std::uint64_t>{first});
    EXPECT_EQ(instances_->kept_count(), 3U);
  }
}

TEST_F(WarmInstancesTest, WhatIsNotUsedIsReleased) {
  set_options({.kept = Duration::zero()});
  const auto beginning = sleeper();
  const std::uint64_t first = call(beginning, "work", {2});
  rig_.loop().run_until([this] { return instances_->kept_count() == 0; });
  EXPECT_EQ(call(beginning, "work", {2}), first);
}

TEST_F(WarmInstancesTest, EachTurnHasAStateOfItsOwn) {
  const auto beginning = sleeper();
  call(beginning, "work", {2});
  ASSERT_EQ(instances_->kept_count(), 1U);
  wasi::Command other;
  Calls leave({{.function = "leave"}});
  const TurnReport report =
      rig_.await(instances_->run(beginning, kMemoryMax, leave, other, {}, {}));
  EXPECT_TRUE(report.has_left);
  EXPECT_EQ(other.exit_code, 3U);
  EXPECT_EQ(state_.exit_code, std::nullopt);
}

TEST_F(WarmInstancesTest, AModuleThatWritesToItsTablesHasNoCheckpoint) {
  const auto bytes = GuestRig::bytes_of("writes_its_table");
  const auto module = rig_.await(SleepableModule::load(rig_.cache(), Digest::of(*bytes), bytes,
                                                       directory_.path() / "images", {}));
  ASSERT_TRUE(module.has_value());
  Instance instance(rig_.engine(), *module, functions_, state_, kMemoryMax);
  Calls swap({{.function = "swap"}});
  ASSERT_TRUE(rig_.await(instance.run(swap, {}, {})).ended.has_value());
  const auto checkpoint = rig_.await(instance.checkpoint(budget::unnamed_consumer()));
  ASSERT_FALSE(checkpoint.has_value());
  EXPECT_EQ(checkpoint.error().kind(), ErrorKind::InvalidInput);
}

}  // namespace
}  // namespace hangar::wasm
