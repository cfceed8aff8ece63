#include "reconcile/election_machine.h"

#include "base/result.h"
#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::reconcile {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kNow = Instant() + hours(1);
const WallTime kNoon = WallTime(seconds(1'775'649'600));

ElectionMachine machine(const std::string& identity) {
  return {{.identity = identity}, /*seed=*/1};
}

LeaseRecord held_by(const std::string& holder, const std::string& resource_version) {
  return {.holder = holder,
          .lease_duration = seconds(15),
          .acquired_at = kNoon,
          .renewed_at = kNoon,
          .transitions = 3,
          .resource_version = resource_version};
}

template <class T>
T expect(ElectionMachine::Next next) {
  EXPECT_TRUE(std::holds_alternative<T>(next)) << "another action: " << next.index();
  return std::holds_alternative<T>(next) ? std::get<T>(std::move(next)) : T();
}

TEST(ElectionMachine, CreatesTheLeaseAndLeads) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Read>(ours.start());

  const auto write = expect<ElectionMachine::Write>(
      ours.on_read(fail(ErrorKind::NotFound, "leases not found"), kNow, kNoon));
  EXPECT_EQ(write.record.holder, "us");
  EXPECT_EQ(write.record.resource_version, "");
  EXPECT_EQ(write.record.transitions, 0);
  EXPECT_FALSE(ours.is_leading(kNow));
  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "1"), kNow + seconds(1)));

  EXPECT_TRUE(ours.is_leading(kNow + seconds(1)));
}

TEST(ElectionMachine, LeadsOnlyUntilTheRenewDeadlineOfItsLastRequest) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(
      ours.on_read(fail(ErrorKind::NotFound, "leases not found"), kNow, kNoon));

  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "1"), kNow + seconds(4)));

  EXPECT_TRUE(ours.is_leading(kNow + milliseconds(9999)));
  EXPECT_FALSE(ours.is_leading(kNow + seconds(10)));
}

TEST(ElectionMachine, DoesNotLeadByAnAnswerThatCameTooLate) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(
      ours.on_read(fail(ErrorKind::NotFound, "leases not found"), kNow, kNoon));

  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "1"), kNow + seconds(11)));

  EXPECT_FALSE(ours.is_leading(kNow + seconds(11)));
}

TEST(ElectionMachine, WaitsTheWholeDurationSinceItSawTheLastChange) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Wait>(ours.on_read(held_by("them", "1"), kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_read(held_by("them", "2"), kNow + seconds(10), kNoon));
  expect<ElectionMachine::Wait>(
      ours.on_read(held_by("them", "2"), kNow + milliseconds(24'999), kNoon));

  const auto write =
      expect<ElectionMachine::Write>(ours.on_read(held_by("them", "2"), kNow + seconds(25), kNoon));

  EXPECT_EQ(write.record.holder, "us");
  EXPECT_EQ(write.record.resource_version, "2");
  EXPECT_EQ(write.record.transitions, 4);
}

TEST(ElectionMachine, LooksAgainAsSoonAsTheLeaseMayBeFree) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Wait>(ours.on_read(held_by("them", "1"), kNow, kNoon));

  const auto wait = expect<ElectionMachine::Wait>(
      ours.on_read(held_by("them", "1"), kNow + milliseconds(14'500), kNoon));

  EXPECT_GE(wait.delay, milliseconds(500));
  EXPECT_LE(wait.delay, milliseconds(700));
}

TEST(ElectionMachine, BelievesNoTimeThatIsWrittenInTheLease) {
  ElectionMachine ours = machine("us");
  LeaseRecord ancient = held_by("them", "1");
  ancient.renewed_at = kNoon - hours(1000);
  ancient.lease_duration = seconds(0);

  expect<ElectionMachine::Wait>(ours.on_read(ancient, kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_read(ancient, kNow + seconds(14), kNoon));
}

TEST(ElectionMachine, OutlivesAHolderThatAskedForEver) {
  ElectionMachine ours = machine("us");
  LeaseRecord greedy = held_by("them", "1");
  greedy.lease_duration = hours(24 * 365);
  expect<ElectionMachine::Wait>(ours.on_read(greedy, kNow, kNoon));

  expect<ElectionMachine::Write>(ours.on_read(greedy, kNow + std::chrono::minutes(11), kNoon));
}

TEST(ElectionMachine, TakesAReleasedLeaseAtOnce) {
  ElectionMachine ours = machine("us");

  expect<ElectionMachine::Write>(ours.on_read(held_by("", "5"), kNow, kNoon));
}

TEST(ElectionMachine, RenewsWithoutReadingWhileItIsSure) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(ours.on_read(held_by("", "5"), kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "6"), kNow));

  const auto renewal = expect<ElectionMachine::Write>(ours.on_due(kNow + seconds(2), kNoon));

  EXPECT_EQ(renewal.record.resource_version, "6");
  EXPECT_EQ(renewal.record.transitions, 3);
}

TEST(ElectionMachine, ReadsAfterAWriteWhoseEndIsUnknown) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(ours.on_read(held_by("", "5"), kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "6"), kNow));
  expect<ElectionMachine::Write>(ours.on_due(kNow + seconds(2), kNoon));

  expect<ElectionMachine::Wait>(
      ours.on_written(fail(ErrorKind::Unavailable, "connection reset"), kNow + seconds(3)));

  expect<ElectionMachine::Read>(ours.on_due(kNow + seconds(5), kNoon));
  EXPECT_TRUE(ours.is_leading(kNow + seconds(9)));
  EXPECT_FALSE(ours.is_leading(kNow + seconds(10)));
}

TEST(ElectionMachine, StopsAtOnceWhenSomebodyElseHoldsTheLease) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(ours.on_read(held_by("", "5"), kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "6"), kNow));
  expect<ElectionMachine::Write>(ours.on_due(kNow + seconds(2), kNoon));
  expect<ElectionMachine::Wait>(ours.on_written(fail(ErrorKind::Conflict, "changed"), kNow));

  expect<ElectionMachine::Wait>(ours.on_read(held_by("them", "7"), kNow + seconds(3), kNoon));

  EXPECT_FALSE(ours.is_leading(kNow + seconds(3)));
}

