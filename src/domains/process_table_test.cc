#include "domains/process_table.h"

#include "base/time.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hangar::domains {
namespace {

using std::chrono::seconds;
using Id = ProcessTable::Id;
using Actions = ProcessTable::Actions;

const Instant kNow = Instant() + std::chrono::hours(1);

Domain domain(const std::string& name) {
  return {.tenant = budget::Tenant::of_namespace(name)};
}

Domain alone(const std::string& name, const std::string& guest) {
  return {.tenant = budget::Tenant::of_namespace(name), .alone = guest};
}

Id started(const Actions& actions) {
  EXPECT_EQ(actions.start.size(), 1U);
  return actions.start.empty() ? 0 : actions.start.front().process;
}

TEST(ProcessTable, HasOneProcessForADomainHoweverOftenItIsWanted) {
  ProcessTable table({.processes_max = 4});

  const Id process = started(table.want(domain("a"), kNow));

  EXPECT_EQ(table.find(domain("a")), process);
  EXPECT_TRUE(table.want(domain("a"), kNow).start.empty());
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.find(domain("b")), std::nullopt);
}

TEST(ProcessTable, EndsAllThatAreIdleWhenAsked) {
  ProcessTable table({.processes_max = 4});
  const Id idle = started(table.want(domain("a"), kNow));
  const Id busy = started(table.want(domain("b"), kNow));
  table.begin_run(idle);
  EXPECT_TRUE(table.end_run(idle, kNow).end.empty());
  table.begin_run(busy);

  EXPECT_EQ(table.end_idle(kNow).end, (std::vector<Id>{idle}));
  EXPECT_TRUE(table.end_idle(kNow).end.empty());
}

TEST(ProcessTable, HasAProcessOfItsOwnForADomainThatIsAlone) {
  ProcessTable table({.processes_max = 4});

  const Id shared = started(table.want(domain("a"), kNow));
  const Id own = started(table.want(alone("a", "one"), kNow));

  EXPECT_NE(shared, own);
  EXPECT_EQ(table.find(domain("a")), shared);
  EXPECT_EQ(table.find(alone("a", "one")), own);
  EXPECT_EQ(table.find(alone("b", "one")), std::nullopt);
}

TEST(ProcessTable, HasFewDomainsOfATenantThatAreAlone) {
  ProcessTable table({.processes_max = 9, .alone_of_tenant_max = 2});
  const Id busy = started(table.want(alone("a", "busy"), kNow));
  table.begin_run(busy);
  const Id idle = started(table.want(alone("a", "idle"), kNow));
  table.begin_run(idle);
  static_cast<void>(table.end_run(idle, kNow));

  const Actions third = table.want(alone("a", "third"), kNow);
  EXPECT_EQ(third.end, std::vector<Id>{idle});
  EXPECT_TRUE(third.start.empty());
  // Other domains do not wait behind it.
  EXPECT_EQ(table.want(domain("a"), kNow).start.size(), 1U);
  EXPECT_EQ(table.want(alone("b", "one"), kNow).start.size(), 1U);

  const Actions later = table.ended(idle, kNow);
  ASSERT_EQ(later.start.size(), 1U);
  EXPECT_EQ(later.start.front().domain, alone("a", "third"));
}

TEST(ProcessTable, AsksABusyDomainToLeaveForAnotherOfItsTenantThatIsAlone) {
  ProcessTable table({.processes_max = 9, .alone_of_tenant_max = 2});
  const Id stays = started(table.want(alone("a", "stays"), kNow));
  table.begin_run(stays, ProcessTable::Stay::Remains);
  const Id busy = started(table.want(alone("a", "busy"), kNow));
  table.begin_run(busy);
  const Id other = started(table.want(domain("b"), kNow));
  table.begin_run(other);

  const Actions actions = table.want(alone("a", "third"), kNow);

  EXPECT_EQ(actions.drain, std::vector<Id>{busy});
  EXPECT_EQ(table.find(domain("b")), other);
  EXPECT_EQ(table.end_run(busy, kNow).end, std::vector<Id>{busy});
}

