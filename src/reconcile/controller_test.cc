#include "reconcile/controller.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/cpu_time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/turnstile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::reconcile {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

using kube::ObjectKey;

const budget::Tenant kTenant = budget::Tenant::of_namespace("ns");

// Each key in its own namespace.
ObjectKey key(int number) {
  return {"ns" + std::to_string(number), "one"};
}
ObjectKey key_in(std::string namespace_, int number) {
  return {std::move(namespace_), std::to_string(number)};
}

double counted(const Metrics& metrics, const std::string& family, const std::string& result = {}) {
  double sum = 0;
  for (const Metrics::Family& one : metrics.collect()) {
    if (one.name != family) continue;
    for (const auto& sample : one.samples) {
      bool matches = result.empty();
      for (const auto& [label, value] : sample.labels)
        matches = matches || (label == "result" && value == result);
      if (matches) sum += sample.value;
    }
  }
  return sum;
}

// Runs that finish when the test says so, so that no order depends on time.
struct Bench {
  struct Run {
    ObjectKey key;
    std::stop_token stop;
    io::OneShot<Result<Outcome>> end;
  };

  Reconciler by_hand() {
    return [this](ObjectKey run_key, std::stop_token stop) {
      return start(std::move(run_key), std::move(stop));
    };
  }
  io::Task<Result<Outcome>> start(ObjectKey run_key, std::stop_token stop) {
    const io::OneShot<Result<Outcome>> end(loop);
    runs.push_back({std::move(run_key), std::move(stop), end});
    co_return co_await end.wait();
  }

  Controller& controller(Controller::Options options = {}) {
    if (options.name.empty()) options.name = "test";
    made = std::make_unique<Controller>(loop, metrics, Log(), options, by_hand());
    return *made;
  }

  void wait_for_runs(std::size_t count) {
    loop.run_until([&] { return runs.size() >= count; });
  }
  void end(std::size_t index, Result<Outcome> result) { runs[index].end.set(std::move(result)); }
  void wait_until_idle() {
    loop.run_until([&] { return made->running_count() == 0; });
  }
  // Runs everything that is ready now.
  void settle() {
    bool is_over = false;
    int turns = 0;
    std::function<void()> turn = [&] {
      if (++turns == 20) {
        is_over = true;
      } else {
        loop.post([&] { turn(); });
      }
    };
    turn();
    loop.run_until([&] { return is_over; });
  }

  io::Loop loop;
  Metrics metrics;
  std::vector<Run> runs;
  std::unique_ptr<Controller> made;
};

