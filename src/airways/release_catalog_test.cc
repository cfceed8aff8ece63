#include "airways/release_catalog.h"

#include "airways/revision.h"
#include "base/time.h"
#include "json/value.h"
#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string_view>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr WallTime kNow = WallTime(std::chrono::seconds(1775649600));

json::Value recorded(std::string_view namespace_, std::string_view release, int second) {
  const WallTime at = kNow + std::chrono::seconds(second);
  return secret_of(release, namespace_, {}, {}, at, at).value();
}

TEST(Catalog, HasReleasesByNamespaceAndNameWithTheirRevisionsInOrder) {
  CatalogReader reader;
  reader.add(recorded("b", "web", 0));
  reader.add(recorded("a", "web", 2));
  reader.add(recorded("a", "web", 1));
  reader.add(recorded("a", "db", 0));

  const Catalog catalog = reader.take();

  ASSERT_EQ(catalog.entries.size(), 3U);
  EXPECT_EQ(catalog.entries[0].name, "db");
  EXPECT_EQ(catalog.entries[1].name, "web");
  EXPECT_EQ(catalog.entries[1].namespace_, "a");
  EXPECT_EQ(catalog.entries[2].namespace_, "b");
  const History& history = catalog.entries[1].history;
  ASSERT_EQ(history.revisions.size(), 2U);
  EXPECT_LT(history.revisions[0].created_at, history.revisions[1].created_at);
  EXPECT_EQ(history.active(), &history.revisions[1]);
  EXPECT_EQ(catalog.entries[1].times.at(history.revisions[0].secret).created_at,
            "2026-04-08 12:00:01");
}

TEST(Catalog, NamesAReleaseOfAnOlderYokeByItsLabel) {
  CatalogReader reader;
  reader.add(json::parse_yaml(
                 "{apiVersion: v1, kind: Secret, metadata: {name: yoke.1, namespace: a, labels: "
                 "{internal.yoke/kind: revision, internal.yoke/release: web}, annotations: "
                 "{internal.yoke/created-at: '2026-04-08T12:00:00Z', internal.yoke/active-at: "
                 "'2026-04-08T12:00:00Z'}}}")
                 .value());

  const Catalog catalog = reader.take();

  ASSERT_EQ(catalog.entries.size(), 1U);
  EXPECT_EQ(catalog.entries[0].name, "web");
}

TEST(Catalog, TellsOfWhatIsNoRevisionAndReadsTheOthers) {
  CatalogReader reader;
  reader.add(json::parse_yaml("{metadata: {name: yoke.1, namespace: a, labels: "
                              "{internal.yoke/kind: revision}, annotations: "
                              "{internal.yoke/created-at: yesterday}}}")
                 .value());
  reader.add(recorded("a", "web", 0));

  const Catalog catalog = reader.take();

  EXPECT_EQ(catalog.entries.size(), 1U);
  EXPECT_THAT(catalog.unreadable, ElementsAre(HasSubstr("a/yoke.1: ")));
}

}  // namespace
}  // namespace hangar::airways
