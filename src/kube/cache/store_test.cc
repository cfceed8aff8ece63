#include "kube/cache/store.h"

#include "base/slots.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Sanitizers replace the allocator, so the memory cannot be measured.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HANGAR_TEST_ALLOCATOR_IS_REPLACED 1
#else
#define HANGAR_TEST_ALLOCATOR_IS_REPLACED 0
#endif

namespace hangar::kube {
namespace {

struct Spec {
  std::string namespace_ = "ns";
  std::string name = "a";
  std::string uid = "1";
  std::string version = "1";
  std::string owner = {};
};

ObjectPtr make(const Spec& spec) {
  std::string owners;
  if (!spec.owner.empty()) {
    owners = fmt::format(
        R"(,"ownerReferences":[{{"apiVersion":"v1","kind":"X","name":"x","uid":"{}"}}])",
        spec.owner);
  }
  return Object::
      make(fmt::format(
               R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"namespace":"{}","name":"{}","uid":"{}","resourceVersion":"{}"{}}}}})",
               spec.namespace_, spec.name, spec.uid, spec.version, owners))
          .value();
}

// "+ns/a@1" for added, "~" for modified, "-" for deleted.
struct Log {
  Store::OnDelta record() {
    return [this](const Delta& delta) {
      constexpr std::string_view kSigns = "+~-";
      lines.push_back(fmt::format("{}{}@{}", kSigns[static_cast<std::size_t>(delta.type)],
                                  delta.object->key().to_string(),
                                  delta.object->resource_version()));
      EXPECT_EQ(delta.previous != nullptr, delta.type != Delta::Type::Added);
    };
  }
  std::vector<std::string> take() { return std::exchange(lines, {}); }
  std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

TEST(Store, ANewListTellsOnlyWhatChanged) {
  Store store;
  Log log;
  store.replace({make({.name = "a"}), make({.name = "b"}), make({.name = "c"})}, log.record());
  EXPECT_EQ(log.take(), (Lines{"+ns/a@1", "+ns/b@1", "+ns/c@1"}));
  const ObjectPtr kept = store.get({"ns", "a"});

  store.replace({make({.name = "d"}), make({.name = "a"}), make({.name = "b", .version = "2"})},
                log.record());

  EXPECT_EQ(log.take(), (Lines{"-ns/c@1", "~ns/b@2", "+ns/d@1"}));
  EXPECT_EQ(store.get({"ns", "a"}), kept) << "what did not change is not replaced";
}

TEST(Store, AnotherObjectOfTheSameNameIsDeletedAndAdded) {
  Store store;
  Log log;
  store.replace({make({.uid = "1"})}, log.record());
  log.take();

  store.replace({make({.uid = "2", .version = "5"})}, log.record());

  EXPECT_EQ(log.take(), (Lines{"-ns/a@1", "+ns/a@5"}));
}

TEST(Store, ReadsChangesAsWhatTheyAmountTo) {
  Store store;
  Log log;
  const auto apply = [&](Change::Type type, const std::string& version) {
    store.apply({type, make({.version = version})}, log.record());
    return log.take();
  };

  EXPECT_EQ(apply(Change::Type::Deleted, "1"), Lines{});
  EXPECT_EQ(apply(Change::Type::Modified, "2"), Lines{"+ns/a@2"});
  EXPECT_EQ(apply(Change::Type::Added, "2"), Lines{});
  EXPECT_EQ(apply(Change::Type::Added, "3"), Lines{"~ns/a@3"});
  EXPECT_EQ(apply(Change::Type::Deleted, "4"), Lines{"-ns/a@4"});
  EXPECT_EQ(store.object_count(), 0U);
  EXPECT_EQ(store.size_bytes(), 0U);
}

TEST(Store, ShowsTheStateOfTheDeltaThatIsTold) {
  Store store;
  const auto check = [&](const Delta& delta) {
    const ObjectPtr known = store.get(delta.object->key());
    EXPECT_EQ(known, delta.type == Delta::Type::Deleted ? nullptr : delta.object);
  };
  store.replace({make({.name = "a"}), make({.name = "b"})}, check);
  store.replace({make({.name = "b", .version = "2"}), make({.name = "c"})}, check);
}

TEST(Store, ListsByKeyAndNamespace) {
  Store store;
  Log log;
  store.replace({make({.namespace_ = "b", .name = "x"}), make({.namespace_ = "a", .name = "z"}),
                 make({.namespace_ = "a", .name = "y"}), make({.namespace_ = "ab", .name = "y"})},
                log.record());
  const auto names = [](const std::vector<ObjectPtr>& objects) {
    Lines keys;
    for (const ObjectPtr& object : objects)
      keys.push_back(object->key().to_string());
    return keys;
  };

  EXPECT_EQ(names(store.list("")), (Lines{"a/y", "a/z", "ab/y", "b/x"}));
  EXPECT_EQ(names(store.list("a")), (Lines{"a/y", "a/z"}));
  EXPECT_EQ(names(store.list("none")), Lines{});
}

TEST(Store, FindsByOwnerBeforeAndAfterChanges) {
  Store store;
  Log log;
  store.replace(
      {make({.name = "a", .owner = "o1"}), make({.name = "b", .owner = "o1"}), make({.name = "c"})},
      log.record());
  EXPECT_EQ(store.owned_by("o1").size(), 2U);
  EXPECT_EQ(store.owned_by("o2").size(), 0U);

  store.apply({Change::Type::Modified, make({.name = "a", .version = "2", .owner = "o2"})},
              log.record());
  store.apply({Change::Type::Deleted, make({.name = "c", .version = "2"})}, log.record());
  store.apply({Change::Type::Added, make({.name = "d", .uid = "9", .owner = "o3"})}, log.record());

  EXPECT_EQ(store.owned_by("o1").size(), 1U);
  ASSERT_EQ(store.owned_by("o2").size(), 1U);
  EXPECT_EQ(store.owned_by("o2")[0]->key().name, "a");
  EXPECT_EQ(store.owned_by("o3").size(), 1U);
  store.replace({}, log.record());
  EXPECT_EQ(store.owned_by("o2").size(), 0U);
}

#if !HANGAR_TEST_ALLOCATOR_IS_REPLACED
// client-go needs several times the JSON of an object. This bounds what we need besides the bytes,
// so that it does not grow unnoticed.
TEST(Store, AddsLittleToTheBytesOfAnObject) {
  constexpr std::size_t kCount = 10'000;
  const std::string padding(1500, 'x');
  const auto in_use = [] { return mallinfo2().uordblks + slots::slab_bytes(); };
  const std::size_t before = in_use();
  Store store;
  std::size_t json_bytes = 0;
  for (std::size_t index = 0; index < kCount; ++index) {
    const std::string bytes = fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"configmap-number-{}","namespace":"some-namespace","uid":"0b6c4c39-6f5c-4f2c-9a2b-{:012}","resourceVersion":"{}"}},"data":{{"x":"{}"}}}})",
        index, index, index, padding);
    json_bytes += bytes.size();
    store.apply({Change::Type::Added, Object::make(bytes).value()}, [](const Delta&) {});
  }

  const std::size_t used = in_use() - before;
  const std::size_t overhead = (used - json_bytes) / kCount;

  // Includes the unused ends of slots and slabs.
  EXPECT_LE(overhead, 340U) << "bytes for each object";
  const double accounted = static_cast<double>(store.size_bytes()) / static_cast<double>(used);
  EXPECT_GT(accounted, 0.9);
  EXPECT_LT(accounted, 1.1);
}
#endif

}  // namespace
}  // namespace hangar::kube
