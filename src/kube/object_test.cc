#include "kube/object.h"

#include "base/result.h"
#include "json/value.h"
#include "kube/packing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ObjectPtr make(std::string_view bytes) {
  auto object = Object::make(bytes);
  EXPECT_TRUE(object.has_value()) << object.error().message();
  return object.value_or(nullptr);
}

TEST(Object, TakesOutWhatIndexesAskFor) {
  const ObjectPtr object = make(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"u-1",)"
      R"("resourceVersion":"42","generation":7,"deletionTimestamp":"2026-01-01T00:00:00Z",)"
      R"("ownerReferences":[{"name":"b","uid":"u-b"},{"name":"a","uid":"u-a"}]},"spec":{"x":[1,2]}})");

  EXPECT_EQ(object->key(), (ObjectKey{"shop", "web"}));
  EXPECT_EQ(object->uid(), "u-1");
  EXPECT_EQ(object->resource_version(), "42");
  EXPECT_EQ(object->generation(), 7);
  EXPECT_TRUE(object->is_being_deleted());
  EXPECT_THAT(object->owner_uids(), ElementsAre("u-a", "u-b"));
  EXPECT_EQ(json::int_at(object->to_value(), {"metadata", "generation"}), 7);
}

TEST(Object, DropsManagedFieldsWhereverTheyStand) {
  const struct {
    std::string_view metadata, want;
  } cases[] = {
      {R"({"managedFields":[{"a":"]"}],"name":"n","uid":"u"})", R"({"name":"n","uid":"u"})"},
      {R"({"name":"n","managedFields":[{}],"uid":"u"})", R"({"name":"n","uid":"u"})"},
      {R"({"name":"n","uid":"u","managedFields":[]})", R"({"name":"n","uid":"u"})"},
      {R"({"managedFields":null})", R"({})"},
  };
  for (const auto& [metadata, want] : cases) {
    const std::string head = R"({"apiVersion":"v1","kind":"X","metadata":)";

    const ObjectPtr object = make(head + std::string(metadata) + R"(,"data":{"k":"v"}})");

    EXPECT_EQ(object->text().str(), head + std::string(want) + R"(,"data":{"k":"v"}})");
    if (want != "{}") EXPECT_EQ(object->uid(), "u");
  }
}

TEST(Object, PutsInTheTypeThatItemsOfAListLack) {
  const GroupVersionKind gvk{"apps", "v1", "Deployment"};

  const auto item =
      Object::make_item(R"({"metadata":{"name":"n","uid":"u","managedFields":[1]}})", gvk);
  const auto value = Object::make(json::parse(R"({"metadata":{"name":"n"}})").value(), gvk);
  const auto typed =
      Object::make_item(R"({"kind":"Other","apiVersion":"v9","metadata":{"name":"n"}})", gvk);

  EXPECT_EQ((*item)->text().str(),
            R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"n","uid":"u"}})");
  EXPECT_EQ((*item)->uid(), "u");
  EXPECT_EQ((*value)->text().str(),
            R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"n"}})");
  EXPECT_EQ((*typed)->text().str(),
            R"({"kind":"Other","apiVersion":"v9","metadata":{"name":"n"}})");
}

TEST(Object, TakesNoTypeThatWouldEndItsText) {
  for (const GroupVersionKind& gvk :
       {GroupVersionKind{"g.io", "v1", R"(A","metadata":{},"b":")"},
        GroupVersionKind{"g.io", "v1\\", "A"}, GroupVersionKind{"g.io", "v1", "A\n"}}) {
    EXPECT_FALSE(Object::make_item(R"({"metadata":{"name":"n"}})", gvk)) << gvk.kind;
  }
}

TEST(Object, IsCompactWhateverItWasMadeFrom) {
  const ObjectPtr object = make(
      "\n{ \"apiVersion\" : \"v1\",\"kind\":\"X\",\t\"metadata\": {\"name\": \"a b\\\" c\", "
      "\"managedFields\" : [ ] , \"uid\": \"u\" } }\n");

  EXPECT_EQ(object->text().str(),
            R"({"apiVersion":"v1","kind":"X","metadata":{"name":"a b\" c","uid":"u"}})");
  EXPECT_EQ(object->key().name, "a b\" c");
  EXPECT_EQ(object->uid(), "u");
}