TEST(Controller, RunsNothingBeforeItIsStarted) {
  Bench bench;
  Controller& controller = bench.controller();
  controller.enqueue(key(1));
  bench.settle();
  EXPECT_TRUE(bench.runs.empty());

  controller.start();
  bench.wait_for_runs(1);

  EXPECT_EQ(bench.runs[0].key, key(1));
  bench.end(0, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, NeverRunsAKeyTwiceAtOnceAndRunsItOnceMoreWhenItWasAddedMeanwhile) {
  Bench bench;
  Controller& controller = bench.controller({.concurrency = 4});
  controller.start();
  controller.enqueue(key(1));
  bench.wait_for_runs(1);
  controller.enqueue(key(1));
  controller.enqueue(key(1));
  bench.settle();
  EXPECT_EQ(bench.runs.size(), 1U);

  bench.end(0, Outcome{});
  bench.wait_for_runs(2);
  bench.end(1, Outcome{});
  bench.wait_until_idle();
  bench.settle();

  EXPECT_EQ(bench.runs.size(), 2U);
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_total", "success"), 2);
}

TEST(Controller, RunsAsManyKeysAtOnceAsItMay) {
  Bench bench;
  Controller& controller = bench.controller({.concurrency = 3});
  controller.start();
  for (int number = 0; number < 10; ++number)
    controller.enqueue(key(number));
  bench.settle();

  EXPECT_EQ(bench.runs.size(), 3U);
  EXPECT_EQ(controller.depth(), 7U);
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_active_workers"), 3);
  EXPECT_EQ(counted(bench.metrics, "workqueue_depth"), 7);

  for (std::size_t index = 0; index < 10; ++index) {
    bench.wait_for_runs(index + 1);
    bench.end(index, Outcome{});
  }
  bench.wait_until_idle();
}

TEST(Controller, TellsSinceWhenARunWasQueued) {
  Bench bench;
  Controller& controller = bench.controller({.concurrency = 1});
  controller.start();
  controller.enqueue(key(1));
  bench.wait_for_runs(1);
  const Instant before = io::Loop::now();
  controller.enqueue(key(2));
  const Instant after = io::Loop::now();
  EXPECT_EQ(controller.queued_at(key(2)), std::nullopt) << "it only waits";
  bench.settle();
  bench.end(0, Outcome{});
  bench.wait_for_runs(2);

  const std::optional<Instant> queued = controller.queued_at(key(2));
  ASSERT_TRUE(queued);
  EXPECT_GE(*queued, before);
  EXPECT_LE(*queued, after);
  EXPECT_EQ(controller.queued_at(key(1)), std::nullopt) << "it has ended";
  bench.end(1, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, ANamespaceLeavesAsManyPlacesFreeAsItHolds) {
  Bench bench;
  Controller& controller = bench.controller({.concurrency = 8});
  controller.start();
  for (int number = 0; number < 100; ++number)
    controller.enqueue(key_in("busy", number));
  bench.settle();
  EXPECT_EQ(bench.runs.size(), 4U);

  controller.enqueue(key_in("quiet", 0));
  bench.settle();

  ASSERT_EQ(bench.runs.size(), 5U) << "it waits for none of the hundred";
  EXPECT_EQ(bench.runs.back().key, key_in("quiet", 0));
  for (std::size_t index = 0; index < 101; ++index) {
    bench.wait_for_runs(index + 1);
    bench.end(index, Outcome{});
  }
  bench.wait_until_idle();
}

TEST(Controller, ADeletionWaitsForNoOtherWork) {
  Bench bench;
  Controller& controller = bench.controller(
      {.concurrency = 4, .is_deletion = [](const ObjectKey& one) { return one.name == "7"; }});
  controller.start();
  // All places of all namespaces are held, and more waits.
  for (const char* const name : {"a", "b", "c", "d"})
    for (int number = 10; number < 20; ++number)
      controller.enqueue(key_in(name, number));
  bench.settle();
  ASSERT_EQ(bench.runs.size(), 4U);

  controller.enqueue(key_in("a", 7));
  bench.settle();

  ASSERT_EQ(bench.runs.size(), 5U);
  EXPECT_EQ(bench.runs.back().key, key_in("a", 7));
  for (std::size_t index = 0; index < 41; ++index) {
    bench.wait_for_runs(index + 1);
    bench.end(index, Outcome{});
  }
  bench.wait_until_idle();
}

TEST(Controller, EachNamespaceHasARateOfRetriesOfItsOwn) {
  Bench bench;
  Controller& controller =
      bench.controller({.concurrency = 64, .retries = {.per_second = 1.0 / 3600, .burst = 1}});
  controller.start();
  for (int number = 0; number < 10; ++number)
    controller.enqueue(key_in("failing", number));
  bench.settle();
  for (std::size_t index = 0; index < 10; ++index)
    bench.end(index, fail(ErrorKind::Unavailable, "the server is away"));
  bench.wait_for_runs(11);  // Its one retry.

  controller.enqueue(key_in("other", 0));
  bench.wait_for_runs(12);
  bench.end(11, fail(ErrorKind::Unavailable, "the server is away"));

  bench.wait_for_runs(13);
  EXPECT_EQ(bench.runs.back().key, key_in("other", 0)) << "it waits for no other namespace's";
  bench.end(10, Outcome{});
  bench.end(12, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, TheRetryOfADeletionWaitsForNoOtherRetryOfItsNamespace) {
  Bench bench;
  Controller& controller =
      bench.controller({.concurrency = 64,
                        .is_deletion = [](const ObjectKey& one) { return one.name == "7"; },
                        .retries = {.per_second = 1.0 / 3600, .burst = 1}});
  controller.start();
  controller.enqueue(key_in("failing", 1));
  controller.enqueue(key_in("failing", 2));
  bench.wait_for_runs(2);
  for (std::size_t index = 0; index < 2; ++index)
    bench.end(index, fail(ErrorKind::Unavailable, "the server is away"));
  bench.wait_for_runs(3);  // Its one retry; the other one waits for an hour.
  bench.end(2, Outcome{});

  controller.enqueue(key_in("failing", 7));
  bench.wait_for_runs(4);
  bench.end(3, fail(ErrorKind::Unavailable, "the server is away"));

  bench.wait_for_runs(5);
  EXPECT_EQ(bench.runs.back().key, key_in("failing", 7));
  bench.end(4, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, RepeatsWhatFailedAndForgetsTheFailuresOnSuccess) {
  Bench bench;
  Controller& controller = bench.controller();
  controller.start();
  controller.enqueue(key(1));
  for (std::size_t index = 0; index < 3; ++index) {
    bench.wait_for_runs(index + 1);
    bench.end(index, fail(ErrorKind::Unavailable, "no answer"));
  }
  bench.wait_for_runs(4);
  bench.end(3, Outcome{});
  bench.wait_until_idle();
  bench.settle();

  EXPECT_EQ(bench.runs.size(), 4U);
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_errors_total"), 3);
  EXPECT_EQ(counted(bench.metrics, "workqueue_retries_total"), 3);
}

TEST(Controller, DoesNotRepeatWhatIsWrongUntilItIsAddedAgain) {
  Bench bench;
  Controller& controller = bench.controller({.backoff = {.min = milliseconds(1)}});
  controller.start();
  controller.enqueue(key(1));
  bench.wait_for_runs(1);
  bench.end(0, fail(ErrorKind::InvalidInput, "spec is wrong"));
  bench.wait_until_idle();
  // A second run of key 1 would come before this.
  controller.enqueue_after(key(2), milliseconds(30));
  bench.wait_for_runs(2);
  EXPECT_EQ(bench.runs[1].key, key(2));
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_terminal_reconcile_errors_total"), 1);

  bench.end(1, Outcome{});
  controller.enqueue(key(1));
  bench.wait_for_runs(3);
  EXPECT_EQ(bench.runs[2].key, key(1));
  bench.end(2, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, AGuestThatFailsWaitsLongerThanAServerThatIsAway) {
  for (const ErrorKind kind : {ErrorKind::GuestFault, ErrorKind::LimitExceeded}) {
    SCOPED_TRACE(name_of(kind));
    Bench bench;
    Controller& controller =
        bench.controller({.backoff = {.min = milliseconds(1), .min_repeating = hours(1)}});
    controller.start();
    controller.enqueue(key(1));
    bench.wait_for_runs(1);
    bench.end(0, fail(kind, "failed to evaluate flight"));
    bench.wait_until_idle();
    controller.enqueue(key(2));
    bench.wait_for_runs(2);
    bench.end(1, fail(ErrorKind::Unavailable, "no route to host"));

    // If the first key were retried as the second one is, it would run before it.
    bench.wait_for_runs(3);

    EXPECT_EQ(bench.runs[2].key, key(2));
    bench.end(2, Outcome{});
    bench.wait_until_idle();
    // A change meanwhile does not have to wait.
    controller.enqueue(key(1));
    bench.wait_for_runs(4);
    EXPECT_EQ(bench.runs[3].key, key(1));
    bench.end(3, Outcome{});
    bench.wait_until_idle();
  }
}

TEST(Controller, RepeatsAConflictAtOnceAndTwoFightersLessAndLess) {
  Bench bench;
  Controller& controller = bench.controller({.backoff = {.min = hours(1), .max = hours(1)}});
  controller.start();
  controller.enqueue(key(1));
  for (std::size_t index = 0; index < 6; ++index) {
    bench.wait_for_runs(index + 1);
    bench.end(index, fail(ErrorKind::Conflict, "changed"));
  }
  bench.wait_until_idle();
  controller.enqueue_after(key(2), milliseconds(50));
  bench.wait_for_runs(7);

  EXPECT_EQ(bench.runs[6].key, key(2)) << "the sixth conflict in a row waits as an error does";
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_errors_total"), 1);
  bench.end(6, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, ARunThatThrowsIsAFailureOfItsKeyAlone) {
  Bench bench;
  int thrown = 0;
  Controller controller(bench.loop, bench.metrics, Log(), {.name = "test"},
                        [&](ObjectKey run_key, std::stop_token stop) -> io::Task<Result<Outcome>> {
                          if (run_key == key(1) && thrown == 0) {
                            ++thrown;
                            throw std::bad_alloc();
                          }
                          if (run_key == key(2) && thrown == 1) {
                            ++thrown;
                            throw std::runtime_error("bug");
                          }
                          co_return co_await bench.start(std::move(run_key), std::move(stop));
                        });
  controller.start();
  controller.enqueue(key(1));
  controller.enqueue(key(2));
  controller.enqueue(key(3));

  for (std::size_t run = 0; run < 3; ++run) {
    bench.wait_for_runs(run + 1);
    bench.end(run, Outcome{});
  }
  bench.loop.run_until([&] { return controller.running_count() == 0; });

  EXPECT_EQ(thrown, 2);
  EXPECT_EQ(bench.runs[0].key, key(3));
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_total", "error"), 2);
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_total", "success"), 3);
}

TEST(Controller, ARunIsPaidForByItsNamespace) {
  Bench bench;
  std::map<budget::Tenant, Duration> paid;
  bench.loop.set_on_work(
      [&paid](const budget::Tenant& payer, Duration time) { paid[payer] += time; });
  static constexpr milliseconds kWork{2};
  Controller controller(bench.loop, bench.metrics, Log(), {.name = "test"},
                        [&bench](ObjectKey run_key, std::stop_token stop) {
                          return [](Bench& on, ObjectKey key,
                                    std::stop_token token) -> io::Task<Result<Outcome>> {
                            const auto ended = co_await on.start(key, std::move(token));
                            const Duration end = io::thread_cpu_time() + kWork;
                            while (key.namespace_ == "greedy" && io::thread_cpu_time() < end) {
                            }
                            co_return ended;
                          }(bench, std::move(run_key), std::move(stop));
                        });
  controller.start();
  controller.enqueue(key_in("greedy", 1));
  controller.enqueue(key_in("frugal", 1));
  controller.enqueue(key_in("", 1));

  for (std::size_t run = 0; run < 3; ++run) {
    bench.wait_for_runs(run + 1);
    bench.end(run, Outcome{});
  }
  bench.loop.run_until([&] { return controller.running_count() == 0; });

  EXPECT_EQ(paid.size(), 3U);
  EXPECT_GE(paid[budget::Tenant::of_namespace("greedy")], kWork);
  EXPECT_GT(paid[budget::Tenant::of_namespace("frugal")], Duration::zero());
  EXPECT_GT(paid[budget::Tenant::of_namespace("")], Duration::zero());
}

TEST(Controller, RunsAgainAfterTheTimeThatARunAskedFor) {
  Bench bench;
  Controller& controller = bench.controller();
  controller.start();
  controller.enqueue(key(1));
  bench.wait_for_runs(1);
  const Instant ended = io::Loop::now();
  bench.end(0, Outcome{.requeue_after = milliseconds(20)});
  bench.wait_for_runs(2);

  EXPECT_GE(io::Loop::now() - ended, milliseconds(20));
  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_total", "requeue_after"), 1);
  bench.end(1, Outcome{});
  bench.wait_until_idle();
}

TEST(Controller, EndsARunAtItsDeadlineAndRepeatsIt) {
  Bench bench;
  std::size_t asked = 0;
  Controller controller(
      bench.loop, bench.metrics, Log(), {.name = "slow", .deadline = milliseconds(10)},
      [&](ObjectKey, std::stop_token stop) {
        ++asked;
        return [](io::Loop& loop, std::stop_token token) -> io::Task<Result<Outcome>> {
          HANGAR_CO_TRY(co_await loop.sleep(hours(1), token));
          co_return Outcome{};
        }(bench.loop, std::move(stop));
      });
  controller.start();
  controller.enqueue(key(1));

  bench.loop.run_until([&] { return asked == 2; });

  EXPECT_EQ(counted(bench.metrics, "controller_runtime_reconcile_errors_total"), 1);
  bench.loop.run_until([&] { return controller.running_count() == 0; });
}

TEST(Controller, StopsAfterTheRunsThatGoOnAndBeginsNoOthers) {
  Bench bench;
  Controller& controller = bench.controller({.concurrency = 1});
  controller.start();
  controller.enqueue(key(1));
  controller.enqueue(key(2));
  bench.wait_for_runs(1);
  bool is_stopped = false;
  bench.loop.spawn([](Controller& stopping, bool& done) -> io::Task<void> {
    co_await stopping.stop();
    done = true;
  }(controller, is_stopped));
  bench.settle();
  EXPECT_FALSE(is_stopped);
  EXPECT_FALSE(bench.runs[0].stop.stop_requested()) << "it may end by itself first";

  bench.end(0, Outcome{.requeue_after = milliseconds(1)});
  bench.loop.run_until([&] { return is_stopped; });
  controller.enqueue(key(3));
  bench.settle();

  EXPECT_EQ(bench.runs.size(), 1U);
}

TEST(Turnstile, AControllerWithManyKeysDoesNotStarveAnother) {
  Bench bench;
  Turnstile turnstile(bench.loop, 2);
  Controller busy(bench.loop, bench.metrics, Log(),
                  {.name = "busy", .concurrency = 8, .turnstile = &turnstile, .weight = 1},
                  bench.by_hand());
  std::size_t other_runs = 0;
  Controller other(bench.loop, bench.metrics, Log(),
                   {.name = "other", .concurrency = 8, .turnstile = &turnstile},
                   [&](ObjectKey, std::stop_token) -> io::Task<Result<Outcome>> {
                     ++other_runs;
                     co_return Outcome{};
                   });
  busy.start();
  other.start();
  for (int number = 0; number < 10'000; ++number)
    busy.enqueue(key(number));
  bench.wait_for_runs(2);
  bench.settle();
  EXPECT_EQ(bench.runs.size(), 2U) << "both slots are taken, no more";

  other.enqueue(key(10'000));
  bench.end(0, Outcome{});
  bench.loop.run_until([&] { return other_runs == 1; });

  EXPECT_LE(bench.runs.size(), 3U) << "the other one had its turn at the next free slot";
  // Waiting keys are dropped; running ones are cancelled.
  bool is_stopped = false;
  bench.loop.spawn([](Controller& stopping, bool& done) -> io::Task<void> {
    co_await stopping.stop();
    done = true;
  }(busy, is_stopped));
  for (std::size_t index = 1; index < bench.runs.size(); ++index)
    bench.end(index, Outcome{});
  bench.loop.run_until([&] { return is_stopped; });
}

TEST(Turnstile, ANamespaceLeavesSlotsFreeOverAllControllers) {
  Bench bench;
  Turnstile turnstile(bench.loop, 4);
  Controller::Options options{.concurrency = 8, .turnstile = &turnstile};
  std::vector<std::unique_ptr<Controller>> controllers;
  for (const char* const name : {"one", "two", "three"}) {
    options.name = name;
    controllers.push_back(
        std::make_unique<Controller>(bench.loop, bench.metrics, Log(), options, bench.by_hand()));
    controllers.back()->start();
    for (int number = 0; number < 10; ++number)
      controllers.back()->enqueue(key_in("busy", number));
  }
  bench.settle();
  EXPECT_EQ(bench.runs.size(), 2U);

  controllers.front()->enqueue(key_in("quiet", 0));
  bench.settle();
  EXPECT_EQ(bench.runs.size(), 3U);

  // Blocked work continues when a slot is free.
  for (std::size_t index = 0; index < 31; ++index) {
    bench.wait_for_runs(index + 1);
    bench.end(index, Outcome{});
  }
  bench.loop.run_until([&] {
    return std::ranges::all_of(controllers,
                               [](const auto& one) { return one->running_count() == 0; });
  });
}

TEST(Turnstile, LetsEachLaneHaveItsWeightInEachRound) {
  io::Loop loop;
  Turnstile turnstile(loop, 1);
  std::string order;
  std::optional<Turnstile::Slot> held;
  const auto lane = [&](char name) {
    return [&, name](Turnstile::Offer& offer) {
      if (!offer.may_take(kTenant, /*is_deletion=*/false)) return Turnstile::Started::Blocked;
      order += name;
      held.emplace(offer.take(kTenant, /*is_deletion=*/false));
      return Turnstile::Started::One;
    };
  };
  const auto light = turnstile.lane(lane('a'));
  const auto heavy = turnstile.lane(lane('b'), /*weight=*/3);
  light->wake();
  heavy->wake();

  while (order.size() < 12) {
    const std::size_t before = order.size();
    loop.run_until([&] { return order.size() > before; });
    held.reset();
  }

  EXPECT_EQ(order.substr(0, 12), "abbbabbbabbb");
}

TEST(Turnstile, TellsWhenASlotIsFreeUntilItIsGone) {
  io::Loop loop;
  std::size_t ended = 0;
  std::optional<Turnstile> turnstile(std::in_place, loop, 2, [&] { ++ended; });
  std::vector<Turnstile::Slot> held;
  const auto lane = turnstile->lane([&](Turnstile::Offer& offer) {
    const auto tenant = budget::Tenant::of_namespace(held.empty() ? "a" : "b");
    if (!offer.may_take(tenant, /*is_deletion=*/false)) return Turnstile::Started::Blocked;
    held.push_back(offer.take(tenant, /*is_deletion=*/false));
    return Turnstile::Started::One;
  });
  lane->wake();
  loop.run_until([&] { return held.size() == 2; });
  EXPECT_EQ(ended, 0U);

  held.pop_back();
  EXPECT_EQ(ended, 1U);

  turnstile.reset();
  held.pop_back();
  EXPECT_EQ(ended, 1U);
}

TEST(Turnstile, ALaneMayEndWhileItsWorkRuns) {
  io::Loop loop;
  Turnstile turnstile(loop, 1);
  std::optional<Turnstile::Slot> held;
  auto lane = turnstile.lane([&](Turnstile::Offer& offer) {
    held.emplace(offer.take(kTenant, /*is_deletion=*/true));
    return Turnstile::Started::One;
  });
  lane->wake();
  loop.run_until([&] { return held.has_value(); });

  lane.reset();
  held.reset();

  EXPECT_EQ(turnstile.slots_free(), 1U);
}

}  // namespace
}  // namespace hangar::reconcile
