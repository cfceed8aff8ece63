#include "wasm/instance.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/all.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/guest_account.h"
#include "wasm/limits.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleepable_native.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/test_guests.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

using namespace std::chrono_literals;

class InstanceTest : public ::testing::Test {
 protected:
  explicit InstanceTest(Engine::Options options = {}) : rig_(options), functions_(rig_.engine()) {
    wasi::add_preview1(functions_);
  }

  std::shared_ptr<const SleepableModule> load(const std::string& name) {
    return load_bytes(GuestRig::bytes_of(name));
  }
  std::shared_ptr<const SleepableModule> load_bytes(std::shared_ptr<const std::string> bytes) {
    auto module = rig_.await(SleepableModule::load(rig_.cache(), Digest::of(*bytes), bytes,
                                                   directory_.path() / "images", {}));
    EXPECT_TRUE(module.has_value()) << module.error().message();
    return module ? *std::move(module) : nullptr;
  }

  std::unique_ptr<SnapshotStore> make_store(
      std::uint64_t bytes_max = limits::kSnapshotBytesMax) const {
    return SnapshotStore::open(directory_.path() / "snapshots", {.file_bytes_max = bytes_max})
        .value();
  }

  std::unique_ptr<Instance> make(const std::shared_ptr<const SleepableModule>& module,
                                 std::uint64_t memory_bytes_max = 64 * limits::kMiB) {
    return std::make_unique<Instance>(rig_.engine(), module, functions_, state_, memory_bytes_max);
  }

  TurnReport run(Instance& instance, Turn& turn, TurnLimits limits = {},
                 std::stop_token stop = {}) {
    return rig_.await(instance.run(turn, limits, std::move(stop)));
  }
  // Runs a turn of one call that must succeed.
  std::uint64_t call(Instance& instance, std::string function,
                     std::vector<std::uint64_t> arguments = {}) {
    Calls calls({{.function = std::move(function), .arguments = std::move(arguments)}});
    const TurnReport report = run(instance, calls);
    EXPECT_TRUE(report.ended.has_value()) << report.ended.error().message();
    return calls.results().empty() ? 0 : calls.results().front();
  }
  // Runs a turn of one call that must fail.
  Error fail_to_call(Instance& instance, std::string function, TurnLimits limits = {}) {
    Calls calls({{.function = std::move(function)}});
    const TurnReport report = run(instance, calls, limits);
    EXPECT_FALSE(report.ended.has_value());
    return report.ended ? Error(ErrorKind::Corrupt, "none") : report.ended.error();
  }
  void sleep(Instance& instance, SnapshotStore& store) {
    const bool is_resident = instance.resident_bytes() > 0;
    const Result<Duration> slept = rig_.await(instance.sleep(store));
    ASSERT_TRUE(slept.has_value()) << slept.error().message();
    EXPECT_EQ(*slept > Duration::zero(), is_resident) << "its processor time";
  }

  TemporaryDirectory directory_;
  GuestRig rig_;
  HostFunctions functions_;
  wasi::Command state_;
};

class ForEveryKernel : public InstanceTest, public ::testing::WithParamInterface<bool> {
 protected:
  ForEveryKernel() : InstanceTest({.scans_page_entries = GetParam()}) {}
};
INSTANTIATE_TEST_SUITE_P(WrittenPages, ForEveryKernel, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Entries" : "Scan"; });

TEST_P(ForEveryKernel, AnInstanceThatSleepsAfterEveryCallIsLikeOneThatNeverDoes) {
  const auto module = load("sleeper");
  ASSERT_EQ(module->obstacle(), nullptr);
  const auto store = make_store();
  const auto awake = make(module);
  const auto sleeper = make(module);
  for (std::uint64_t round = 0; round < 30; ++round) {
    const Invocation invocation =
        round % 7 == 3 ? Invocation{.function = "grow", .arguments = {round % 4}}
                       : Invocation{.function = "work", .arguments = {round * round % 50}};
    Calls expected({invocation});
    Calls actual({invocation});
    ASSERT_TRUE(run(*awake, expected).ended.has_value());
    const TurnReport report = run(*sleeper, actual);
    ASSERT_TRUE(report.ended.has_value()) << report.ended.error().message();
    EXPECT_EQ(report.was_asleep, round > 0);
    EXPECT_EQ(actual.results(), expected.results()) << "round " << round;
    EXPECT_EQ(actual.memory_bytes(), expected.memory_bytes()) << "round " << round;
    EXPECT_EQ(actual.memory_after(), expected.memory_after()) << "round " << round;
    EXPECT_GT(sleeper->resident_bytes(), 0U);
    sleep(*sleeper, *store);
    EXPECT_TRUE(sleeper->is_asleep());
    EXPECT_EQ(sleeper->resident_bytes(), 0U);
    EXPECT_GT(sleeper->disk_bytes(), 0U);
    EXPECT_GE(store->live_bytes(), sleeper->disk_bytes());
  }
}

TEST_P(ForEveryKernel, ACppProgramThatSleepsAfterEveryCallIsLikeOneThatNeverDoes) {
  const auto module = load("ledger");
  ASSERT_EQ(module->obstacle(), nullptr);
  const auto store = make_store();
  const auto awake = make(module);
  const auto sleeper = make(module);
  call(*awake, "_initialize");
  call(*sleeper, "_initialize");
  for (std::uint64_t round = 0; round < 60; ++round) {
    sleep(*sleeper, *store);
    const Invocation invocation{.function = "book", .arguments = {round, 200}};
    Calls expected({invocation});
    Calls actual({invocation});
    ASSERT_TRUE(run(*awake, expected).ended.has_value());
    const TurnReport report = run(*sleeper, actual);
    ASSERT_TRUE(report.ended.has_value()) << report.ended.error().message();
    EXPECT_EQ(actual.results(), expected.results()) << "round " << round;
    EXPECT_EQ(actual.memory_bytes(), expected.memory_bytes()) << "round " << round;
    EXPECT_EQ(actual.memory_after(), expected.memory_after()) << "round " << round;
  }
}

// Writes to so many pages from `first` on.
std::vector<Invocation> stores(std::uint64_t first, std::uint64_t pages, std::uint64_t value) {
  std::vector<Invocation> calls;
  for (std::uint64_t page = first; page < first + pages; ++page)
    calls.push_back({.function = "store", .arguments = {page * kPageBytes + 16, value + page}});
  return calls;
}

constexpr std::uint64_t kLayerPagesMin = limits::kLayerBytesMin / kPageBytes;
constexpr std::uint64_t kBesideLayerPagesMax = limits::kBesideLayerBytesMax / kPageBytes;

TEST_P(ForEveryKernel, AnInstanceWithALayerIsLikeOneThatNeverSleeps) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto awake = make(module);
  auto sleeper = make(module);
  const std::vector<std::pair<std::string, std::vector<Invocation>>> turns = {
      {"it starts", {{.function = "grow", .arguments = {50}}}},
      {"it gets a layer", stores(20, kLayerPagesMin, 1)},
      {"it writes to the layer", stores(30, 9, 2)},
      {"it writes to nothing", {{.function = "load", .arguments = {4096}}}},
      {"it writes beside the layer", stores(600, 3, 3)},
      {"the same again, and to the layer", stores(602, 1, 4)},
      {"it works", {{.function = "work", .arguments = {40}}}},
      {"it grows", {{.function = "grow", .arguments = {2}}}},
      {"it writes to what has grown", stores(54 * 16, 2, 5)},
      {"it gets another layer", stores(200, kBesideLayerPagesMax + 1, 6)},
      {"it writes to that", stores(199, 5, 7)},
      {"it reads from that", {{.function = "load", .arguments = {201 * kPageBytes + 16}}}},
  };
  for (const auto& [what, invocations] : turns) {
    SCOPED_TRACE(what);
    Calls expected(invocations);
    Calls actual(invocations);
    ASSERT_TRUE(run(*awake, expected).ended.has_value());
    const TurnReport report = run(*sleeper, actual);
    ASSERT_TRUE(report.ended.has_value()) << report.ended.error().message();
    EXPECT_EQ(actual.results(), expected.results());
    EXPECT_EQ(actual.memory_bytes(), expected.memory_bytes());
    EXPECT_TRUE(actual.memory_after() == expected.memory_after());
    sleep(*sleeper, *store);
    EXPECT_EQ(sleeper->disk_bytes() >= limits::kLayerBytesMin, what != "it starts");
    EXPECT_GE(store->live_bytes(), sleeper->disk_bytes());
    if (what == "it gets a layer") {
      sleeper =
          std::make_unique<Instance>(rig_.engine(), *sleeper->take_asleep(), functions_, state_);
    }
  }
  sleeper.reset();
  EXPECT_EQ(store->live_bytes(), 0U);
}