TEST(Object, ReadsNamesWithEscapes) {
  const ObjectPtr object = make(
      R"({"apiVersion":"v1","kind":"X","metadata":{"name":"\u003ca\u003e\n\\\u00e9\ud83d\ude00"}})");

  EXPECT_EQ(object->key().name, "<a>\n\\\xC3\xA9\xF0\x9F\x98\x80");
}

// The API server takes any text for the uid of an owner.
TEST(Object, MayNameOwnersThatCannotExist) {
  const ObjectPtr object = make(
      R"({"apiVersion":"v1","kind":"X","metadata":{"name":"n","ownerReferences":[{"uid":"a\"b"},)"
      R"({"uid":"\u003c"},{"uid":"u"}]}})");

  EXPECT_THAT(object->owner_uids(), ElementsAre("u"));
}

TEST(Object, RefusesWhatIsNoObject) {
  const std::string deep = R"({"apiVersion":"v1","kind":"X","metadata":{},"a":)" +
                           std::string(20'000, '[') + std::string(20'000, ']') + "}";
  const std::string_view cases[] = {
      "",
      "null",
      "[]",
      "{",
      R"({"apiVersion":"v1","kind":"X"})",
      R"({"apiVersion":"v1","metadata":{}})",
      R"({"kind":"X","metadata":{}})",
      R"({"apiVersion":"v1","kind":"X","metadata":[]})",
      R"({"apiVersion":"v1","kind":"X","metadata":{}}x)",
      R"({"apiVersion":"v1","kind":"X","metadata":{},})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"name":1}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"generation":"1"}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"generation":1.5}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"uid":"\u0041"}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"managedFields":1,"managedFields":1}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{},"metadata":{}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"ownerReferences":{}}})",
      R"({"apiVersion":"v1","kind":"X","metadata":{"ownerReferences":[1]}})",
      deep,
  };
  for (const std::string_view text : cases) {
    const auto object = Object::make(text);

    ASSERT_FALSE(object.has_value()) << text;
    EXPECT_EQ(object.error().kind(), ErrorKind::InvalidInput);
  }
}

// Whoever may create one object of a kind could otherwise end the host's watches of that kind.
TEST(Object, MayBeNestedDeeperThanADocument) {
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  const std::string text =
      R"({"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"}},"spec":{"a":)" +
      deep + R"(},"status":{"phase":"Ready"}})";

  const auto object = Object::make(text);

  ASSERT_TRUE(object.has_value()) << object.error().message();
  EXPECT_EQ((*object)->text().str(), text);
  // What a document can have of it.
  EXPECT_EQ(json::dump((*object)->to_value()),
            R"({"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"}},)"
            R"("status":{"phase":"Ready"}})");
}

TEST(Object, AcceptsExactlyWhatTheParserAccepts) {
  const std::string_view values[] = {"0",
                                     "-0",
                                     "1.5e3",
                                     "1E+2",
                                     "123456789012345678901234567890",
                                     "01",
                                     "1.",
                                     ".5",
                                     "-",
                                     "1e",
                                     "+1",
                                     "1e999999999999",
                                     "true",
                                     "tru",
                                     "nulll",
                                     R"("")",
                                     R"("\q")",
                                     R"("\u12")",
                                     R"("\ud800")",
                                     R"("\ud800\u0041")",
                                     R"("\udc00")",
                                     "\"\t\"",
                                     "\"\x7f\"",
                                     "\"\xC3\xA9\"",
                                     "\"\xC0\x80\"",
                                     "\"\xED\xA0\x80\"",
                                     "\"\xF4\x90\x80\x80\"",
                                     "\"\xF0\x9F\x98\x80\"",
                                     "\"\xE2\x82\"",
                                     "\"1234567\xE2\x82\xAC 1234567\\n\"",
                                     "[1,]",
                                     "[1 2]",
                                     "[]",
                                     "[ ]",
                                     R"({"a":1,})",
                                     R"({"a" 1})",
                                     R"({a:1})",
                                     "{}",
                                     R"("unended)",
                                     "\"12345678\n\""};
  for (const std::string_view value : values) {
    const std::string text =
        R"({"apiVersion":"v1","kind":"X","metadata":{},"v":)" + std::string(value) + "}";

    const auto object = Object::make(text);
    const auto parsed = json::parse(text);

    ASSERT_EQ(object.has_value(), parsed.has_value()) << value;
    if (object) EXPECT_TRUE(json::equal((*object)->to_value(), *parsed)) << value;
  }
}

