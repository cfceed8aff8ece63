#include "budget/memory_pressure.h"

#include "base/limits.h"
#include "budget/test_machine_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::budget {
namespace {

using namespace std::chrono_literals;
using limits::kMiB;

constexpr Instant kStart{1h};

// Files in the form that containers of each kind show. Only these files test version 2: the tests
// may run on a machine whose memory controller is of version 1.
using MemoryGaugeTest = MachineFilesTest;

TEST_F(MemoryGaugeTest, ReadsVersion2) {
  write("proc/self/cgroup", "0::/kubepods.slice/pod1.slice\n");
  write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  const std::string group = "sys/fs/cgroup/kubepods.slice/pod1.slice/";
  write(group + "memory.current", "125829120\n");
  write(group + "memory.high", "max\n");
  write(group + "memory.max", "134217728\n");
  write(group + "memory.stat",
        "anon 83886080\nfile 41943040\nkernel 2097152\ninactive_anon 0\nactive_anon 83886080\n"
        "inactive_file 20971520\nactive_file 20971520\nworkingset_refault_file 12\n");
  write(group + "memory.pressure",
        "some avg10=0.12 avg60=0.02 avg300=0.00 total=123456\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1200\n");

  const MemoryReading reading = MemoryGauge(root_).read();
  EXPECT_EQ(reading.used_bytes, 100 * kMiB);
  EXPECT_EQ(reading.limit_bytes, 128 * kMiB);
  EXPECT_EQ(reading.stall, (Stall{.some = 123456us, .full = 1200us}));
}

TEST_F(MemoryGaugeTest, OfVersion2TheLowerBoundCounts) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.current", "1048576\n");
  write("sys/fs/cgroup/memory.max", "134217728\n");
  write("sys/fs/cgroup/memory.high", "104857600\n");
  EXPECT_EQ(MemoryGauge(root_).read().limit_bytes, 100 * kMiB);
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(MemoryGauge(root_).read().limit_bytes, 100 * kMiB);
}

