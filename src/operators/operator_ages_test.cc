#include "operators/operator_ages.h"

#include "kube/cache/store.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

kube::ObjectPtr one(std::string_view name, int second, std::string_view namespace_name = "n") {
  return kube::Object::make(fmt::format(R"({{"apiVersion":"hangar.dev/v1alpha1","kind":"Operator",
      "metadata":{{"name":"{}","namespace":"{}","creationTimestamp":"2026-01-01T00:00:{:02}Z"}}}})",
                                        name, namespace_name, second))
      .value();
}

ListOperators listing(std::vector<kube::ObjectPtr> objects) {
  return [objects = std::move(objects)](std::string_view namespace_name) {
    std::vector<kube::ObjectPtr> found;
    for (const kube::ObjectPtr& object : objects)
      if (object->key().namespace_ == namespace_name) found.push_back(object);
    return found;
  };
}

kube::ObjectKey key(std::string name) {
  return {.namespace_ = "n", .name = std::move(name)};
}

kube::Delta added(kube::ObjectPtr object) {
  return {.type = kube::Delta::Type::Added, .object = std::move(object), .previous = {}};
}

kube::Delta deleted(kube::ObjectPtr object) {
  return {.type = kube::Delta::Type::Deleted, .object = object, .previous = object};
}

TEST(OperatorAges, CountThoseThatAreOlderInTheSameNamespace) {
  const ListOperators listed =
      listing({one("b", 1), one("a", 2), one("c", 2), one("x", 0, "other")});
  OperatorAges ages;

  EXPECT_EQ(ages.position(key("b"), 10, listed), 0U);
  EXPECT_EQ(ages.position(key("a"), 10, listed), 1U);
  EXPECT_EQ(ages.position(key("c"), 10, listed), 2U);
  EXPECT_EQ(ages.position(key("c"), 1, listed), 1U) << "as many as may run are before it";
  EXPECT_FALSE(ages.knows("other"));
}

TEST(OperatorAges, NameTheOneThatMayRunWhenAnotherGoes) {
  const ListOperators listed = listing({one("a", 1), one("b", 2), one("c", 3)});
  OperatorAges ages;
  (void)ages.position(key("a"), 1, listed);

  EXPECT_EQ(ages.update(deleted(one("a", 1)), 1), "b");
  EXPECT_EQ(ages.position(key("b"), 1, listed), 0U);
  EXPECT_FALSE(ages.update(deleted(one("c", 3)), 2)) << "the last of few";
  EXPECT_FALSE(ages.update(deleted(one("b", 2)), 0));
}

TEST(OperatorAges, NameTheOneThatMayNotRunAnyMore) {
  const ListOperators listed = listing({one("b", 1)});
  OperatorAges ages;
  (void)ages.position(key("b"), 1, listed);

  EXPECT_EQ(ages.update(added(one("c", 2)), 1), "c");
  EXPECT_EQ(ages.update(added(one("a", 1)), 1), "b") << "of the same second, by name";
}

TEST(OperatorAges, LookAnewOnceTheyAreForgotten) {
  OperatorAges ages;
  (void)ages.position(key("a"), 1, listing({one("a", 1)}));
  ages.forget("n");
  EXPECT_FALSE(ages.knows("n"));
  EXPECT_EQ(ages.position(key("a"), 5, listing({one("a", 2), one("b", 1)})), 1U);
  ages.forget("");
  EXPECT_FALSE(ages.knows("n"));
}

}  // namespace
}  // namespace hangar::operators