TEST_F(InstanceTest, ALayerIsNotCopiedIntoMemory) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto instance = make(module);
  call(*instance, "grow", {60});
  sleep(*instance, *store);
  Calls many(stores(20, kLayerPagesMin, 1));
  ASSERT_TRUE(run(*instance, many).ended.has_value());
  sleep(*instance, *store);
  for (int turn = 0; turn < 3; ++turn) {
    call(*instance, "store", {20 * kPageBytes, 1});
    EXPECT_LE(instance->resident_bytes(), 4 * kPageBytes);
    sleep(*instance, *store);
    EXPECT_LE(instance->disk_bytes(), limits::kLayerBytesMin + 24 * kPageBytes);
  }
}

TEST_F(InstanceTest, WithoutRoomForALayerItSleepsCompressed) {
  const auto module = load("sleeper");
  const auto store = make_store(limits::kLayerBytesMin);
  const auto instance = make(module);
  call(*instance, "grow", {60});
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    Calls calls(stores(20, 2 * kLayerPagesMin, turn));
    ASSERT_TRUE(run(*instance, calls).ended.has_value());
    sleep(*instance, *store);
    EXPECT_TRUE(instance->is_asleep());
    EXPECT_LT(instance->disk_bytes(), limits::kLayerBytesMin / 2);
  }
  EXPECT_EQ(call(*instance, "load", {21 * kPageBytes + 16}), 23U);
}

TEST_F(InstanceTest, WithoutRoomForAnotherLayerItKeepsItsOwn) {
  const auto module = load("sleeper");
  const auto store = make_store(4 * limits::kLayerBytesMin);  // Layers take at most half.
  const auto instance = make(module);
  call(*instance, "grow", {60});
  sleep(*instance, *store);
  for (const std::uint64_t first : {20U, 200U, 300U}) {
    Calls calls(stores(first, kLayerPagesMin, first));
    ASSERT_TRUE(run(*instance, calls).ended.has_value());
    sleep(*instance, *store);
    EXPECT_GE(instance->disk_bytes(), limits::kLayerBytesMin);
    EXPECT_LT(instance->disk_bytes(), limits::kLayerBytesMin + limits::kLayerBytesMin / 4);
  }
  EXPECT_EQ(call(*instance, "load", {21 * kPageBytes + 16}), 41U);
  EXPECT_EQ(call(*instance, "load", {201 * kPageBytes + 16}), 401U);
  EXPECT_EQ(call(*instance, "load", {301 * kPageBytes + 16}), 601U);
}

TEST_F(InstanceTest, WithoutRoomForItsSnapshotItKeepsItsLayer) {
  const auto module = load("sleeper");
  const auto store = make_store(4 * limits::kLayerBytesMin);
  const auto instance = make(module);
  call(*instance, "grow", {60});
  sleep(*instance, *store);
  Calls many(stores(20, kLayerPagesMin, 1));
  ASSERT_TRUE(run(*instance, many).ended.has_value());
  sleep(*instance, *store);
  EXPECT_GE(instance->disk_bytes(), limits::kLayerBytesMin);
  Calls some(stores(25, 4, 100));
  ASSERT_TRUE(run(*instance, some).ended.has_value());

  const std::uint64_t free =
      (4 * limits::kLayerBytesMin - store->live_bytes()) / 256 * 256;  // Its own snapshot is freed.
  const auto others = store->write(std::vector<std::byte>(free)).value();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result<Duration> slept = rig_.await(instance->sleep(*store));
    ASSERT_FALSE(slept.has_value());
    EXPECT_EQ(slept.error().kind(), ErrorKind::Unavailable);
    EXPECT_EQ(call(*instance, "load", {25 * kPageBytes + 16}), 125U);
    EXPECT_EQ(call(*instance, "load", {40 * kPageBytes + 16}), 41U);
    call(*instance, "store", {41 * kPageBytes + 16, 9});
  }
  store->free(others);
  sleep(*instance, *store);
  EXPECT_EQ(call(*instance, "load", {25 * kPageBytes + 16}), 125U);
  EXPECT_EQ(call(*instance, "load", {41 * kPageBytes + 16}), 9U);
  EXPECT_EQ(call(*instance, "load", {42 * kPageBytes + 16}), 43U);
}

