#include "wasm/snapshot/handed_module.h"

#include "base/consumer.h"
#include "base/limits.h"
#include "base/result.h"
#include "wasm/digest.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/snapshot/sleeping_instance.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/test_guests.h"
#include "wasm/wasi/preview1.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

// Calls an export once and keeps its result.
class OneCall final : public Turn {
 public:
  OneCall(std::string function, std::vector<std::uint64_t> arguments)
      : invocation_({.function = std::move(function), .arguments = std::move(arguments)}) {}

  Result<std::optional<Invocation>> next(GuestMemory /*memory*/, std::uint64_t result) override {
    last = result;
    return std::exchange(invocation_, std::nullopt);
  }

  std::uint64_t last = 0;

 private:
  std::optional<Invocation> invocation_;
};

// Stands for a process: an engine with its own store.
struct Place {
  Place() : functions(rig.engine()) { wasi::add_preview1(functions); }

  std::uint64_t work(Instance& instance, std::uint64_t amount) {
    OneCall turn("work", {amount});
    const TurnReport report = rig.await(instance.run(turn, {}, {}));
    EXPECT_TRUE(report.ended.has_value()) << report.ended.error().message();
    return turn.last;
  }

  TemporaryDirectory directory;
  GuestRig rig;
  HostFunctions functions;
  wasi::Command state;
  std::unique_ptr<SnapshotStore> store = SnapshotStore::open(directory.path()).value();
};

class HandedModuleTest : public testing::Test {
 protected:
  std::shared_ptr<const SleepableModule> load(const std::string& name) {
    const auto bytes = GuestRig::bytes_of(name);
    return host_.rig
        .await(SleepableModule::load(host_.rig.cache(), Digest::of(*bytes), bytes,
                                     host_.directory.path() / "images", {}))
        .value();
  }
  std::shared_ptr<const SleepableModule> hand_to(Place& place, const SleepableModule& module) {
    auto received = receive(place.rig.engine(),
                            host_.rig.await(hand_over(module, budget::unnamed_consumer())).value());
    EXPECT_TRUE(received.has_value()) << received.error().message();
    return received ? *std::move(received) : nullptr;
  }

  Place host_;
  Place one_;
  Place other_;
};

TEST_F(HandedModuleTest, IsReadOnly) {
  const auto module = load("sleeper");

  const HandedModule handed =
      host_.rig.await(hand_over(*module, budget::unnamed_consumer())).value();

  for (const int descriptor : {handed.code.value(), handed.image.value()}) {
    EXPECT_EQ(::fcntl(descriptor, F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(::write(descriptor, "x", 1), -1);
  }
}

// In a process that can make no image, a checkpoint holds its pages itself.
TEST_F(HandedModuleTest, HasCheckpointsInAProcessWithoutFiles) {
  const auto module = load("sleeper");
  const auto here = hand_to(one_, *module);
  constexpr std::uint64_t kMemoryMax = 64 * limits::kMiB;
  Instance expected(host_.rig.engine(), module, host_.functions, host_.state, kMemoryMax);
  Instance begun(one_.rig.engine(), here, one_.functions, one_.state, kMemoryMax);
  for (std::uint64_t amount : {7U, 30U})
    EXPECT_EQ(one_.work(begun, amount), host_.work(expected, amount));

  const auto checkpoint = one_.rig.await(begun.checkpoint(budget::unnamed_consumer()));

  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message();
  EXPECT_GT((*checkpoint)->memory_bytes(), 0U);
  const std::uint64_t next = host_.work(expected, 9);
  for (int count = 0; count < 2; ++count) {
    Instance from_there(one_.rig.engine(), *checkpoint, one_.functions, one_.state, kMemoryMax);
    EXPECT_EQ(one_.work(from_there, 9), next);
  }
  Instance afresh(one_.rig.engine(), *checkpoint, one_.functions, kMemoryMax, kMemoryMax);
  for (int count = 0; count < 2; ++count) {
    OneCall turn("work", {9});
    const TurnReport report = one_.rig.await(afresh.run_afresh(turn, one_.state, {}, {}));
    ASSERT_TRUE(report.ended.has_value()) << report.ended.error().message();
    EXPECT_EQ(turn.last, next);
  }
}

TEST_F(HandedModuleTest, HasGuestsThatFallAsleepInOneProcessAndWakeInAnother) {
  const auto module = load("sleeper");
  const auto here = hand_to(one_, *module);
  const auto there = hand_to(other_, *module);
  constexpr std::uint64_t kMemoryMax = 64 * limits::kMiB;
  Instance expected(host_.rig.engine(), module, host_.functions, host_.state, kMemoryMax);
  std::optional<Instance> traveller;
  traveller.emplace(one_.rig.engine(), here, one_.functions, one_.state, kMemoryMax);

  for (std::uint64_t amount : {1U, 7U, 30U})
    EXPECT_EQ(one_.work(*traveller, amount), host_.work(expected, amount));
  ASSERT_TRUE(one_.rig.await(traveller->sleep(*one_.store)).has_value());
  const std::optional<SleepingInstance> asleep = traveller->take_asleep();
  ASSERT_TRUE(asleep.has_value());
  std::vector<std::byte> bytes(asleep->disk_bytes());
  ASSERT_TRUE(one_.store->read(asleep->extent(), bytes).has_value());
  traveller.emplace(other_.rig.engine(),
                    SleepingInstance::arrived(there, kMemoryMax, *other_.store,
                                              other_.store->write(bytes).value(),
                                              {.memory_bytes = asleep->memory_bytes()}),
                    other_.functions, other_.state);

  for (std::uint64_t amount : {2U, 9U, 40U})
    EXPECT_EQ(other_.work(*traveller, amount), host_.work(expected, amount));
  EXPECT_EQ(other_.store->live_bytes(), 0U);
}

TEST_F(HandedModuleTest, ThatCannotSleepSaysSoThereToo) {
  const auto module = load("writes_its_table");
  ASSERT_NE(module->obstacle(), nullptr);

  const auto received = hand_to(one_, *module);

  ASSERT_NE(received->obstacle(), nullptr);
  EXPECT_EQ(*received->obstacle(), *module->obstacle());
}

}  // namespace
}  // namespace hangar::wasm
