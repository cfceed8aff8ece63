#include "gateway/documents.h"

#include "base/result.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

constexpr auto kWhole = kube::Detail::Whole;
constexpr auto kMetadata = kube::Detail::Metadata;
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
  const std::string nothing = empty.take();
  EXPECT_TRUE(json::parse(nothing).has_value());
  EXPECT_TRUE(nothing.ends_with(R"("items":[]})"));
}

TEST(Documents, SayWhetherAWriteMayHaveHappened) {
  const Error lost(ErrorKind::Unavailable, "connection lost");
  EXPECT_EQ(no_answer(lost, /*is_write=*/true).code, 503);
  EXPECT_TRUE(no_answer(lost, /*is_write=*/true).message.contains("may or may not"));
  EXPECT_FALSE(no_answer(lost, /*is_write=*/false).message.contains("may or may not"));
  EXPECT_EQ(no_answer(Error(ErrorKind::InvalidInput, "x"), true).code, 400);
}

TEST(Documents, OfBareMetadataAreTheSameWhetherTheObjectIsWholeOrNot) {
  const auto whole =
      kube::Object::make(
          R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"x":"}"}},"data":{"k":"djE="}})")
          .value();
  const std::string metadata =
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","labels":{"x":"}"}}})";

  for (const kube::ObjectPtr& object : {whole, kube::metadata_of(*whole)}) {
    EXPECT_EQ(object_text(*object, kMetadata), metadata);
    EXPECT_EQ(text_of(WatchLine{WatchLine::Type::Added, object, kMetadata}),
              R"({"type":"ADDED","object":)" + metadata + "}\n");
  }
  EXPECT_EQ(object_text(*whole, kWhole), whole->text().str());
  EXPECT_EQ(
      bookmark_line(kThings, 7, /*ends_initial_events=*/false, kMetadata),
      R"({"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"}}})"
      "\n");
  ListText text(kThings, 9, kMetadata);
  text.add(*whole);
  text.end();
  EXPECT_EQ(
      text.take(),
      R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[)" +
          metadata + "]}");
  ListText empty(kThings, 9, kMetadata);
  empty.end();
  EXPECT_TRUE(empty.take().ends_with(R"("items":null})"));
}