TEST(ElectionMachine, StopsAtOnceWhenTheLeaseWasDeleted) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(ours.on_read(held_by("", "5"), kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "6"), kNow));
  expect<ElectionMachine::Write>(ours.on_due(kNow + seconds(2), kNoon));

  expect<ElectionMachine::Read>(
      ours.on_written(fail(ErrorKind::NotFound, "leases not found"), kNow + seconds(2)));

  EXPECT_FALSE(ours.is_leading(kNow + seconds(2)));
}

TEST(ElectionMachine, WaitsWhereTheLeaseCannotBeCreated) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(
      ours.on_read(fail(ErrorKind::NotFound, "leases not found"), kNow, kNoon));

  expect<ElectionMachine::Wait>(
      ours.on_written(fail(ErrorKind::NotFound, "namespaces not found"), kNow));
}

TEST(ElectionMachine, GivesTheLeaseAwayWhenItEnds) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Write>(ours.on_read(held_by("", "5"), kNow, kNoon));
  expect<ElectionMachine::Wait>(ours.on_written(held_by("us", "6"), kNow));

  const auto release = expect<ElectionMachine::Write>(ours.release(kNoon));

  EXPECT_FALSE(ours.is_leading(kNow));
  EXPECT_EQ(release.record.holder, "");
  EXPECT_EQ(release.record.resource_version, "6");
  expect<ElectionMachine::Done>(ours.on_written(held_by("", "7"), kNow));
}

TEST(ElectionMachine, ReleasesNothingThatIsNotItsOwn) {
  ElectionMachine ours = machine("us");
  expect<ElectionMachine::Wait>(ours.on_read(held_by("them", "5"), kNow, kNoon));

  expect<ElectionMachine::Done>(ours.release(kNoon));
}

// A world of several electors, one Lease, and a network that delays requests, loses requests, and
// loses answers of requests that took effect. Time is simulated in steps of a millisecond.
class World {
 public:
  explicit World(std::uint64_t seed, double fault_rate) : random_(seed), fault_rate_(fault_rate) {}