TEST(ProcessTable, LeavesPlacesToThoseWhoShareHoweverManyAreAlone) {
  ProcessTable table({.processes_max = 9, .alone_of_tenant_max = 8, .alone_max = 2});
  for (const char* const tenant : {"a", "b"}) {
    table.begin_run(started(table.want(alone(tenant, "one"), kNow)), ProcessTable::Stay::Remains);
  }

  EXPECT_TRUE(table.want(alone("c", "one"), kNow).start.empty());

  EXPECT_EQ(table.want(domain("d"), kNow).start.size(), 1U);
}

TEST(ProcessTable, EndsAProcessThatLingersAndNoneThatWorks) {
  ProcessTable table({.processes_max = 4, .linger = seconds(5)});
  const Id idle = started(table.want(domain("idle"), kNow));
  const Id busy = started(table.want(domain("busy"), kNow));
  table.begin_run(busy);

  EXPECT_EQ(table.look_at(), kNow + seconds(5));
  EXPECT_TRUE(table.look(kNow + seconds(4)).end.empty());
  EXPECT_EQ(table.look(kNow + seconds(5)).end, std::vector<Id>{idle});
  EXPECT_EQ(table.find(domain("idle")), std::nullopt);
  EXPECT_EQ(table.look_at(), std::nullopt);
  EXPECT_TRUE(table.look(kNow + seconds(9)).end.empty());

  EXPECT_TRUE(table.end_run(busy, kNow + seconds(9)).end.empty());
  EXPECT_EQ(table.look_at(), kNow + seconds(14));
}

TEST(ProcessTable, GivesThePlaceOfTheLeastRecentlyUsedToWhoWaits) {
  ProcessTable table({.processes_max = 2});
  const Id first = started(table.want(domain("a"), kNow));
  const Id second = started(table.want(domain("b"), kNow));
  table.begin_run(second);
  static_cast<void>(table.end_run(second, kNow));
  table.begin_run(first);
  static_cast<void>(table.end_run(first, kNow + seconds(1)));

  const Actions actions = table.want(domain("c"), kNow + seconds(2));

  EXPECT_EQ(actions.end, std::vector<Id>{second});
  EXPECT_TRUE(actions.start.empty());  // Not before there is a free place.
  const Actions later = table.ended(second, kNow + seconds(2));
  ASSERT_EQ(later.start.size(), 1U);
  EXPECT_EQ(later.start.front().domain, domain("c"));
}

TEST(ProcessTable, DrainsTheOneThatHasWorkedForLongestWhenAllWork) {
  ProcessTable table({.processes_max = 2});
  const Id first = started(table.want(domain("a"), kNow));
  const Id second = started(table.want(domain("b"), kNow + seconds(1)));
  table.begin_run(first);
  table.begin_run(second);

  EXPECT_TRUE(table.want(domain("c"), kNow + seconds(2)).end.empty());
  EXPECT_EQ(table.find(domain("a")), std::nullopt);  // Takes no more runs.
  EXPECT_EQ(table.find(domain("b")), second);

  EXPECT_EQ(table.end_run(first, kNow + seconds(3)).end, std::vector<Id>{first});
  EXPECT_EQ(table.ended(first, kNow + seconds(3)).start.front().domain, domain("c"));
}

TEST(ProcessTable, SaysWhichProcessesAreToBecomeFree) {
  ProcessTable table({.processes_max = 1});
  const Id first = started(table.want(domain("a"), kNow));
  table.begin_run(first);

  EXPECT_EQ(table.want(domain("b"), kNow).drain, std::vector<Id>{first});
  EXPECT_TRUE(table.want(domain("b"), kNow).drain.empty());  // The drain was already returned.
}

TEST(ProcessTable, DrainsThoseWithRunsThatRemainAfterTheirTimeOnly) {
  using Stay = ProcessTable::Stay;
  ProcessTable table({.processes_max = 2, .remain_min = seconds(20)});
  const Id first = started(table.want(domain("a"), kNow));
  const Id second = started(table.want(domain("b"), kNow + seconds(1)));
  table.begin_run(first, Stay::Remains);
  table.begin_run(first);
  table.begin_run(second);

  EXPECT_EQ(table.want(domain("c"), kNow + seconds(2)).drain, std::vector<Id>{second});
  EXPECT_TRUE(table.want(domain("d"), kNow + seconds(2)).drain.empty());
  EXPECT_EQ(table.find(domain("a")), first);

  EXPECT_EQ(table.look_at(), kNow + seconds(20));
  EXPECT_TRUE(table.look(kNow + seconds(19)).drain.empty());
  EXPECT_EQ(table.look(kNow + seconds(20)).drain, std::vector<Id>{first});
}