TEST_F(MemoryGaugeTest, ReadsVersion1AndTheMachinesStalls) {
  write("proc/self/cgroup", "4:memory:/kubepods/pod1\n1:name=systemd:/kubepods/pod1\n0::/\n");
  write("proc/pressure/memory",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=22857\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1325\n");
  const std::string group = "sys/fs/cgroup/memory/kubepods/pod1/";
  write(group + "memory.usage_in_bytes", "125829120\n");
  write(group + "memory.limit_in_bytes", "134217728\n");
  write(group + "memory.stat", "cache 41943040\ninactive_file 1\ntotal_inactive_file 20971520\n");

  const MemoryReading reading = MemoryGauge(root_).read();
  EXPECT_EQ(reading.used_bytes, 100 * kMiB);
  EXPECT_EQ(reading.limit_bytes, 128 * kMiB);
  EXPECT_EQ(reading.stall, (Stall{.some = 22857us, .full = 1325us}));

  write(group + "memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(MemoryGauge(root_).read().limit_bytes, std::nullopt);
}

// As an administrator, or a cluster that resizes a pod in place, lowers it.
TEST_F(MemoryGaugeTest, SeesALimitThatIsLoweredWhileItRuns) {
  struct Case {
    std::string_view groups, used, limit;
  };
  for (const Case& one :
       {Case{"4:memory:/pod\n", "sys/fs/cgroup/memory/pod/memory.usage_in_bytes",
             "sys/fs/cgroup/memory/pod/memory.limit_in_bytes"},
        Case{"0::/pod\n", "sys/fs/cgroup/pod/memory.current", "sys/fs/cgroup/pod/memory.max"}}) {
    SCOPED_TRACE(one.limit);
    write("proc/self/cgroup", one.groups);
    write(one.used, "104857600\n");
    write(one.limit, "209715200\n");
    const MemoryGauge gauge(root_);
    PressureGuard guard;
    EXPECT_EQ(guard.on_reading(gauge.read(), 60 * kMiB, kStart), PressureGuard::Advice());

    write(one.limit, "67108864\n");

    const PressureGuard::Advice advice = guard.on_reading(gauge.read(), 60 * kMiB, kStart + 1s);
    EXPECT_NEAR(static_cast<double>(advice.give_back_bytes), (100 - 0.8 * 64) * kMiB, 1.0);
    EXPECT_TRUE(advice.is_pressed);
  }
}

TEST_F(MemoryGaugeTest, ReadsNothingWhereThereIsNothing) {
  const MemoryReading reading = MemoryGauge(root_).read();
  EXPECT_EQ(reading.used_bytes, std::nullopt);
  EXPECT_EQ(reading.limit_bytes, std::nullopt);
  EXPECT_EQ(reading.stall, std::nullopt);

  write("proc/self/cgroup", "broken\n0:\n0::/../../other\n");
  write("sys/fs/cgroup/memory.current", "not a number\n");
  EXPECT_EQ(MemoryGauge(root_).read().used_bytes, std::nullopt);
}

MemoryReading reading_of(std::uint64_t used_bytes, Duration stalled = {}) {
  return {.used_bytes = used_bytes,
          .limit_bytes = 100 * kMiB,
          .stall = Stall{.some = stalled, .full = {}}};
}

TEST(PressureGuard, WantsNothingWhileThereIsRoom) {
  PressureGuard guard;
  EXPECT_EQ(guard.on_reading(reading_of(89 * kMiB), 50 * kMiB, kStart), PressureGuard::Advice());
  EXPECT_EQ(guard.on_reading({}, 50 * kMiB, kStart + 1s), PressureGuard::Advice());
}

TEST(PressureGuard, GivesBackBeforeTheLimitIsReached) {
  PressureGuard guard;
  const PressureGuard::Advice advice = guard.on_reading(reading_of(95 * kMiB), 50 * kMiB, kStart);
  EXPECT_EQ(advice.give_back_bytes, 15 * kMiB);
  EXPECT_TRUE(advice.drop_page_cache);
  EXPECT_TRUE(advice.is_pressed);
  EXPECT_EQ(guard.on_reading(reading_of(99 * kMiB), 4 * kMiB, kStart + 1s).give_back_bytes,
            4 * kMiB)
      << "no more than there is";
}

TEST(PressureGuard, TakesALimitThatWasLoweredBelowWhatIsInUse) {
  PressureGuard guard;
  EXPECT_EQ(guard.on_reading(reading_of(400 * kMiB), 50 * kMiB, kStart).give_back_bytes, 50 * kMiB);
}

TEST(PressureGuard, GivesBackMoreWithEachStall) {
  PressureGuard guard;
  EXPECT_EQ(guard.on_reading(reading_of(0, 5s), 80 * kMiB, kStart).give_back_bytes, 0U)
      << "stalls of earlier days";
  EXPECT_EQ(guard.on_reading(reading_of(0, 5100ms), 80 * kMiB, kStart + 1s).give_back_bytes,
            10 * kMiB);
  EXPECT_EQ(guard.on_reading(reading_of(0, 5200ms), 80 * kMiB, kStart + 2s).give_back_bytes,
            20 * kMiB);
  EXPECT_EQ(guard.on_reading(reading_of(0, 5201ms), 80 * kMiB, kStart + 3s).give_back_bytes, 0U);
  EXPECT_EQ(guard.on_reading(reading_of(0, 5300ms), 80 * kMiB, kStart + 4s).give_back_bytes,
            10 * kMiB);
}

TEST(PressureGuard, StaysPressedForAWhile) {
  PressureGuard guard;
  static_cast<void>(guard.on_reading(reading_of(95 * kMiB), 0, kStart));
  EXPECT_TRUE(guard.on_reading(reading_of(10 * kMiB), 0, kStart + 5s).is_pressed);
  EXPECT_FALSE(guard.on_reading(reading_of(10 * kMiB), 0, kStart + 30s).is_pressed);
}

TEST(PressureGuard, DropsFilesNowAndThenIfPressureNeverEnds) {
  PressureGuard guard;
  int drops = 0;
  for (int second = 0; second < 3600; ++second) {
    const PressureGuard::Advice advice = guard.on_reading(
        reading_of(99 * kMiB, second * 1s), 8 * kMiB, kStart + std::chrono::seconds(second));
    EXPECT_LE(advice.give_back_bytes, 8 * kMiB);
    drops += advice.drop_page_cache ? 1 : 0;
  }
  EXPECT_EQ(drops, 120);
}

// A machine that was suspended: the monotonic clock may have stood still or moved on.
TEST(PressureGuard, TakesAClockThatJumps) {
  PressureGuard guard;
  static_cast<void>(guard.on_reading(reading_of(0, 1s), 8 * kMiB, kStart));
  EXPECT_EQ(guard.on_reading(reading_of(0, 5s), 8 * kMiB, kStart + 24h), PressureGuard::Advice())
      << "few stalls for a day";
  EXPECT_EQ(guard.on_reading(reading_of(0, 9s), 8 * kMiB, kStart + 24h).give_back_bytes, 0U)
      << "no time has passed";
  EXPECT_EQ(guard.on_reading(reading_of(0, 9500ms), 8 * kMiB, kStart + 24h + 1s).give_back_bytes,
            kMiB);
}

TEST(PressureGuard, TakesStallsThatWereReset) {
  PressureGuard guard;
  static_cast<void>(guard.on_reading(reading_of(0, 50s), 8 * kMiB, kStart));
  EXPECT_EQ(guard.on_reading(reading_of(0, 1s), 8 * kMiB, kStart + 1s), PressureGuard::Advice());
}

}  // namespace
}  // namespace hangar::budget
