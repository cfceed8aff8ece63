#include "gateway/documents.h"

#include "base/result.h"
#include "gateway/gateway.h"
#include "json/value.h"
#include "kube/object.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

const kube::Resource kThings{"g.example.com", "v1", "things", "Thing", true};

TEST(Documents, AreAsTheApiServerWritesThem) {
  EXPECT_EQ(
      error_line(expired("too old resource version: 1")),
      R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1","reason":"Expired","code":410}})"
      "\n");
  EXPECT_EQ(
      bookmark_line(kThings, 7, /*ends_initial_events=*/true),
      R"({"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"g.example.com/v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}})"
      "\n");
  EXPECT_EQ(not_found(kThings, "a\"b").message, "things.g.example.com \"a\"b\" not found");
  EXPECT_TRUE(json::parse(status_document(not_found(kThings, "a\"b"))).has_value());

  const auto object =
      kube::Object::make(R"({"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}})").value();
  EXPECT_EQ(
      text_of(WatchLine{WatchLine::Type::Deleted, object}),
      R"({"type":"DELETED","object":{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}})"
      "\n");
  ListText text(kThings, 9);
  text.add(*object);
  std::string whole = text.take();
  EXPECT_EQ(text.size(), 0U);
  text.add(*object);
  text.end();
  whole += text.take();
  const auto list = json::parse(whole);
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(json::string_at(*list, {"kind"}), "ThingList");
  EXPECT_EQ(json::string_at(*list, {"metadata", "resourceVersion"}), "9");
  EXPECT_EQ(json::array_at(*list, {"items"})->size(), 2U);
  ListText empty(kThings, 9);
  empty.end();
  EXPECT_TRUE(json::parse(empty.take()).has_value());
}

TEST(Documents, SayWhetherAWriteMayHaveHappened) {
  const Error lost(ErrorKind::Unavailable, "connection lost");
  EXPECT_EQ(no_answer(lost, /*is_write=*/true).code, 503);
  EXPECT_TRUE(no_answer(lost, /*is_write=*/true).message.contains("may or may not"));
  EXPECT_FALSE(no_answer(lost, /*is_write=*/false).message.contains("may or may not"));
  EXPECT_EQ(no_answer(Error(ErrorKind::InvalidInput, "x"), true).code, 400);
}

TEST(Accept, IsAnsweredFromTheCacheOnlyWithPlainJson) {
  struct Row {
    const char* header;
    bool json;
    bool transformed;
    const char* json_only;
  };
  const std::vector<Row> rows = {
      {"", true, false, "application/json"},
      {"application/json", true, false, "application/json"},
      {"*/*", true, false, "application/json"},
      {"application/vnd.kubernetes.protobuf, application/json", true, false, "application/json"},
      {"application/vnd.kubernetes.protobuf", false, false, ""},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", true, true,
       "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
      {"application/json; as=PartialObjectMetadata; g=meta.k8s.io; v=v1", false, true,
       "application/json; as=PartialObjectMetadata; g=meta.k8s.io; v=v1"},
      {"application/json;q=0.9", true, false, "application/json;q=0.9"},
      {"Application/JSON;q=0.9", false, false, "Application/JSON;q=0.9"},
      {"application/*", false, false, "application/*"},
      {"application/*, */*", true, false, "application/*,application/json"},
      {"text/html", false, false, ""},
      {",;,", false, false, ""},
  };
  for (const Row& row : rows) {
    const Accepts accepts = read_accept(row.header);
    EXPECT_EQ(accepts.json, row.json) << row.header;
    EXPECT_EQ(accepts.transformed, row.transformed) << row.header;
    EXPECT_EQ(accepts.json_only, row.json_only) << row.header;
  }
}

}  // namespace
}  // namespace hangar::gateway