TEST(ProcessTable, DrainsOneWhoseRemainingRunsHaveEndedLikeAnyOther) {
  using Stay = ProcessTable::Stay;
  ProcessTable table({.processes_max = 1});
  const Id only = started(table.want(domain("a"), kNow));
  table.begin_run(only, Stay::Remains);
  table.begin_run(only);
  EXPECT_TRUE(table.want(domain("b"), kNow).drain.empty());

  EXPECT_EQ(table.end_run(only, kNow, Stay::Remains).drain, std::vector<Id>{only});
}

TEST(ProcessTable, EndsOneThatDrainsForTooLong) {
  ProcessTable table({.processes_max = 1, .drain_max = seconds(20)});
  const Id only = started(table.want(domain("a"), kNow));
  table.begin_run(only);
  ASSERT_EQ(table.want(domain("b"), kNow + seconds(1)).drain, std::vector<Id>{only});

  EXPECT_EQ(table.look_at(), kNow + seconds(21));
  EXPECT_TRUE(table.look(kNow + seconds(20)).end.empty());
  EXPECT_EQ(table.look(kNow + seconds(21)).end, std::vector<Id>{only});
  EXPECT_EQ(table.look_at(), std::nullopt);  // Each action is returned once.
}

TEST(ProcessTable, DoesNotLookAgainForOneThatIsInNobodysWay) {
  using Stay = ProcessTable::Stay;
  ProcessTable table({.processes_max = 9, .alone_of_tenant_max = 1, .remain_min = seconds(20)});
  table.begin_run(started(table.want(domain("b"), kNow)), Stay::Remains);
  table.begin_run(started(table.want(alone("a", "one"), kNow + seconds(1))), Stay::Remains);
  EXPECT_TRUE(table.want(alone("a", "two"), kNow + seconds(2)).start.empty());

  EXPECT_EQ(table.look(kNow + seconds(20)).drain.size(), 0U);

  EXPECT_EQ(table.look_at(), kNow + seconds(21));
}

TEST(ProcessTable, ServesThoseThatWaitInTheOrderInWhichTheyCame) {
  ProcessTable table({.processes_max = 1});
  const Id first = started(table.want(domain("a"), kNow));
  table.begin_run(first);
  static_cast<void>(table.end_run(first, kNow));
  EXPECT_EQ(table.want(domain("b"), kNow).end, std::vector<Id>{first});
  EXPECT_TRUE(table.want(domain("c"), kNow).end.empty());
  EXPECT_TRUE(table.want(domain("a"), kNow).end.empty());

  const Actions next = table.ended(first, kNow);

  ASSERT_EQ(next.start.size(), 1U);
  EXPECT_EQ(next.start.front().domain, domain("b"));
  EXPECT_EQ(table.waiting_count(), 2U);
  EXPECT_TRUE(next.end.empty());  // The domain that waited for it comes first.
  table.begin_run(next.start.front().process);
  EXPECT_EQ(table.end_run(next.start.front().process, kNow).end.size(), 1U);
}

TEST(ProcessTable, ReplacesOneThatIsGone) {
  ProcessTable table({.processes_max = 2});
  const Id first = started(table.want(domain("a"), kNow));
  table.begin_run(first);

  table.give_up(first);

  EXPECT_EQ(table.find(domain("a")), std::nullopt);
  const Id second = started(table.want(domain("a"), kNow));
  EXPECT_NE(second, first);
  static_cast<void>(table.ended(first, kNow));
  EXPECT_TRUE(table.end_run(first, kNow).end.empty());  // The process has exited: no action.
  EXPECT_EQ(table.find(domain("a")), second);
}

