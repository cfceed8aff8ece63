#include "kube/cache/watch_plan.h"

#include "kube/scope.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hangar::kube {
namespace {

const Resource kThings{"g.example.com", "v1", "things", "Thing", true};

Scope all(Detail detail = Detail::Whole) {
  return {.resource = kThings, .detail = detail};
}
Scope in(const std::string& namespace_, Detail detail = Detail::Whole) {
  return {.resource = kThings, .namespace_ = namespace_, .detail = detail};
}
Scope named(const std::string& namespace_, const std::string& name, Detail detail = Detail::Whole) {
  return {.resource = kThings,
          .namespace_ = namespace_,
          .field_selector = "metadata.name=" + name,
          .detail = detail};
}
Scope labelled(const std::string& selector, const std::string& namespace_ = {}) {
  return {.resource = kThings, .namespace_ = namespace_, .label_selector = selector};
}

std::set<Scope> watches(const std::map<Scope, Scope>& plan) {
  std::set<Scope> out;
  for (const auto& [scope, watch] : plan)
    out.insert(watch);
  return out;
}

using Watches = std::set<Scope>;

TEST(WatchPlan, LeavesAFewScopesAsTheyAre) {
  EXPECT_TRUE(plan_watches({}, {}).empty());
  EXPECT_EQ(watches(plan_watches({named("a", "x")}, {})), Watches{named("a", "x")});
  EXPECT_EQ(watches(plan_watches({named("a", "x"), labelled("l")}, {})),
            (Watches{named("a", "x"), labelled("l")}));
}

TEST(WatchPlan, ServesTheNarrowerFromTheWider) {
  const auto plan = plan_watches(
      {all(), in("a"), named("a", "x"), named("b", "y", Detail::Metadata), labelled("l")}, {});
  EXPECT_EQ(watches(plan), Watches{all()});
  EXPECT_EQ(plan.size(), 5U) << "each is fed";

  EXPECT_EQ(watches(plan_watches({in("a"), named("a", "x"), labelled("l", "a"), in("b")}, {})),
            (Watches{in("a"), in("b")}));
  EXPECT_EQ(watches(plan_watches({named("a", "x"), named("a", "x", Detail::Metadata)}, {})),
            Watches{named("a", "x")});
  EXPECT_EQ(watches(plan_watches({labelled("l"), labelled("l", "a")}, {})).size(), 2U)
      << "selectors are not compared";
}

TEST(WatchPlan, WidensManyToTheirNamespaceOrToAll) {
  EXPECT_EQ(watches(plan_watches({named("a", "x"), named("a", "y"), named("a", "z")}, {})),
            Watches{in("a")});
  EXPECT_EQ(watches(plan_watches({named("a", "x"), named("a", "y"), named("b", "z")}, {})),
            (Watches{in("a"), named("b", "z")}));
  EXPECT_EQ(watches(plan_watches({named("a", "x"), named("b", "y"), named("c", "z")}, {})),
            Watches{all()});
  EXPECT_EQ(watches(plan_watches({labelled("l"), labelled("m"), labelled("n")}, {})),
            Watches{all()});
  EXPECT_EQ(watches(plan_watches({labelled("l"), named("a", "x"), named("a", "y")}, {})),
            Watches{all()});
}

TEST(WatchPlan, KeepsMetadataApartFromWholeObjects) {
  std::vector<Scope> wanted;
  for (const char* name : {"x", "y", "z"}) {
    wanted.push_back(named("a", name, Detail::Metadata));
    wanted.push_back(named("b", std::string("of-") + name));
  }
  EXPECT_EQ(watches(plan_watches(wanted, {})), (Watches{in("a", Detail::Metadata), in("b")}));

  wanted.push_back(named("c", "x"));
  EXPECT_EQ(watches(plan_watches(wanted, {})), Watches{all()}) << "which has the metadata, too";
}

TEST(WatchPlan, TakesWhatTheHostMayWatch) {
  const std::vector<Scope> wanted = {named("a", "x"), named("a", "y"), named("b", "z"),
                                     named("c", "z")};
  EXPECT_EQ(watches(plan_watches(wanted, {all()})),
            (Watches{in("a"), named("b", "z"), named("c", "z")}));
  EXPECT_EQ(watches(plan_watches(wanted, {all(), in("a")})), Watches(wanted.begin(), wanted.end()));

  // A tenant's wish for a scope that the host may not watch costs no other tenant anything.
  EXPECT_EQ(watches(plan_watches({all(), named("a", "x"), named("a", "y")}, {all()})),
            (Watches{all(), named("a", "x"), named("a", "y")}));
}

TEST(WatchPlan, TakesTwoWatchesForThousandsOfScopes) {
  std::vector<Scope> wanted;
  for (int i = 0; i < 2000; ++i) {
    const Detail detail = i % 2 == 0 ? Detail::Whole : Detail::Metadata;
    wanted.push_back(named("n" + std::to_string(i % 200), "o" + std::to_string(i), detail));
    if (i % 10 == 0) wanted.push_back(in("n" + std::to_string(i % 200)));
  }
  const auto plan = plan_watches(wanted, {});
  EXPECT_LE(watches(plan).size(), kWatchesMax);
  for (const auto& [scope, watch] : plan)
    EXPECT_TRUE(covers(watch, scope));
}

}  // namespace
}  // namespace hangar::kube