TEST(Accept, OfPlainObjectsIsAnsweredFromTheCacheAsJson) {
  struct Row {
    const char* header;
    std::optional<kube::Detail> cached;
    const char* json_only;
  };
  const std::vector<Row> rows = {
      {"", kWhole, "application/json"},
      {"application/json", kWhole, "application/json"},
      {"*/*", kWhole, "application/json"},
      {"*/*;q=0.1", kWhole, "application/json"},
      {"application/vnd.kubernetes.protobuf, application/json", kWhole, "application/json"},
      {"application/vnd.kubernetes.protobuf", std::nullopt, ""},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", std::nullopt,
       "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
      {"application/json; as=PartialObjectMetadata; g=meta.k8s.io; v=v1", kMetadata,
       "application/json; as=PartialObjectMetadata; g=meta.k8s.io; v=v1"},
      {"*/*;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", kMetadata,
       "*/*;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
      {"application/json;q=0.9", kWhole, "application/json;q=0.9"},
      {"Application/JSON;q=0.9", std::nullopt, "Application/JSON;q=0.9"},
      {"application/*", std::nullopt, "application/*"},
      {"application/*, */*", kWhole, "application/*,application/json"},
      {"text/html", std::nullopt, ""},
      {",;,", std::nullopt, ""},
  };
  for (const Row& row : rows) {
    const Accepts accepts = read_accept(row.header, Verb::Get);
    EXPECT_EQ(accepts.cached, row.cached) << row.header;
    EXPECT_EQ(accepts.json_only, row.json_only) << row.header;
  }
}

TEST(Accept, OfBareMetadataIsAnsweredFromTheCacheIfTheServerWouldAnswerWithThat) {
  const std::string one = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  const std::string list = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  const std::string table = ";as=Table;g=meta.k8s.io;v=v1";
  const std::string json = "application/json";
  const std::string protobuf = "application/vnd.kubernetes.protobuf";
  struct Row {
    std::string header;
    std::optional<kube::Detail> cached;
  };
  const std::vector<Row> rows = {
      // As client-go's metadata client writes it, and the SDK for Go.
      {protobuf + one + "," + json + one + "," + json, kMetadata},
      {json + one + "," + json, kMetadata},
      {json + ";v=v1;g=meta.k8s.io;as=PartialObjectMetadata", kMetadata},
      {protobuf + one, std::nullopt},
      {json + table + "," + json + one, std::nullopt},
      {json + one + "," + json + table, kMetadata},
      {json + "," + json + one, kWhole},
      // By quality; where it is the same, as written.
      {json + one + ";q=0.5," + json, kWhole},
      {json + one + "," + json + ";q=0.5", kMetadata},
      {json + ";q=0.3," + json + one + ";q=0.4", kMetadata},
      {json + ";q=0," + json + one + ";q=0.001", kMetadata},
      {"*/*," + json + one, kMetadata},
      {"*/*;q=0.9," + json + one + ";q=0.1", kMetadata},
      {"*/*" + table + "," + json + one, kMetadata},
      {"application/*," + json + one, kMetadata},
      {"application/*" + one + ",*/*", std::nullopt},
      // Written in an unusual way.
      {json + one + ";q=1e-1", std::nullopt},
      {json + one + ";q=0x1", std::nullopt},
      {json + one + ";q= 1", std::nullopt},
      {json + one + ";q=2", std::nullopt},
      {json + one + ";q=1;q=0", std::nullopt},
      {json + one + ";q", std::nullopt},
      {json + one + ";charset=utf-8", std::nullopt},
      {json + one + ";as=Table", std::nullopt},
      {json + one + ";", std::nullopt},
      {json + one + ",", kMetadata},
      {"application/JSON" + one, std::nullopt},
      {json + ";As=PartialObjectMetadata;g=meta.k8s.io;v=v1", std::nullopt},
      {json + ";as=partialobjectmetadata;g=meta.k8s.io;v=v1", std::nullopt},
      {json + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1", std::nullopt},
      {json + ";as=PartialObjectMetadata;g=meta.k8s.io", std::nullopt},
      {json + ";as=PartialObjectMetadata", std::nullopt},
      {json + ";g=meta.k8s.io;v=v1", std::nullopt},
      {json + ";as=;g=;v=", std::nullopt},
      {json + ";as=PartialObjectMetadata=;g=meta.k8s.io;v=v1", std::nullopt},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(read_accept(row.header, Verb::Get).cached, row.cached) << row.header;
    EXPECT_EQ(read_accept(row.header, Verb::Watch).cached, row.cached) << row.header;
  }
  // The encoding may differ from the server's; what is encoded may not. A watch is JSON in any
  // case, so other types do not count there.
  const std::vector<Row> mixed = {{protobuf + "," + json + one, kMetadata},
                                  {"application/yaml" + one + "," + json, kWhole},
                                  {"text/html," + json + one, kMetadata},
                                  {json + one + ",,", kMetadata},
                                  {json + one + ",x", kMetadata}};
  for (const Row& row : mixed) {
    EXPECT_EQ(read_accept(row.header, Verb::Get).cached, std::nullopt) << row.header;
    EXPECT_EQ(read_accept(row.header, Verb::Watch).cached, row.cached) << row.header;
  }
  // The server refuses a list that is to be one object, and one object that is to be a list.
  EXPECT_EQ(read_accept(json + list, Verb::List).cached, kMetadata);
  EXPECT_EQ(read_accept(protobuf + list + "," + json + list + "," + json, Verb::List).cached,
            kMetadata);
  EXPECT_EQ(read_accept(json + one, Verb::List).cached, std::nullopt);
  EXPECT_EQ(read_accept(json + list, Verb::Get).cached, std::nullopt);
  EXPECT_EQ(read_accept(json + list, Verb::Watch).cached, std::nullopt);
}

TEST(Accept, OfVeryManyTypesIsLeftToTheServer) {
  const auto of_types = [](int count) {
    std::string header;
    for (int index = 1; index < count; ++index)
      header += "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,";
    return read_accept(header + "application/json", Verb::Get).cached;
  };
  EXPECT_EQ(of_types(12), kMetadata);
  EXPECT_EQ(of_types(13), std::nullopt);
}

}  // namespace
}  // namespace hangar::gateway
