#include "budget/shared_turns.h"

#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {
namespace {

class SharedTurnsTest : public testing::Test {
 protected:
  struct Work {
    explicit Work(io::Loop& loop) : end(loop) {}

    io::OneShot<bool> end;
    std::vector<std::string> tenants;  // The beneficiaries at the start of its work.
    bool has_begun = false;
    std::optional<ErrorKind> failure = std::nullopt;
  };

  static Consumer consumer(std::string tenant) {
    return {.tenant = Tenant::of_namespace(std::move(tenant)), .name = "module"};
  }
  static std::vector<std::string> tenants_of(const Beneficiaries& beneficiaries) {
    std::vector<std::string> names;
    for (const Consumer& one : beneficiaries.all())
      names.emplace_back(one.tenant.namespace_name());
    return names;
  }

  io::Task<void> work(std::string key, std::string tenant, Work& work, std::stop_token stop = {}) {
    const Result<SharedTurns<std::string>::Turn> turn =
        co_await turns_.take(std::move(key), consumer(std::move(tenant)), std::move(stop));
    if (!turn) {
      work.failure = turn.error().kind();
      co_return;
    }
    work.has_begun = true;
    work.tenants = tenants_of(turn->beneficiaries());
    co_await work.end.wait();
    work.tenants = tenants_of(turn->beneficiaries());
  }
  void run_ready() {
    bool done = false;
    loop_.post([&] { loop_.post([&] { loop_.post([&] { done = true; }); }); });
    loop_.run_until([&] { return done; });
  }

  io::Loop loop_;
  SharedTurns<std::string> turns_{loop_};
  Work first_{loop_};
  Work second_{loop_};
  Work third_{loop_};
};

using Names = std::vector<std::string>;

TEST_F(SharedTurnsTest, WhoHasTheTurnWorksInTheNameOfAllBehind) {
  loop_.spawn(work("a", "one", first_));
  run_ready();
  EXPECT_EQ(first_.tenants, Names{"one"});
  loop_.spawn(work("a", "two", second_));
  loop_.spawn(work("a", "three", third_));
  run_ready();
  EXPECT_FALSE(second_.has_begun);

  first_.end.set(true);
  run_ready();

  EXPECT_EQ(first_.tenants, (Names{"one", "two", "three"}));
  EXPECT_EQ(second_.tenants, (Names{"two", "three"})) << "the first has what it wants";
  EXPECT_FALSE(third_.has_begun);
  second_.end.set(true);
  third_.end.set(true);
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
  EXPECT_EQ(third_.tenants, Names{"three"});
  EXPECT_TRUE(turns_.is_empty());
}

TEST_F(SharedTurnsTest, KeysDoNotWaitForEachOther) {
  loop_.spawn(work("a", "one", first_));
  loop_.spawn(work("b", "two", second_));
  run_ready();

  EXPECT_EQ(first_.tenants, Names{"one"});
  EXPECT_EQ(second_.tenants, Names{"two"});
  first_.end.set(true);
  second_.end.set(true);
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(SharedTurnsTest, WhoIsStoppedLeavesTheLine) {
  std::stop_source stop;
  loop_.spawn(work("a", "one", first_));
  loop_.spawn(work("a", "two", second_, stop.get_token()));
  loop_.spawn(work("a", "three", third_));
  run_ready();

  stop.request_stop();
  run_ready();
  EXPECT_EQ(second_.failure, ErrorKind::Cancelled);
  first_.end.set(true);
  run_ready();

  EXPECT_EQ(third_.tenants, Names{"three"});
  third_.end.set(true);
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(SharedTurnsTest, NoTurnIsGivenAfterAStop) {
  std::stop_source stop;
  stop.request_stop();

  loop_.spawn(work("a", "one", first_, stop.get_token()));
  loop_.run_until([&] { return loop_.spawned_count() == 0; });

  EXPECT_EQ(first_.failure, ErrorKind::Cancelled);
  EXPECT_TRUE(turns_.is_empty());
}

}  // namespace
}  // namespace hangar::budget
