#include "budget/namespace_series.h"

#include "base/time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

namespace hangar::budget {
namespace {

using namespace std::chrono_literals;

struct Counts {
  Duration cpu{};

  Counts& operator+=(const Counts& other) {
    cpu += other.cpu;
    return *this;
  }
  [[nodiscard]] Counts growth_since(const Counts& before) const {
    return {.cpu = std::max(cpu - before.cpu, Duration::zero())};
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};
using Series = NamespaceSeries<Counts>;

const std::string kOthers(Series::kOthers);

class NamespaceSeriesTest : public testing::Test {
 protected:
  NamespaceSeriesTest() {
    for (std::size_t at = 0; at < kNamespaceSeriesMax; ++at)
      counted_["first-" + std::to_string(at)].cpu = 10s;
    look();
  }
  void look() { series_.look(counted_, now_); }
  // All of the first ones count, besides the one that is idle.
  void look_later(Duration after, const std::string& idle) {
    now_ += after;
    for (auto& [name, counts] : counted_)
      if (name.starts_with("first-") && name != idle) counts.cpu += 1s;
    look();
  }

  Instant now_;
  Series::PerNamespace counted_;
  Series series_;
};

TEST_F(NamespaceSeriesTest, RemainWithTheNamespacesThatHaveThem) {
  counted_["late"].cpu = 1000s;
  look();
  counted_["late"].cpu = 3000s;
  look_later(kNamespaceIdle, {});

  const Series::PerNamespace values = series_.values();
  EXPECT_EQ(values.size(), kNamespaceSeriesMax + 1);
  EXPECT_EQ(values.at("first-0").cpu, 11s);
  EXPECT_EQ(values.at(kOthers).cpu, 3000s);
}

TEST_F(NamespaceSeriesTest, OfAnIdleNamespaceEndWhenAnotherOneNeedsThem) {
  counted_["late"].cpu = 1000s;
  look();
  look_later(kNamespaceIdle - 1s, "first-7");
  counted_["late"].cpu += 1s;
  look_later(0s, "first-7");
  EXPECT_TRUE(series_.values().contains("first-7"));
  EXPECT_EQ(series_.values().at(kOthers).cpu, 1001s);

  // An idle one that nobody replaces stays.
  look_later(1s, "first-7");
  EXPECT_TRUE(series_.values().contains("first-7"));

  counted_["late"].cpu += 5s;
  look_later(1s, "first-7");
  const Series::PerNamespace values = series_.values();
  EXPECT_FALSE(values.contains("first-7"));
  EXPECT_EQ(values.at("late").cpu, 5s);
  EXPECT_EQ(values.at(kOthers).cpu, 1001s);

  // It counts on with the others.
  counted_["first-7"].cpu += 2s;
  look_later(1s, "first-7");
  EXPECT_EQ(series_.values().at(kOthers).cpu, 1003s);
  EXPECT_FALSE(series_.values().contains("first-7"));
}

TEST_F(NamespaceSeriesTest, GoOnWhenTheirNamespaceWasForgotten) {
  counted_.erase("first-0");
  look();
  EXPECT_EQ(series_.values().at("first-0").cpu, 10s);

  counted_["first-0"].cpu = 3s;
  look();
  EXPECT_EQ(series_.values().at("first-0").cpu, 13s);
}

}  // namespace
}  // namespace hangar::budget