TEST(ProcessTable, StartsNothingForWhoWaitsNoMore) {
  ProcessTable table({.processes_max = 1});
  const Id first = started(table.want(domain("a"), kNow));
  table.begin_run(first);
  static_cast<void>(table.want(domain("b"), kNow));

  table.forget(domain("b"));

  EXPECT_EQ(table.end_run(first, kNow).end, std::vector<Id>{first});  // It was draining.
  EXPECT_TRUE(table.ended(first, kNow).start.empty());
  EXPECT_EQ(table.size(), 0U);
}

// Domains come and go, processes crash, and time passes, in any order.
TEST(ProcessTable, KeepsItsPromisesInRandomSchedules) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr std::size_t kProcessesMax = 3;
  constexpr int kDomains = 7;
  constexpr int kSteps = 20'000;
  constexpr std::size_t kAloneMax = 1;
  ProcessTable table(
      {.processes_max = kProcessesMax, .linger = seconds(5), .alone_of_tenant_max = kAloneMax});
  // The last three are alone, of one tenant.
  const auto domain_of = [](int number) {
    return number < kDomains - 3 ? domain(std::to_string(number))
                                 : alone("tenant", std::to_string(number));
  };
  using Stay = ProcessTable::Stay;
  std::set<Id> are_alone;
  Instant now = kNow;
  std::map<Id, std::vector<Stay>> alive;  // Living processes, and the runs of each.
  std::map<Id, Instant> draining;         // Draining processes, and since when.
  std::set<Id> ending;
  std::map<int, int> waiting;  // Since which step each waits.
  const auto carry_out = [&](const Actions& actions) {
    for (const Id id : actions.end) {
      ASSERT_TRUE(alive.contains(id));
      const bool is_late = draining.contains(id) && now - draining[id] >= seconds(20);
      ASSERT_TRUE(alive[id].empty() || is_late) << "ended at work";
      ASSERT_TRUE(ending.insert(id).second) << "ended twice";
    }
    for (const Id id : actions.drain)
      ASSERT_TRUE(draining.emplace(id, now).second) << "asked to leave twice";
    for (const ProcessTable::Start& start : actions.start) {
      ASSERT_TRUE(alive.try_emplace(start.process).second) << "started twice";
      if (start.domain.is_alone()) are_alone.insert(start.process);
    }
    ASSERT_LE(alive.size(), kProcessesMax);
    ASSERT_LE(std::ranges::count_if(
                  alive, [&](const auto& entry) { return are_alone.contains(entry.first); }),
              static_cast<std::ptrdiff_t>(kAloneMax));
  };
  const auto any_of = [&](auto& entries) {
    auto at = entries.begin();
    std::advance(at, random() % entries.size());
    return at;
  };

  for (int step = 0; step < kSteps && !testing::Test::HasFatalFailure(); ++step) {
    now += std::chrono::milliseconds(random() % 1000);
    const int number = static_cast<int>(random() % kDomains);
    const Domain which = domain_of(number);
    switch (random() % 6) {
      case 0:
      case 1:
        if (const auto process = table.find(which)) {
          const Stay stay = random() % 4 == 0 ? Stay::Remains : Stay::Passes;
          table.begin_run(*process, stay);
          alive[*process].push_back(stay);
          waiting.erase(number);
        } else {
          carry_out(table.want(which, now));
          waiting.try_emplace(number, step);
        }
        break;
      case 2:
      case 3:
        if (alive.empty()) break;
        if (const auto at = any_of(alive); !at->second.empty()) {
          const Stay stay = at->second.back();
          at->second.pop_back();
          carry_out(table.end_run(at->first, now, stay));
        }
        break;
      case 4:
        if (!ending.empty()) {
          const Id id = *any_of(ending);
          ending.erase(id);
          alive.erase(id);
          carry_out(table.ended(id, now));
        } else if (!alive.empty() && random() % 8 == 0) {
          const Id crashed = any_of(alive)->first;
          table.give_up(crashed);
          alive.erase(crashed);
          ending.erase(crashed);
          carry_out(table.ended(crashed, now));
        }
        break;
      default:
        carry_out(table.look(now));
    }
    for (auto at = waiting.begin(); at != waiting.end();)
      at = table.find(domain_of(at->first)) ? waiting.erase(at) : std::next(at);
    for (const auto& [name, since] : waiting)
      ASSERT_LT(step - since, 1000) << "domain " << name << " waits for ever";
  }
}

}  // namespace
}  // namespace hangar::domains