// Cuts off the files of this process that have no name and lie in `directory`, as a disk does that
// loses what it was given.
void cut_off_files_of(const std::filesystem::path& directory) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), gone);
    if (gone || !target.string().starts_with(directory.string())) continue;
    if (::truncate(entry.path().c_str(), 0) == 0) ++files;
  }
  ASSERT_GT(files, 0);
}

// Like Calls, but reads nothing of the memory itself.
class BlindCalls final : public Turn {
 public:
  explicit BlindCalls(std::vector<Invocation> calls) : calls_(std::move(calls)) {}
  Result<std::optional<Invocation>> next(GuestMemory /*memory*/,
                                         std::uint64_t /*result*/) override {
    if (next_ == calls_.size()) return std::optional<Invocation>();
    return std::optional(calls_[next_++]);
  }

 private:
  const std::vector<Invocation> calls_;
  std::size_t next_ = 0;
};

class WithALostLayer : public InstanceTest {
 protected:
  // A guest whose layer has left the disk once it was mapped.
  std::unique_ptr<Instance> make_damaged() {
    auto instance = make(module_);
    call(*instance, "grow", {60});
    sleep(*instance, *store_);
    Calls many(stores(20, kLayerPagesMin, 1));
    EXPECT_TRUE(run(*instance, many).ended.has_value());
    sleep(*instance, *store_);
    BlindCalls resume({{.function = "load", .arguments = {0}}});
    EXPECT_TRUE(run(*instance, resume).ended.has_value());
    cut_off_files_of(directory_.path() / "snapshots");
    return instance;
  }

  const std::shared_ptr<const SleepableModule> module_ = load("sleeper");
  const std::unique_ptr<SnapshotStore> store_ = make_store();
};

TEST_F(WithALostLayer, AGuestFailsAloneWhenItReadsIt) {
  const auto other = make(module_);
  call(*other, "store", {4096, 5});
  const auto damaged = make_damaged();

  BlindCalls reads({{.function = "load", .arguments = {25 * kPageBytes}}, {.function = "leave"}});
  const TurnReport report = run(*damaged, reads);

  ASSERT_FALSE(report.ended.has_value());
  EXPECT_EQ(report.ended.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(report.ended.error().message(),
            "a page of the guest's memory cannot be read from the disk");
  EXPECT_FALSE(report.has_left);
  EXPECT_EQ(damaged->resident_bytes(), 0U);
  EXPECT_EQ(call(*other, "load", {4096}), 5U);
  EXPECT_EQ(call(*make(module_), "load", {1024}), 77U);
}

TEST_F(WithALostLayer, AGuestFailsAloneWhenTheHostReadsIt) {
  const auto damaged = make_damaged();
  EXPECT_EQ(fail_to_call(*damaged, "fail").message(),
            "a page of the guest's memory cannot be read from the disk");
}

TEST_F(WithALostLayer, AGuestThatGoesOnIsStoppedSoon) {
  const auto damaged = make_damaged();
  BlindCalls reads(
      {{.function = "work", .arguments = {std::numeric_limits<std::uint32_t>::max()}}});
  const TurnReport report = run(*damaged, reads);
  ASSERT_FALSE(report.ended.has_value());
  EXPECT_EQ(report.ended.error().message(),
            "a page of the guest's memory cannot be read from the disk");
  EXPECT_LT(report.cpu_time, 5s);
}

TEST_F(WithALostLayer, AGuestThatCannotBeWrittenIsLost) {
  const auto damaged = make_damaged();
  // It writes so much beside its layer that a new one is made of both.
  BlindCalls many(stores(300, kBesideLayerPagesMax + 1, 1));
  ASSERT_TRUE(run(*damaged, many).ended.has_value());

  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result<Duration> slept = rig_.await(damaged->sleep(*store_));
    ASSERT_FALSE(slept.has_value());
    EXPECT_EQ(slept.error().kind(), ErrorKind::Unavailable);
    EXPECT_FALSE(damaged->is_asleep());
  }
  EXPECT_EQ(damaged->disk_bytes(), 0U);
  EXPECT_EQ(store_->live_bytes(), 0U);
  EXPECT_EQ(fail_to_call(*damaged, "load").kind(), ErrorKind::Unavailable);
}

TEST_F(InstanceTest, TheStartFunctionRunsOnce) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto instance = make(module);
  EXPECT_EQ(call(*instance, "load", {1024}), 77U);
  call(*instance, "store", {1024, 5});
  sleep(*instance, *store);
  EXPECT_EQ(call(*instance, "load", {1024}), 5U);
}

// x86-64 makes a negative NaN where AArch64 makes a positive one, and both keep payloads by rules
// of their own.
TEST_F(InstanceTest, ANumberThatIsNoneHasTheSameBitsOnEveryMachine) {
  constexpr std::uint64_t kNan = 0x7ff8'0000'0000'0000;
  constexpr std::uint64_t kNan32 = 0x7fc0'0000;
  constexpr std::uint64_t kWithPayload = 0xfff8'0000'0000'0123;
  constexpr std::uint64_t kWithPayload32 = 0xffc0'0123;
  constexpr std::uint64_t kOne = 0x3ff0'0000'0000'0000;
  constexpr std::uint64_t kOne32 = 0x3f80'0000;
  constexpr std::uint64_t kMinusOne = 0xbff0'0000'0000'0000;
  const auto instance = make(load("not_a_number"));

  EXPECT_EQ(call(*instance, "divide_f64", {0, 0}), kNan);
  EXPECT_EQ(call(*instance, "root_f64", {kMinusOne}), kNan);
  EXPECT_EQ(call(*instance, "add_f64", {kWithPayload, kOne}), kNan);
  EXPECT_EQ(call(*instance, "largest_f64", {kWithPayload, kOne}), kNan);
  EXPECT_EQ(call(*instance, "round_f64", {kWithPayload}), kNan);
  EXPECT_EQ(call(*instance, "add_f64x2", {kWithPayload, kOne}), kNan);
  EXPECT_EQ(call(*instance, "widen_f32", {kWithPayload32}), kNan);
  EXPECT_EQ(call(*instance, "narrow_f64", {kWithPayload}), kNan32);
  EXPECT_EQ(call(*instance, "add_f32", {kWithPayload32, kOne32}), kNan32);
}

