#include "wasm/engine.h"

#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/cpu_time.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/workers.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar::wasm {
namespace {

TEST(Engine, ChargesAllJobsOfItsWorkersWhileItExists) {
  io::Loop loop;
  io::Workers workers(loop, 1);
  budget::Rates rates;
  const budget::Consumer team{.tenant = budget::Tenant::of_namespace("team"), .name = "module"};
  static constexpr std::chrono::milliseconds kWork{2};
  const auto work = [&] {
    workers.submit(team, [] {
      const Duration until = io::thread_cpu_time() + kWork;
      while (io::thread_cpu_time() < until) {
      }
    });
    EXPECT_TRUE(io::run_to_end(loop, workers.flush(team, std::chrono::hours(1))));
  };
  const auto used = [&] { return rates.use_of(team.tenant, io::Loop::now()).total; };

  {
    const Engine engine(loop, workers, {.rates = &rates});
    work();
    EXPECT_GE(used(), kWork);
  }
  const Duration before = used();
  work();

  EXPECT_EQ(used(), before);
}

}  // namespace
}  // namespace hangar::wasm