TEST(Object, SaysWhereTheTextIsWrong) {
  const auto object = Object::make(R"({"kind":tru})");

  EXPECT_THAT(object.error().message(), HasSubstr("at byte 8"));
}

TEST(Object, CountsItsBytes) {
  const std::string head = R"({"apiVersion":"v1","kind":"X","metadata":{"name":"n"},"data":")";

  const ObjectPtr small = make(head + R"("})");
  const ObjectPtr large = make(head + std::string(1000, 'x') + R"("})");

  // A slot is up to a sixteenth larger than the object.
  EXPECT_NEAR(static_cast<double>(large->size_bytes() - small->size_bytes()), 1000, 64);
}

TEST(Nouns, AreWrittenAsKubectlWritesThem) {
  EXPECT_EQ((GroupKind{"apps", "Deployment"}).to_string(), "Deployment.apps");
  EXPECT_EQ((GroupKind{"", "Secret"}).to_string(), "Secret");
  EXPECT_EQ(make_gvk("apps/v1", "Deployment").api_version(), "apps/v1");
  EXPECT_EQ(make_gvk("v1", "Secret"), (GroupVersionKind{"", "v1", "Secret"}));
  EXPECT_EQ((ObjectKey{"ns", "n"}).to_string(), "ns/n");
  EXPECT_EQ((ObjectKey{"", "n"}).to_string(), "n");
}

TEST(Nouns, NeedApiVersionAndKind) {
  EXPECT_EQ(gvk_of(json::parse(R"({"apiVersion":"a/v1","kind":"K"})").value()).value(),
            (GroupVersionKind{"a", "v1", "K"}));
  EXPECT_FALSE(gvk_of(json::parse(R"({"kind":"K"})").value()).has_value());
  EXPECT_FALSE(gvk_of(json::parse(R"({"apiVersion":"v1"})").value()).has_value());
  EXPECT_FALSE(gvk_of(json::parse("[]").value()).has_value());
}

TEST(Metadata, IsReadFromDocuments) {
  const json::Value object = json::parse(R"({"metadata":{"labels":{"a.b/c":"l"},)"
                                         R"("annotations":{"x":"y"},"finalizers":["f/1"],)"
                                         R"("ownerReferences":[{"apiVersion":"v1","kind":"Pod",)"
                                         R"("name":"p","uid":"u","controller":true}]}})")
                                 .value();

  EXPECT_EQ(label_of(object, "a.b/c"), "l");
  EXPECT_EQ(label_of(object, "none"), "");
  EXPECT_EQ(annotation_of(object, "x"), "y");
  EXPECT_TRUE(has_finalizer(object, "f/1"));
  EXPECT_FALSE(has_finalizer(object, "f/2"));
  ASSERT_EQ(owners_of(object).size(), 1);
  EXPECT_EQ(owners_of(object)[0].uid, "u");
  EXPECT_TRUE(owners_of(object)[0].controller);
  EXPECT_TRUE(owners_of(json::Value()).empty());
}

TEST(Object, HasAViewOfItsMetadataAlone) {
  const ObjectPtr whole = make(
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","uid":"u","resourceVersion":"7","labels":{"l":"x"}},"data":{"k":"c2VjcmV0"}})");

  const ObjectPtr metadata = metadata_of(*whole);

  EXPECT_EQ(
      metadata->text().str(),
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","uid":"u","resourceVersion":"7","labels":{"l":"x"}}})");
  EXPECT_EQ(metadata->resource_version(), "7");
  const ObjectText text = whole->text();
  const ObjectText of_metadata = metadata->text();
  EXPECT_EQ(metadata_text_of(text.view()),
            R"({"name":"a","uid":"u","resourceVersion":"7","labels":{"l":"x"}})");
  EXPECT_EQ(metadata_text_of(of_metadata.view()), metadata_text_of(text.view()));
}

TEST(Identification, IsWhatAnObjectIsKnownBy) {
  const auto found = identify(
      R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop",)"
      R"("resourceVersion":"42","managedFields":[{"a":"b"}]},"spec":{"x":[1,2)");  // The document
                                                                                   // has no end.
  ASSERT_TRUE(found);
  EXPECT_EQ(found->group(), "apps");
  EXPECT_EQ(found->kind, "Deployment");
  EXPECT_EQ(found->namespace_, "shop");
  EXPECT_EQ(found->name, "web");
  EXPECT_EQ(found->resource_version, "42");

  const auto core =
      identify(R"({"metadata":{"name":"a"},"spec":{},"kind":"Pod","apiVersion":"v1"})");
  ASSERT_TRUE(core);
  EXPECT_EQ(core->group(), "");
  EXPECT_EQ(core->kind, "Pod");
}