  void add_elector() {
    auto elector = std::make_unique<Elector>(Elector{
        .machine =
            ElectionMachine({.identity = "elector-" + std::to_string(electors_.size())}, random_()),
        // Clocks that began at other times and run up to a tenth faster or slower.
        .clock_begin = kNow + seconds(random_() % 100'000),
        .clock_speed = std::uniform_real_distribution<double>(0.9, 1.1)(random_)});
    Elector& added = *elector;
    electors_.push_back(std::move(elector));
    act(added, added.machine.start());
  }

  // Restarts one elector as another process would be.
  void kill_one() {
    electors_[random_() % electors_.size()]->is_dead = true;
    add_elector();
  }

  // The number of leaders now.
  int leader_count() const {
    int count = 0;
    for (const auto& elector : electors_)
      count += !elector->is_dead && elector->machine.is_leading(local(*elector)) ? 1 : 0;
    return count;
  }

  void run_one_millisecond() {
    now_ms_ += 1;
    while (!agenda_.empty() && agenda_.begin()->first <= now_ms_) {
      const auto work = std::move(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      work();
    }
  }

  void heal() { fault_rate_ = 0; }
  bool is_one_chance_in(std::uint64_t count) { return random_() % count == 0; }

 private:
  struct Elector {
    ElectionMachine machine;
    Instant clock_begin;
    double clock_speed = 1;
    bool is_dead = false;
  };

  Instant local(const Elector& elector) const {
    return elector.clock_begin +
           std::chrono::duration_cast<Duration>(milliseconds(now_ms_) * elector.clock_speed);
  }

  void at(std::int64_t delay_ms, std::function<void()> work) {
    agenda_.emplace(now_ms_ + delay_ms, std::move(work));
  }

  bool is_fault() { return std::uniform_real_distribution<double>(0, 1)(random_) < fault_rate_; }
  // Mostly quick; sometimes longer than any deadline.
  std::int64_t network_delay() {
    return static_cast<std::int64_t>(is_fault() ? random_() % 20'000 : random_() % 50);
  }

  void act(Elector& elector, ElectionMachine::Next next) {
    if (const auto* wait = std::get_if<ElectionMachine::Wait>(&next)) {
      const double real = static_cast<double>(wait->delay.count()) / 1e6 / elector.clock_speed;
      at(static_cast<std::int64_t>(real) + 1, [this, &elector] {
        if (!elector.is_dead) act(elector, elector.machine.on_due(local(elector), kNoon));
      });
    } else if (auto* write = std::get_if<ElectionMachine::Write>(&next)) {
      request(
          elector, [this, record = write->record] { return store(record); },
          [this, &elector](Result<LeaseRecord> answer) {
            act(elector, elector.machine.on_written(std::move(answer), local(elector)));
          });
    } else {
      request(
          elector, [this] { return load(); },
          [this, &elector](Result<LeaseRecord> answer) {
            act(elector, elector.machine.on_read(std::move(answer), local(elector), kNoon));
          });
    }
  }

  // As the shell does it: the elector abandons a request after a third of the renew deadline, while
  // the request may still arrive and take effect.
  void request(Elector& elector, std::function<Result<LeaseRecord>()> effect,
               std::function<void(Result<LeaseRecord>)> on_answer) {
    const auto is_answered = std::make_shared<bool>(false);
    const auto answer = [&elector, is_answered, on_answer](Result<LeaseRecord> result) {
      if (std::exchange(*is_answered, true) || elector.is_dead) return;
      on_answer(std::move(result));
    };
    at(3'333, [answer] { answer(fail(ErrorKind::Unavailable, "took too long")); });
    if (is_fault()) return;  // Lost on the way.
    at(network_delay(), [this, effect, answer] {
      const Result<LeaseRecord> result = effect();
      if (is_fault()) return;  // The answer is lost.
      at(network_delay(), [answer, result] { answer(result); });
    });
  }

  Result<LeaseRecord> load() const {
    if (!stored_) return fail(ErrorKind::NotFound, "leases not found");
    return *stored_;
  }

  Result<LeaseRecord> store(LeaseRecord record) {
    const std::string current = stored_ ? stored_->resource_version : "";
    if (record.resource_version != current) return fail(ErrorKind::Conflict, "changed");
    record.resource_version = std::to_string(++version_);
    stored_ = record;
    return record;
  }

  std::mt19937_64 random_;
  double fault_rate_;
  std::int64_t now_ms_ = 0;
  std::multimap<std::int64_t, std::function<void()>> agenda_;
  std::vector<std::unique_ptr<Elector>> electors_;
  std::optional<LeaseRecord> stored_;
  std::uint64_t version_ = 0;
};

TEST(ElectionMachine, NeverHasTwoLeadersWhateverTheNetworkDoes) {
  const std::uint64_t first_seed = std::random_device()();
  for (std::uint64_t seed = first_seed; seed < first_seed + 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, /*fault_rate=*/0.02 * static_cast<double>(seed % 12));
    for (int count = 0; count < 3; ++count)
      world.add_elector();
    int handovers = 0;
    int leaders_before = 0;
    for (int ms = 0; ms < 300'000; ++ms) {
      world.run_one_millisecond();
      if (world.is_one_chance_in(50'000)) world.kill_one();
      const int leaders = world.leader_count();
      ASSERT_LE(leaders, 1) << "at " << ms << " ms";
      handovers += leaders != leaders_before ? 1 : 0;
      leaders_before = leaders;
    }
    // Once the network works there is a leader again.
    world.heal();
    for (int ms = 0; ms < 60'000 && world.leader_count() == 0; ++ms)
      world.run_one_millisecond();
    EXPECT_EQ(world.leader_count(), 1);
    EXPECT_GT(handovers, 0);
  }
}

}  // namespace
}  // namespace hangar::reconcile
