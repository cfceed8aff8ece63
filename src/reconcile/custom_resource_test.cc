#include "reconcile/custom_resource.h"

#include "json/value.h"
#include "kube/object.h"
#include "reconcile/limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::reconcile {
namespace {

json::Value parse(std::string_view text) {
  return json::parse(text).value();
}

// An object with these members beside its metadata.
kube::ObjectPtr object_with(std::string_view members) {
  return kube::Object::make(
             fmt::format(R"({{"apiVersion":"tests.example.com/v1","kind":"Thing",)"
                         R"("metadata":{{"name":"a","namespace":"shop","uid":"u",)"
                         R"("resourceVersion":"7","generation":2,"labels":{{"a":"b"}}}}{}}})",
                         members))
      .value();
}

// "[1,1,...,1]" with so many numbers.
std::string numbers(std::size_t count) {
  std::string text = "[1";
  for (std::size_t index = 1; index < count; ++index)
    text += ",1";
  return text + "]";
}

TEST(DocumentMemory, IsCountedForDenseObjectsOnly) {
  const kube::ObjectPtr dense = object_with(R"(,"spec":)" + numbers(300'000));
  const kube::ObjectPtr long_text =
      object_with(fmt::format(R"(,"spec":"{}")", std::string(1'200'000, 'x')));

  EXPECT_EQ(document_memory_of(*dense, 3), 3 * json::parsed_bytes_max(dense->text().str()));
  EXPECT_GT(document_memory_of(*dense, 3), 3 * limits::kDocumentFreeBytesMax);
  EXPECT_EQ(document_memory_of(*dense, 0), 0U);
  EXPECT_EQ(document_memory_of(*long_text, 3), 0U);
  EXPECT_EQ(document_memory_of(*object_with(R"(,"spec":)" + numbers(30'000)), 3), 0U);
}

TEST(DocumentMemory, IsCountedForNoTextThatIsTooShortToNeedIt) {
  // As many separators as a text can have.
  const std::string shortest(limits::kDocumentFreeBytesMax / 128, ',');

  EXPECT_LE(json::parsed_bytes_max(shortest), limits::kDocumentFreeBytesMax);
}

TEST(IdentityOf, IsEnoughForAWriteOfAStatusAndForAnEvent) {
  const kube::ObjectPtr object = object_with(R"(,"spec":{"size":1})");

  EXPECT_EQ(identity_of(*object, {.group = "tests.example.com",
                                  .version = "v1",
                                  .plural = "things",
                                  .kind = "Thing",
                                  .namespaced = true}),
            parse(R"({"apiVersion": "tests.example.com/v1", "kind": "Thing",
                      "metadata": {"name": "a", "namespace": "shop", "uid": "u",
                                   "resourceVersion": "7", "generation": 2}})"));
}

TEST(SmallStatusOf, IsReadWithoutTheRestOfADenseObject) {
  const std::string spec = R"(,"spec":)" + numbers(300'000);

  EXPECT_EQ(small_status_of(*object_with(spec + R"(,"status":{"a":1})")).value(),
            parse(R"({"a": 1})"));
  EXPECT_EQ(small_status_of(*object_with(spec)).value(), json::Value(json::Object{}));
  EXPECT_EQ(small_status_of(*object_with(R"(,"status":null)")).value(),
            json::Value(json::Object{}));
}

TEST(SmallStatusOf, IsNotReadWhereItIsDenseItself) {
  const std::string status = fmt::format(R"(,"status":{{"a":{}}})", numbers(300'000));

  EXPECT_FALSE(small_status_of(*object_with(status)).has_value());
}

TEST(StatusReplacement, HoldsOnlyForTheVersionThatWasLookedAt) {
  const json::Value patch = status_replacement(parse(R"({"metadata": {"resourceVersion": "7"}})"),
                                               parse(R"({"phase": "a"})"));

  EXPECT_EQ(patch, parse(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
                             {"op": "add", "path": "/status", "value": {"phase": "a"}}])"));
}

TEST(StatusOf, ASpecIsTheSameWhateverItsVersionAndNeverThatOfAnotherObject) {
  const json::Value object =
      parse(R"({"metadata": {"uid": "u", "generation": 2, "resourceVersion": "7"}})");

  EXPECT_TRUE(is_same_spec(
      object, parse(R"({"metadata": {"uid": "u", "generation": 2, "resourceVersion": "8"}})")));
  EXPECT_FALSE(is_same_spec(object, parse(R"({"metadata": {"uid": "u", "generation": 3}})")));
  EXPECT_FALSE(is_same_spec(object, parse(R"({"metadata": {"uid": "v", "generation": 2}})")));
}

TEST(StatusOf, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(status_of(parse("{}")), json::Value(json::Object{}));
  EXPECT_EQ(status_of(parse(R"({"status": null})")), json::Value(json::Object{}));
  EXPECT_EQ(status_of(parse(R"({"status": {"a": 1}})")), parse(R"({"a": 1})"));
}

}  // namespace
}  // namespace hangar::reconcile