TEST(BareObject, HasWhatIdentifiesItAndNoContent) {
  const ObjectPtr object =
      Object::make(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b",)"
                   R"("uid":"u","resourceVersion":"7","generation":3,)"
                   R"("deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"l":"1"},)"
                   R"("annotations":{"n":"2"},"finalizers":["f"]},)"
                   R"("spec":{"metadata":{"name":"no"}},"status":{}})")
          .value();

  const ObjectPtr bare = bare_of(*object);

  EXPECT_TRUE(bare->is_bare());
  EXPECT_FALSE(object->is_bare());
  EXPECT_EQ(bare->key(), object->key());
  EXPECT_EQ(bare->uid(), "u");
  EXPECT_EQ(bare->resource_version(), "7");
  EXPECT_EQ(bare->generation(), 3);
  EXPECT_TRUE(bare->is_being_deleted());
  EXPECT_EQ(bare->labels(), R"({"l":"1"})");
  const json::Value value = bare->to_value();
  EXPECT_EQ(json::find(value, {"spec"}), nullptr);
  EXPECT_EQ(json::string_at(value, {"kind"}), "Pod");
  EXPECT_EQ(annotation_of(value, "n"), "2");
  EXPECT_TRUE(has_finalizer(value, "f"));
}

TEST(BareObject, IsSmallWhateverItsMetadata) {
  std::string labels;
  std::string finalizers;
  for (int index = 0; index < 2000; ++index) {
    labels += fmt::format(R"("label-{:05}":"v",)", index);
    finalizers += fmt::format(R"("example.com/finalizer-{}",)", index);
  }
  labels.pop_back();
  finalizers.pop_back();
  const ObjectPtr object =
      Object::make(fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"labels":{{{}}},)"
                               R"("annotations":{{"large":"{}"}},"finalizers":[{}],"name":"a"}}}})",
                               labels, std::string(100'000, 'x'), finalizers))
          .value();

  const ObjectPtr bare = bare_of(*object);

  EXPECT_LT(bare->size_bytes(), 2 * kBareMapBytesMax);
  EXPECT_EQ(bare->key().name, "a");
  EXPECT_EQ(label_of(bare->to_value(), "label-00000"), "v");
  EXPECT_EQ(annotation_of(bare->to_value(), "large"), "");
}

TEST(BareObject, IsMadeOfAPackedOne) {
  const ObjectPtr object =
      Object::make(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},)"
                   R"("data":")" +
                   std::string(10'000, 'x') + R"("})")
          .value();
  const ObjectPtr packed = object->packed(std::make_shared<const PackDictionary>("xxxx"));

  ASSERT_NE(packed, nullptr);
  EXPECT_EQ(bare_of(*packed)->to_value(), bare_of(*object)->to_value());
}

TEST(Identification, LeavesTheRestOfTheMetadataUnread) {
  const auto found =
      identify(R"({"kind":"ConfigMap","apiVersion":"v1",)"
               R"("metadata":{"name":"a","namespace":"b","resourceVersion":"7","managedFields":)");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "a");
  EXPECT_EQ(found->namespace_, "b");
  EXPECT_EQ(found->resource_version, "7");
}

TEST(Identification, ReadsOnWhereANamespaceMayFollow) {
  const auto found =
      identify(R"({"kind":"ConfigMap","apiVersion":"v1",)"
               R"("metadata":{"resourceVersion":"7","name":"a","uid":"u","namespace":"b"}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->namespace_, "b");
}

TEST(Identification, IsOfObjectsOnly) {
  for (const char* text : {"", "[]", "text", R"({"kind":"Pod"})", R"({"metadata":{"name":"a"}})",
                           R"({"kind":"Pod","apiVersion":"v1","metadata":7})",
                           R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a")"}) {
    EXPECT_FALSE(identify(text)) << text;
  }
  EXPECT_FALSE(identify(std::string_view())) << "nothing at all";
}

TEST(Version, IsANumber) {
  EXPECT_EQ(parse_version("18446744073709551615"), std::optional<std::uint64_t>(UINT64_MAX));
  for (const char* text : {"", "-1", "+1", "1x", " 1", "18446744073709551616"})
    EXPECT_FALSE(parse_version(text)) << text;
}

}  // namespace
}  // namespace hangar::kube