TEST_F(InstanceTest, GrownMemoryIsZeroAfterSleeping) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto instance = make(module);
  EXPECT_EQ(call(*instance, "grow", {2}), 4U);
  call(*instance, "store", {5 * 65536, 123});
  sleep(*instance, *store);
  EXPECT_EQ(call(*instance, "grow", {1}), 6U);
  EXPECT_EQ(call(*instance, "load", {5 * 65536}), 123U);
  EXPECT_EQ(call(*instance, "load", {6 * 65536}), 0U);
  sleep(*instance, *store);
  EXPECT_EQ(call(*instance, "grow", {0}), 7U);
}

TEST_F(InstanceTest, PagesThatAreWrittenBackToWhatTheyWereTakeNoRoom) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto instance = make(module);
  sleep(*instance, *store);  // Not started, so there is nothing to do.
  EXPECT_FALSE(instance->is_asleep());
  call(*instance, "load", {0});
  sleep(*instance, *store);
  const std::uint64_t untouched = instance->disk_bytes();
  for (std::uint64_t page = 10; page < 40; ++page)
    call(*instance, "store", {page * 4096, page});
  for (std::uint64_t page = 10; page < 40; ++page)
    call(*instance, "store", {page * 4096, 0});
  sleep(*instance, *store);
  EXPECT_LE(instance->disk_bytes(), untouched + 8);
}

TEST_F(InstanceTest, AnInstanceThatEndsAsleepFreesItsExtent) {
  const auto module = load("sleeper");
  const auto store = make_store();
  auto instance = make(module);
  call(*instance, "work", {3});
  sleep(*instance, *store);
  EXPECT_GT(store->live_bytes(), 0U);
  instance.reset();
  EXPECT_EQ(store->live_bytes(), 0U);
}

TEST_F(InstanceTest, WhatIsLeftOfASleeperIsFreedWithIt) {
  const auto module = load("sleeper");
  const auto store = make_store();
  auto instance = make(module);
  EXPECT_FALSE(instance->take_asleep().has_value());
  call(*instance, "work", {3});
  EXPECT_FALSE(instance->take_asleep().has_value());
  sleep(*instance, *store);
  const std::uint64_t disk_bytes = instance->disk_bytes();
  const std::uint64_t live_bytes = store->live_bytes();

  std::optional<SleepingInstance> asleep = instance->take_asleep();
  ASSERT_TRUE(asleep.has_value());
  EXPECT_FALSE(instance->take_asleep().has_value());
  EXPECT_EQ(fail_to_call(*instance, "work").message(),
            "the instance failed or exited in an earlier turn");
  instance.reset();
  EXPECT_EQ(asleep->disk_bytes(), disk_bytes);
  EXPECT_EQ(store->live_bytes(), live_bytes);
  EXPECT_EQ(module->native().instance_count, 1U);

  std::optional<SleepingInstance> moved(*std::move(asleep));
  asleep.reset();
  EXPECT_EQ(store->live_bytes(), live_bytes);
  EXPECT_EQ(module->native().instance_count, 1U);

  moved.reset();
  EXPECT_EQ(store->live_bytes(), 0U);
  EXPECT_EQ(module->native().instance_count, 0U);
}

TEST_F(InstanceTest, WhatIsLeftOfASleeperGoesOnWhereItWas) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto awake = make(module, 6 * 65536);
  auto sleeper = make(module, 6 * 65536);
  for (std::uint64_t round = 0; round < 5; ++round) {
    EXPECT_EQ(call(*sleeper, "work", {round}), call(*awake, "work", {round}));
    sleep(*sleeper, *store);
    const std::uint64_t disk_bytes = sleeper->disk_bytes();
    sleeper =
        std::make_unique<Instance>(rig_.engine(), *sleeper->take_asleep(), functions_, state_);
    EXPECT_TRUE(sleeper->is_asleep());
    EXPECT_EQ(sleeper->resident_bytes(), 0U);
    EXPECT_EQ(sleeper->disk_bytes(), disk_bytes);
    EXPECT_EQ(module->native().instance_count, 2U);
  }
  EXPECT_EQ(call(*sleeper, "grow", {3}), 0xffff'ffffU) << "its memory is bounded as before";

  sleep(*sleeper, *store);
  sleeper = std::make_unique<Instance>(rig_.engine(), *sleeper->take_asleep(), functions_, state_);
  sleeper.reset();
  EXPECT_EQ(store->live_bytes(), 0U);
  EXPECT_EQ(module->native().instance_count, 1U);
}

TEST_F(InstanceTest, ManyInstancesShareOneImageAndSettleOnABetterOne) {
  const auto module = load("sleeper");
  const auto store = make_store();
  std::vector<std::unique_ptr<Instance>> instances;
  constexpr std::size_t kCount = 200;
  for (std::size_t index = 0; index < kCount; ++index) {
    instances.push_back(make(module));
    // All do the same at first, as programs do when they start.
    call(*instances.back(), "work", {60});
  }
  const std::uint64_t initial_bytes = module->image_bytes();
  EXPECT_LE(initial_bytes, 5 * kPageBytes);  // Of 16 pages; the rest are holes.
  sleep(*instances[0], *store);
  EXPECT_GT(module->image_bytes(), initial_bytes) << "an image of what all have in common";
  std::uint64_t largest = 0;
  for (std::size_t index = 1; index < kCount; ++index) {
    sleep(*instances[index], *store);
    largest = std::max(largest, instances[index]->disk_bytes());
  }
  EXPECT_LE(largest, 400U) << "what they have in common lies in the image";
  // Instances that slept on the first image, instances mapped from the first that slept on the
  // second, and instances mapped from the second: all continue like one that never slept.
  const auto awake = make(module);
  Calls begin({{.function = "work", .arguments = {60}}});
  ASSERT_TRUE(run(*awake, begin).ended.has_value());
  for (int round = 0; round < 3; ++round) {
    Calls expected({{.function = "work", .arguments = {9}}});
    ASSERT_TRUE(run(*awake, expected).ended.has_value());
    for (const std::size_t index : {0UL, 1UL, 2UL, kCount - 1}) {
      Calls actual({{.function = "work", .arguments = {9}}});
      ASSERT_TRUE(run(*instances[index], actual).ended.has_value());
      EXPECT_EQ(actual.results(), expected.results());
      EXPECT_EQ(actual.memory_after(), expected.memory_after());
      sleep(*instances[index], *store);
    }
  }
}

