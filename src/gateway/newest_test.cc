#include "gateway/newest.h"

#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace hangar::gateway {
namespace {

kube::ObjectPtr object(std::string_view name, std::uint64_t version) {
  return kube::Object::make(
             fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"namespace":"ns",)"
                         R"("name":"{}","resourceVersion":"{}"}}}})",
                         name, version))
      .value();
}

TEST(Newest, IsReachedWithTheLatestChangeOfAnyListedObject) {
  Newest newest;
  newest.add(*object("a", 5));
  newest.add(*object("b", 9));
  newest.add(*object("c", 7));
  newest.end(20);

  EXPECT_EQ(newest.last_change(), 9U);
  EXPECT_EQ(newest.version(), 20U);
}

TEST(Newest, HasWhatWasListedAndWhatCameLater) {
  Newest newest;
  newest.add(*object("listed", 5));
  newest.end(20);

  EXPECT_TRUE(newest.has(*object("listed", 5)));
  EXPECT_TRUE(newest.has(*object("listed", 25)));
  EXPECT_TRUE(newest.has(*object("later", 21)));
}

TEST(Newest, HasNothingThatWasDeletedBefore) {
  Newest newest;
  newest.add(*object("listed", 5));
  newest.end(20);

  EXPECT_FALSE(newest.has(*object("deleted", 4)));
  EXPECT_FALSE(newest.has(*object("came-and-went", 20)));
}

TEST(Newest, OfAnEmptyCollectionIsReachedAtOnce) {
  Newest newest;
  newest.end(20);

  EXPECT_EQ(newest.last_change(), 0U);
  EXPECT_FALSE(newest.has(*object("deleted", 4)));
}

}  // namespace
}  // namespace hangar::gateway
