#include "kube/packing.h"

#include "base/result.h"
#include "json/value.h"
#include "kube/labels.h"
#include "kube/limits.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>

namespace hangar::kube {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kPad =
    R"("image":"registry.example.com/team/application:1.2.3","imagePullPolicy":"IfNotPresent",)"
    R"("resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"100m"}},)"
    R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",)"
    R"("volumeMounts":[{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets"}],)"
    R"("livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10})";

ObjectPtr pod(std::size_t number) {
  const std::string text = fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-{0}","namespace":"shop","uid":"u-{0}",)"
      R"("resourceVersion":"{0}","generation":7,"labels":{{"app":"web","number":"{0}"}},)"
      R"("ownerReferences":[{{"name":"b","uid":"owner-b-{0}"}},{{"name":"a","uid":"owner-a-{0}"}}]}},)"
      R"("spec":{{"containers":[{{"name":"c-{0}",{1}}}]}}}})",
      number, kPad);
  return Object::make(text).value();
}

// A packer that has seen enough to pack.
Packer prepared() {
  Packer packer({});
  std::size_t bytes = 0;
  for (std::size_t number = 0; bytes < limits::kPackedKindBytesMin; ++number) {
    const ObjectPtr object = pod(number);
    bytes += object->text_size();
    (void)packer.pack(object, /*is_new=*/true);
  }
  return packer;
}

TEST(Packing, APackedObjectIsTheSameInLessMemory) {
  Packer packer = prepared();
  const ObjectPtr object = pod(123'456);

  const ObjectPtr packed = packer.pack(object, /*is_new=*/true);

  ASSERT_TRUE(packed->is_packed());
  EXPECT_LT(packed->resident_bytes(), object->resident_bytes() / 2);
  EXPECT_EQ(packed->size_bytes(), object->size_bytes());
  EXPECT_EQ(packed->text().str(), object->text().str());
  EXPECT_EQ(packed->text_size(), object->text_size());
  EXPECT_EQ(packed->to_value(), object->to_value());
  EXPECT_EQ(packed->key(), object->key());
  EXPECT_EQ(packed->uid(), "u-123456");
  EXPECT_EQ(packed->resource_version(), "123456");
  EXPECT_EQ(packed->generation(), 7);
  EXPECT_EQ(packed->labels(), object->labels());
  EXPECT_THAT(packed->owner_uids(), ElementsAre("owner-a-123456", "owner-b-123456"));
  EXPECT_EQ(metadata_of(*packed)->text().str(), metadata_of(*object)->text().str());
}

TEST(Packing, APackedObjectOutlivesThePacker) {
  auto packer = std::make_unique<Packer>(prepared());
  const ObjectPtr packed = packer->pack(pod(5), /*is_new=*/true);
  ASSERT_TRUE(packed->is_packed());
  packer.reset();

  EXPECT_EQ(packed->text().str(), pod(5)->text().str());
}

TEST(Packing, AKindWithFewObjectsIsKeptAsItIsHoweverOftenTheyChange) {
  Packer packer({});
  for (std::size_t number = 0; number < 3000; ++number) {
    const ObjectPtr object = pod(number);
    EXPECT_EQ(packer.pack(object, /*is_new=*/number < 10), object);
  }
}

TEST(Packing, WhatWouldSaveLittleIsKeptAsItIs) {
  Packer packer = prepared();
  std::mt19937 dice(20261129);
  std::string noise;
  while (noise.size() < 4000)
    noise += static_cast<char>('0' + dice() % 75);
  std::erase(noise, '\\');
  const auto with = [](std::string_view data) {
    return Object::make(
               fmt::format(
                   R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"n"}},"data":"{}"}})",
                   data))
        .value();
  };

  for (const ObjectPtr& object :
       {with("small"), with(noise), with(std::string(limits::kPackedTextBytesMax, 'x'))}) {
    EXPECT_EQ(packer.pack(object, /*is_new=*/true), object);
  }
}

TEST(Packing, AnObjectIsPackedOnce) {
  Packer packer = prepared();
  const ObjectPtr packed = packer.pack(pod(5), /*is_new=*/true);

  EXPECT_EQ(packer.pack(packed, /*is_new=*/false), packed);
}

TEST(Packing, ObjectsWithoutLabelsOwnersOrVersionArePackedToo) {
  Packer packer = prepared();
  const std::string text = fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"bare"}},"spec":{{{0}}},"status":{{{0}}}}})",
      kPad);
  const ObjectPtr object = Object::make(text).value();

  const ObjectPtr packed = packer.pack(object, /*is_new=*/true);

  ASSERT_TRUE(packed->is_packed());
  EXPECT_EQ(packed->text().str(), text);
  EXPECT_EQ(packed->uid(), "");
  EXPECT_EQ(packed->resource_version(), "");
  EXPECT_EQ(packed->labels(), "");
  EXPECT_THAT(packed->owner_uids(), ElementsAre());
}

}  // namespace
}  // namespace hangar::kube
