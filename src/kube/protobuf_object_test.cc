#include "kube/protobuf_object.h"

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::kube {
namespace {

using protozero::pbf_writer;

std::string envelope(std::string_view kind, const std::string& object) {
  std::string type;
  pbf_writer type_writer(type);
  type_writer.add_string(1, "apps/v1");
  type_writer.add_string(2, kind.data(), kind.size());
  std::string bytes("k8s\0", 4);
  pbf_writer writer(bytes);
  writer.add_message(1, type);
  writer.add_message(2, object);
  writer.add_string(3, "");
  writer.add_string(4, "");
  return bytes;
}

std::string object_named(const std::string& name) {
  std::string metadata;
  pbf_writer writer(metadata);
  writer.add_string(1, name);
  writer.add_string(2, "front-");
  writer.add_string(3, "shop");
  writer.add_string(6, "4711");
  writer.add_int64(7, 3);
  std::string object;
  pbf_writer(object).add_message(1, metadata);
  return object;
}

TEST(IdentifyProtobuf, ReadsTheMetadata) {
  const std::string bytes = envelope("Deployment", object_named("front-x7k2p"));
  const auto found = identify_json_or_protobuf(bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->group(), "apps");
  EXPECT_EQ(found->kind, "Deployment");
  EXPECT_EQ(found->namespace_, "shop");
  EXPECT_EQ(found->name, "front-x7k2p");
  EXPECT_EQ(found->resource_version, "4711");
}

TEST(IdentifyProtobuf, RefusesWhatIsNoObject) {
  EXPECT_FALSE(identify_protobuf(""));
  EXPECT_FALSE(identify_protobuf(std::string_view("k8s\0", 4)));
  EXPECT_FALSE(identify_protobuf(R"({"kind":"Pod","apiVersion":"v1"})"));
  EXPECT_FALSE(identify_protobuf(envelope("Status", object_named("a"))));
  EXPECT_FALSE(identify_protobuf(envelope("DeploymentList", object_named("a"))));
  EXPECT_FALSE(identify_protobuf(envelope("Deployment", object_named("a\nb"))));
  EXPECT_FALSE(identify_protobuf(envelope("Deployment", object_named(std::string(254, 'a')))));
  EXPECT_FALSE(identify_protobuf(envelope("Deployment", "\x0a\x7f")));
}

// A field that is truncated, or absent, is not read from the bytes behind the end.
TEST(IdentifyProtobuf, StaysWithinTruncatedBytes) {
  const std::string whole = envelope("Deployment", object_named("front"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    const auto found = identify_protobuf(part);
    if (found) EXPECT_TRUE(found->name.empty() || found->name == "front") << size;
  }
}

TEST(IdentifyJsonOrProtobuf, ReadsJson) {
  const auto found = identify_json_or_protobuf(
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "a");
}

}  // namespace
}  // namespace hangar::kube