TEST_F(InstanceTest, AnInstanceUnlikeTheOthersSleepsOnTheFirstImage) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto odd = make(module);
  call(*odd, "grow", {4});
  for (std::uint64_t page = 0; page < 100; ++page)
    call(*odd, "store", {page * 4096, 1000 + page});
  std::vector<std::unique_ptr<Instance>> crowd;
  crowd.reserve(800);
  for (int index = 0; index < 800; ++index)
    crowd.push_back(make(module));
  sleep(*odd, *store);  // Makes the second image, of 100 pages that no other instance has.
  ASSERT_NE(module->native().settled(), nullptr);
  call(*crowd[0], "store", {4096, 1});
  sleep(*crowd[0], *store);
  EXPECT_LT(crowd[0]->disk_bytes(), 350U);
  EXPECT_EQ(call(*crowd[0], "load", {4096}), 1U);
  EXPECT_EQ(call(*crowd[0], "load", {8 * 4096}), 0U);
  // Smaller than the image on which it slept, and larger later: the new memory is zero.
  sleep(*odd, *store);
  EXPECT_EQ(call(*odd, "load", {99 * 4096}), 1099U);
}

TEST_F(InstanceTest, AModuleWithAnObstacleRunsAndStays) {
  const auto module = load("writes_its_table");
  ASSERT_NE(module->obstacle(), nullptr);
  EXPECT_EQ(*module->obstacle(), "writes to a table (table.set)");
  EXPECT_EQ(module->image_bytes(), 0U);
  const auto store = make_store();
  const auto instance = make(module);
  EXPECT_EQ(call(*instance, "call"), 1U);
  call(*instance, "swap");
  const Result<Duration> slept = rig_.await(instance->sleep(*store));
  ASSERT_FALSE(slept.has_value());
  EXPECT_EQ(slept.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(call(*instance, "call"), 2U);
}

TEST_F(InstanceTest, PassiveDataStaysWhereItIs) {
  const auto module = load("passive_data");
  ASSERT_EQ(module->obstacle(), nullptr);
  const auto store = make_store();
  const auto instance = make(module);
  call(*instance, "copy");
  sleep(*instance, *store);
  EXPECT_EQ(call(*instance, "load", {64}), 0x0065'7669'7373'6170U);  // "passive"
  call(*instance, "copy");
  EXPECT_EQ(call(*instance, "load", {8}), 0x6576'6974'6361U);  // "active"
}

TEST_F(InstanceTest, WithoutRoomItStaysResidentAndUsable) {
  const auto module = load("sleeper");
  const auto store = make_store(1024);
  const auto instance = make(module);
  call(*instance, "work", {200});
  const Result<Duration> slept = rig_.await(instance->sleep(*store));
  ASSERT_FALSE(slept.has_value());
  EXPECT_EQ(slept.error().kind(), ErrorKind::Unavailable);
  EXPECT_FALSE(instance->is_asleep());
  EXPECT_GT(instance->resident_bytes(), 0U);
  EXPECT_EQ(store->live_bytes(), 0U);
  call(*instance, "store", {4096, 9});
  EXPECT_EQ(call(*instance, "load", {4096}), 9U);
}

TEST_F(InstanceTest, ASnapshotThatIsNotWhatWasWrittenIsRefused) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto instance = make(module);
  call(*instance, "work", {20});
  sleep(*instance, *store);
  // Overwrites its extent in the store.
  const SnapshotStore::Extent extent{
      .offset = 0, .size_bytes = static_cast<std::uint32_t>(instance->disk_bytes())};
  std::vector<std::byte> bytes(extent.size_bytes);
  ASSERT_TRUE(store->read(extent, bytes).has_value());
  bytes[bytes.size() / 2] ^= std::byte{4};
  store->free(extent);
  ASSERT_EQ(store->write(bytes).value().offset, extent.offset);

  Calls calls({{.function = "work", .arguments = {1}}});
  const TurnReport report = run(*instance, calls);
  ASSERT_FALSE(report.ended.has_value());
  EXPECT_EQ(report.ended.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(report.ended.error().message(), "the snapshot is broken: it fails its checksum");
  EXPECT_TRUE(calls.results().empty());
  EXPECT_EQ(instance->resident_bytes(), 0U);
  EXPECT_EQ(store->live_bytes(), 0U);
  EXPECT_EQ(fail_to_call(*instance, "work").message(),
            "the instance failed or exited in an earlier turn");
}

class ForgetfulEngineTest : public InstanceTest {
 protected:
  ForgetfulEngineTest() : InstanceTest({.sleeping_code_kept = Duration::zero()}) {}

  void run_until_unloaded(const SleepableModule& module) {
    while (module.is_loaded())
      rig_.await(turn_of_loop(rig_.engine().loop()));
  }

  static io::Task<bool> turn_of_loop(io::Loop& loop) {
    (void)co_await loop.sleep(Duration::zero(), {});
    co_return true;
  }
};

TEST_F(ForgetfulEngineTest, CodeThatOnlySleepersHaveIsUnloadedAndComesBackWithThem) {
  const auto resident = make(load("sleeper"));
  const std::uint64_t first = call(*resident, "work", {3});
  const std::uint64_t second = call(*resident, "work", {4});

  CodeCache cache(rig_.engine(), {.directory = directory_.path() / "code",
                                  .compile_program = HANGAR_COMPILE_PROGRAM});
  ASSERT_TRUE(cache.open().has_value());
  const auto bytes = GuestRig::bytes_of("sleeper");
  const auto module = rig_.await(SleepableModule::load(cache, Digest::of(*bytes), bytes,
                                                       directory_.path() / "images", {}))
                          .value();
  const auto store = make_store();
  const auto left = make(module);
  const auto right = make(module);
  EXPECT_EQ(call(*left, "work", {3}), first);
  EXPECT_EQ(call(*right, "work", {3}), first);
  sleep(*left, *store);
  sleep(*right, *store);
  run_until_unloaded(*module);

  // The cache is not needed for this: its entry may have been evicted.
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path() / "code"))
    std::filesystem::remove(entry.path());
  EXPECT_EQ(call(*left, "work", {4}), second);
  EXPECT_TRUE(module->is_loaded());
  sleep(*left, *store);
  run_until_unloaded(*module);
  EXPECT_EQ(call(*right, "work", {4}), second);
}

