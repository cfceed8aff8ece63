#include "airways/reasons.h"

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "kube/object.h"
#include "recorder/record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using recorder::Waking;
using testing::SizeIs;

ResourceRef config_map(std::string name) {
  return {
      .kind = {.group = "", .kind = "ConfigMap"}, .namespace_ = "shop", .name = std::move(name)};
}

kube::ObjectPtr at_version(int version) {
  return kube::Object::make(
             fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a",)"
                         R"("namespace":"shop","resourceVersion":"{}"}}}})",
                         version))
      .value();
}

TEST(Reasons, KeepTheLastChangeOfEachObject) {
  Reasons reasons;
  EXPECT_TRUE(reasons.is_empty());
  reasons.add(config_map("a"), Change::Added, *at_version(5), "");
  reasons.add(config_map("b"), Change::Deleted, *at_version(6), "00-a-b-01");
  reasons.add(config_map("a"), Change::Modified, *at_version(7), "");
  reasons.add("retry");
  reasons.add("retry");

  const std::vector<Waking> wakings = reasons.wakings();
  ASSERT_THAT(wakings, SizeIs(3));
  EXPECT_EQ(wakings[0].cause, Waking::Cause::Modified);
  EXPECT_EQ(wakings[0].object.kind, "ConfigMap");
  EXPECT_EQ(wakings[0].object.name, "a");
  EXPECT_EQ(wakings[0].object.version, 7U);
  EXPECT_EQ(wakings[1].cause, Waking::Cause::Deleted);
  EXPECT_EQ(wakings[1].object.namespace_, "shop");
  EXPECT_EQ(wakings[1].traceparent, "00-a-b-01");
  EXPECT_EQ(wakings[2].cause, Waking::Cause::Event);
  EXPECT_EQ(wakings[2].event, "retry");
  EXPECT_EQ(reasons.left_out(), 0U);
}

TEST(Reasons, AreBounded) {
  Reasons reasons;
  for (std::size_t i = 0; i < limits::kRecordedReasonsMax + 2; ++i)
    reasons.add(config_map(fmt::format("{}", i)), Change::Modified, *at_version(1), "");
  EXPECT_THAT(reasons.wakings(), SizeIs(limits::kRecordedReasonsMax));
  EXPECT_EQ(reasons.left_out(), 2U);
  reasons.clear();
  EXPECT_TRUE(reasons.is_empty());
  EXPECT_EQ(reasons.left_out(), 0U);
}

}  // namespace
}  // namespace hangar::airways