TEST_F(ForgetfulEngineTest, CodeOfWhoeverIsAwakeStays) {
  const auto module = load("sleeper");
  const auto store = make_store();
  const auto awake = make(module);
  const auto sleeper = make(module);
  const std::uint64_t first = call(*awake, "work", {3});
  call(*sleeper, "work", {3});
  sleep(*sleeper, *store);
  for (int turn = 0; turn < 5; ++turn)
    rig_.await(turn_of_loop(rig_.engine().loop()));
  EXPECT_TRUE(module->is_loaded());
  sleep(*awake, *store);
  run_until_unloaded(*module);
  EXPECT_NE(call(*awake, "work", {3}), first);
}

TEST_F(InstanceTest, ATrapNamesTheFunctionsAndEndsTheInstance) {
  const auto module = load("sleeper");
  const auto instance = make(module);
  const Error error = fail_to_call(*instance, "fail");
  EXPECT_EQ(error.kind(), ErrorKind::GuestFault);
  EXPECT_NE(error.message().find("wasm trap: unreachable executed; at fail"), std::string::npos)
      << error.message();
  EXPECT_EQ(fail_to_call(*instance, "leave").kind(), ErrorKind::Unavailable);
}

TEST_F(InstanceTest, TheLimitOfATurnIsProcessorTime) {
  const auto module = load("sleeper");
  const auto instance = make(module);
  Calls calls({{.function = "spin"}});
  const TurnReport report = run(*instance, calls, {.cpu_time_max = 30ms});
  ASSERT_FALSE(report.ended.has_value());
  EXPECT_EQ(report.ended.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_TRUE(report.ended.error().message().starts_with(
      "execution timeout (30ms of processor time) exceeded; at "))
      << report.ended.error().message();
  EXPECT_TRUE(report.has_timed_out);
  EXPECT_GE(report.cpu_time, 30ms);
}

// Runs until a thread of lower priority continues it, and records the priorities that it has seen.
class LongTurn final : public Turn {
 public:
  Result<std::optional<Invocation>> next(GuestMemory /*memory*/,
                                         std::uint64_t /*result*/) override {
    nices_.push_back(::getpriority(PRIO_PROCESS, 0));
    if (nices_.back() > nices_.front()) return std::optional<Invocation>();
    return Invocation{.function = "work", .arguments = {1'000'000}};
  }
  [[nodiscard]] const std::vector<int>& nices() const { return nices_; }

 private:
  std::vector<int> nices_;
};

TEST_F(InstanceTest, ATurnThatTakesLongGivesWayToOthers) {
  const auto module = load("sleeper");
  const auto instance = make(module);
  LongTurn turn;
  const TurnReport report = run(*instance, turn, {.cpu_time_max = 10s});
  ASSERT_TRUE(report.ended.has_value())
      << report.ended.error().message() << " (are the tests run with a low priority?)";
  EXPECT_GE(report.cpu_time, kShortRunMax);
  EXPECT_GT(turn.nices().back(), turn.nices().front());

  // Its next turn begins like any other.
  LongTurn another;
  ASSERT_TRUE(run(*instance, another, {.cpu_time_max = 10s}).ended.has_value());
  EXPECT_EQ(another.nices().front(), turn.nices().front());
}

TEST_F(InstanceTest, ATurnCanBeStopped) {
  const auto module = load("sleeper");
  const auto instance = make(module);
  std::stop_source stop;
  const auto timer = rig_.loop().after(1ms, [&stop] { stop.request_stop(); });
  Calls calls({{.function = "spin"}});
  const TurnReport report = run(*instance, calls, {.cpu_time_max = std::nullopt}, stop.get_token());
  ASSERT_FALSE(report.ended.has_value());
  EXPECT_EQ(report.ended.error().kind(), ErrorKind::Cancelled);
}

TEST_F(InstanceTest, AGuestThatLeavesHasEndedWell) {
  const auto module = load("sleeper");
  const auto instance = make(module);
  Calls calls({{.function = "leave"}});
  const TurnReport report = run(*instance, calls);
  EXPECT_TRUE(report.ended.has_value());
  EXPECT_TRUE(report.has_left);
  EXPECT_EQ(state_.exit_code, 3U);
  EXPECT_EQ(instance->resident_bytes(), 0U);
}

TEST_F(InstanceTest, CallsThatDoNotFitTheExportAreRefused) {
  const auto module = load("sleeper");
  EXPECT_EQ(fail_to_call(*make(module), "missing").kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(fail_to_call(*make(module), "work").kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(fail_to_call(*make(module), "memory").kind(), ErrorKind::InvalidInput);
}

TEST_F(InstanceTest, MemoryIsBounded) {
  const auto module = load("sleeper");
  EXPECT_EQ(fail_to_call(*make(module, 65536), "work").kind(), ErrorKind::LimitExceeded);
  const auto instance = make(module, 5 * 65536);
  EXPECT_EQ(call(*instance, "grow", {1}), 4U);
  EXPECT_EQ(call(*instance, "grow", {1}), 0xffff'ffffU);
}

TEST_F(InstanceTest, TablesCountAsMemory) {
  constexpr std::uint64_t kRefused = 0xffff'ffffU;
  const auto module = load("tables_grow");
  const auto instance = make(module, 8 * 65536);
  // A page of memory and six pages of table elements of eight bytes.
  EXPECT_EQ(call(*instance, "grow_first", {3 * 8192}), 0U);
  EXPECT_EQ(call(*instance, "grow_second", {3 * 8192}), 0U);
  EXPECT_EQ(instance->resident_bytes(), 6 * 65536U);

  EXPECT_EQ(call(*instance, "grow_second", {8193}), kRefused);
  EXPECT_EQ(call(*instance, "grow_memory", {2}), kRefused);
  EXPECT_EQ(call(*instance, "grow_memory", {1}), 1U);
  EXPECT_EQ(call(*instance, "grow_first", {1}), kRefused);
  EXPECT_EQ(call(*instance, "grow_memory", {1}), kRefused);
}

TEST_F(InstanceTest, TablesOfTheStartCountAsMemory) {
  const auto module = load("many_tables");
  const Error refused = fail_to_call(*make(module, limits::kMiB), "_start");
  EXPECT_EQ(refused.kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("exceeds table limits"));

  const auto instance = make(module, 33 * limits::kMiB);
  call(*instance, "_start");
  EXPECT_GE(instance->resident_bytes(), 8 * 500'000 * 8U);
}

TEST_F(InstanceTest, TurnsOfManyInstancesShareTheWorkers) {
  const auto module = load("sleeper");
  const auto store = make_store();
  constexpr std::size_t kCount = 40;
  std::vector<std::unique_ptr<Instance>> instances;
  for (std::size_t index = 0; index < kCount; ++index)
    instances.push_back(make(module));
  std::vector<std::uint64_t> first;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Calls>> calls;
    std::vector<io::Task<TurnReport>> turns;
    for (const auto& instance : instances) {
      calls.push_back(std::make_unique<Calls>(
          std::vector<Invocation>(3, {.function = "work", .arguments = {17}})));
      turns.push_back(instance->run(*calls.back(), {}, {}));
    }
    for (const TurnReport& report : rig_.await(io::all(rig_.loop(), std::move(turns))))
      EXPECT_TRUE(report.ended.has_value());
    for (const auto& each : calls)
      EXPECT_EQ(each->results(), calls.front()->results());
    std::vector<io::Task<Result<Duration>>> sleeps;
    sleeps.reserve(instances.size());
    for (const auto& instance : instances)
      sleeps.push_back(instance->sleep(*store));
    for (const Result<Duration>& slept : rig_.await(io::all(rig_.loop(), std::move(sleeps))))
      EXPECT_TRUE(slept.has_value());
  }
}

class SharedMemoryTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPage = 65536;
  static constexpr std::uint64_t kOwn = kInstanceBytes;

  SharedMemoryTest() { wasi::add_preview1(functions_); }

  std::shared_ptr<const SleepableModule> load(const std::string& name) {
    auto bytes = GuestRig::bytes_of(name);
    auto module = rig_.await(SleepableModule::load(rig_.cache(), Digest::of(*bytes), bytes,
                                                   directory_.path() / "images", {}));
    EXPECT_TRUE(module.has_value()) << module.error().message();
    return module ? *std::move(module) : nullptr;
  }
  std::unique_ptr<Instance> make(const std::shared_ptr<const SleepableModule>& module) {
    return std::make_unique<Instance>(rig_.engine(), module, functions_, state_, 64 * limits::kMiB);
  }
  static io::Task<void> call(Instance& instance, std::string namespace_name, std::string function,
                             std::vector<std::uint64_t> arguments, std::string& order,
                             std::vector<std::uint64_t>& results, std::stop_token stop = {}) {
    Calls calls({{.function = std::move(function), .arguments = std::move(arguments)}});
    const TurnReport report = co_await instance.run(
        calls,
        {.consumer = {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "guest"}},
        std::move(stop));
    order += report.ended ? namespace_name : "!";
    if (!report.ended) error_kind = report.ended.error().kind();
    if (!calls.results().empty()) results.push_back(calls.results().front());
  }
  void run(Instance& instance, const std::string& namespace_name, const std::string& function,
           std::vector<std::uint64_t> arguments) {
    rig_.loop().spawn(call(instance, namespace_name, function, std::move(arguments), order_,
                           results_, stop_.get_token()));
  }
  void wait_for(const std::string& order) {
    rig_.loop().run_until([&] { return order_ == order; });
  }

  static inline ErrorKind error_kind = ErrorKind::Corrupt;

  TemporaryDirectory directory_;
  // Room for two instances with the four pages of "sleeper" and four more pages.
  budget::Accounts accounts_{{.host_bytes_max = 2 * (kOwn + 4 * kPage) + 4 * kPage}};
  GuestRig rig_{Engine::Options{.memory = &accounts_}};
  HostFunctions functions_{rig_.engine()};
  wasi::Command state_;
  std::stop_source stop_;
  std::string order_;
  std::vector<std::uint64_t> results_;
};

TEST_F(SharedMemoryTest, GuestsReserveWhatTheyMayTake) {
  const auto module = load("sleeper");
  const std::uint64_t begin = module->memory_bytes_min();
  const auto store = SnapshotStore::open(directory_.path() / "snapshots").value();
  const auto instance = make(module);
  EXPECT_EQ(instance->memory_bytes_needed(), begin);

  run(*instance, "a", "grow", {1});
  wait_for("a");
  EXPECT_EQ(accounts_.held_bytes(), begin + kPage + kOwn);
  EXPECT_EQ(accounts_.held_bytes(budget::Tenant::of_namespace("a")), begin + kPage + kOwn);
  EXPECT_EQ(instance->memory_bytes_needed(), 0U);

  ASSERT_TRUE(rig_.await(instance->sleep(*store)).has_value());
  EXPECT_EQ(accounts_.held_bytes(), 0U);
  EXPECT_EQ(instance->memory_bytes_needed(), begin + kPage);

  run(*instance, "a", "grow", {0});
  wait_for("aa");
  EXPECT_EQ(accounts_.held_bytes(), begin + kPage + kOwn);
}

TEST_F(SharedMemoryTest, NoMoreIsTakenTogetherThanTheHostHas) {
  constexpr std::uint64_t kRefused = 0xffff'ffffU;
  const auto module = load("sleeper");
  const auto first = make(module);
  const auto second = make(module);
  run(*first, "a", "grow", {0});
  wait_for("a");
  run(*second, "b", "grow", {0});
  wait_for("ab");
  const std::uint64_t free = accounts_.limits().host_bytes_max - accounts_.held_bytes();

  run(*first, "a", "grow", {free / kPage});
  wait_for("aba");
  EXPECT_NE(results_.back(), kRefused);
  run(*second, "b", "grow", {1});
  wait_for("abab");
  EXPECT_EQ(results_.back(), kRefused);
  EXPECT_LE(accounts_.held_bytes(), accounts_.limits().host_bytes_max);
}

TEST_F(SharedMemoryTest, AGuestThatDoesNotFitWaitsUntilOthersHaveLeft) {
  const auto module = load("sleeper");
  auto first = make(module);
  const auto second = make(module);
  const auto third = make(module);
  run(*first, "a", "grow", {2});
  wait_for("a");
  run(*second, "b", "grow", {2});
  wait_for("ab");

  run(*third, "c", "grow", {0});
  ASSERT_LT(accounts_.limits().host_bytes_max - accounts_.held_bytes(),
            module->memory_bytes_min() + kOwn);
  first.reset();
  wait_for("abc");
}

TEST_F(SharedMemoryTest, OneThatWaitsCanBeStopped) {
  const auto module = load("sleeper");
  const auto first = make(module);
  const auto second = make(module);
  const auto third = make(module);
  run(*first, "a", "grow", {2});
  wait_for("a");
  run(*second, "b", "grow", {2});
  wait_for("ab");

  run(*third, "c", "grow", {0});
  rig_.loop().post([this] { stop_.request_stop(); });
  wait_for("ab!");

  EXPECT_EQ(error_kind, ErrorKind::Cancelled);
}

TEST_F(InstanceTest, GuestsOfOneNamespaceThatBurnDoNotHoldUpAnother) {
  constexpr std::size_t kBurners = 8;
  const auto endless = load("endless_loop");
  const auto sleeper = load("sleeper");
  std::vector<std::unique_ptr<Instance>> burners;
  std::vector<std::unique_ptr<Calls>> calls;
  std::size_t ended = 0;
  const auto burn = [](Instance& instance, Calls& turn, std::size_t& count) -> io::Task<void> {
    const TurnReport report = co_await instance.run(
        turn,
        {.cpu_time_max = 1s,
         .consumer = {.tenant = budget::Tenant::of_namespace("burners"), .name = "burner"}},
        {});
    EXPECT_TRUE(report.has_timed_out);
    ++count;
  };
  for (std::size_t index = 0; index < kBurners; ++index) {
    burners.push_back(make(endless));
    calls.push_back(std::make_unique<Calls>(std::vector<Invocation>{{.function = "_start"}}));
    rig_.loop().spawn(burn(*burners.back(), *calls.back(), ended));
  }
  const auto neighbour = make(sleeper);
  for (int turn = 0; turn < 20; ++turn) {
    Calls work({{.function = "work", .arguments = {1}}});
    const TurnReport report =
        run(*neighbour, work,
            {.consumer = {.tenant = budget::Tenant::of_namespace("team"), .name = "neighbour"}});
    ASSERT_TRUE(report.ended.has_value()) << report.ended.error().message();
  }

  // In order of arrival, all burners would have used their second first.
  EXPECT_LT(ended, kBurners / 2);
  rig_.loop().run_until([&ended] { return ended == kBurners; });
}

TEST_F(InstanceTest, AModuleIsCheckedAgainstItsDigest) {
  const auto bytes = GuestRig::bytes_of("sleeper");
  const auto refused = rig_.await(SleepableModule::load(rig_.cache(), Digest::of("other"), bytes,
                                                        directory_.path() / "images", {}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
}

// The sanitizers' own memory needs mappings.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

// Takes all mappings that the kernel gives to a process (vm.max_map_count).
class AllMappings {
 public:
  AllMappings() {
    // A page with other rights than its neighbours is a mapping of its own.
    void* const address =
        ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(address, MAP_FAILED);
    memory_ = static_cast<std::byte*>(address);
    std::size_t at = 0;
    while (at < kBytes && ::mprotect(memory_ + at, kPageBytes, PROT_READ) == 0)
      at += 2 * kPageBytes;
    EXPECT_LT(at, kBytes) << "there are mappings left";
  }
  AllMappings(const AllMappings&) = delete;
  AllMappings& operator=(const AllMappings&) = delete;
  ~AllMappings() { ::munmap(memory_, kBytes); }

  // Two for every second page.
  static constexpr std::size_t kBytes = 16384 * limits::kMiB;
  static constexpr std::size_t kMappingsMax = kBytes / kPageBytes;

 private:
  std::byte* memory_ = nullptr;
};

class WithoutMappings : public InstanceTest {
 public:
  void TestBody() override {
    const auto module = load("sleeper");
    const auto store = make_store();
    const auto resumed = make(module);
    const auto spared = make(module);
    const auto refused = make(module);
    for (Instance* const one : {resumed.get(), spared.get()}) {
      call(*one, "store", {4096, 9});
      sleep(*one, *store);
    }
    {
      const AllMappings all;
      for (Instance* const one : {resumed.get(), refused.get()}) {
        const Error error = fail_to_call(*one, "work");
        EXPECT_EQ(error.kind(), ErrorKind::Unavailable);
        EXPECT_THAT(error.message(), ::testing::HasSubstr("Cannot allocate memory"));
      }
    }
    EXPECT_EQ(call(*spared, "load", {4096}), 9U);
    EXPECT_EQ(fail_to_call(*resumed, "work").message(),
              "the instance failed or exited in an earlier turn");
    call(*make(module), "work", {20});
    EXPECT_EQ(store->live_bytes(), 0U);
  }
};

int run_without_mappings() {
  WithoutMappings().TestBody();
  return ::testing::Test::HasFailure() ? 1 : 0;
}

// In a process of its own, in which no other thread needs a mapping meanwhile.
TEST(InstancesWithoutMappings, FailWithTheReasonAndOthersGoOn) {
  std::size_t allowed = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> allowed;
  if (allowed > AllMappings::kMappingsMax) GTEST_SKIP() << "vm.max_map_count is too large to reach";
  (void)shared_code_directory();  // Made here, so that it is removed.
  EXPECT_EXIT(std::_Exit(run_without_mappings()), ::testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace hangar::wasm
