#include "kube/cache/ration.h"

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {
namespace {

constexpr std::uint64_t kBytesMax = 10'000;

// What each namespace holds.
struct Books {
  std::map<std::string, std::uint64_t> held;
  int allowances = 0;
};

class Purse final : public Allowance {
 public:
  Purse(Books& books, std::string name) : books_(books), name_(std::move(name)) {
    ++books_.allowances;
  }
  ~Purse() override { --books_.allowances; }

  Result<> resize(std::uint64_t bytes) override {
    if (bytes > kBytesMax) return fail(ErrorKind::LimitExceeded, "no more");
    books_.held[name_] = bytes;
    return {};
  }

 private:
  Books& books_;
  const std::string name_;
};

class RationTest : public ::testing::Test {
 protected:
  static ObjectPtr object(std::string_view namespace_name, std::size_t bytes) {
    return Object::make(
               fmt::format(R"({{"apiVersion":"v1","kind":"Thing","metadata":{{{}"name":"a"}},)"
                           R"("data":"{}"}})",
                           namespace_name.empty()
                               ? std::string()
                               : fmt::format(R"("namespace":"{}",)", namespace_name),
                           std::string(bytes, 'x')))
        .value();
  }

  Books books_;
  const Ration ration_{[this](const std::string& namespace_name) {
    return std::make_unique<Purse>(books_, namespace_name);
  }};
};

TEST_F(RationTest, CountsAnObjectUntilNobodyHoldsIt) {
  const ObjectPtr whole = object("a", 4'000);

  ObjectPtr held = ration_.hold(whole).value();

  EXPECT_EQ(held.get(), whole.get());
  EXPECT_EQ(books_.held["a"], whole->size_bytes());
  ObjectPtr other = held;
  held.reset();
  EXPECT_EQ(books_.held["a"], whole->size_bytes());
  other.reset();
  EXPECT_EQ(books_.held["a"], 0U);
  EXPECT_EQ(books_.allowances, 0);
}

TEST_F(RationTest, CountsAnObjectOnce) {
  const ObjectPtr held = ration_.hold(object("a", 4'000)).value();

  const ObjectPtr again = ration_.hold(held).value();

  EXPECT_EQ(again, held);
  EXPECT_EQ(books_.held["a"], held->size_bytes());
}

TEST_F(RationTest, RefusesWhatItsNamespaceHasNoRoomForAndNothingOfOthers) {
  const ObjectPtr first = ration_.hold(object("a", 6'000)).value();

  const Result<ObjectPtr> second = ration_.hold(object("a", 6'000));

  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(books_.held["a"], first->size_bytes());
  EXPECT_TRUE(ration_.hold(object("b", 6'000)).has_value());
}

TEST_F(RationTest, KeepsABareObjectInPlaceOfOneThatIsRefused) {
  const ObjectPtr bare = ration_.hold_or_bare(object("a", 60'000));

  EXPECT_TRUE(bare->is_bare());
  EXPECT_EQ(bare->key(), (ObjectKey{"a", "a"}));
  EXPECT_LT(bare->size_bytes(), 1'000U);
}

// Small objects are hardly smaller bare, and there may be very many.
TEST_F(RationTest, CountsBareObjectsToo) {
  ObjectPtr bare = ration_.hold_or_bare(object("a", 60'000));

  EXPECT_EQ(books_.held["a"], bare->size_bytes());
  EXPECT_EQ(ration_.hold(bare).value(), bare) << "once";
  EXPECT_EQ(books_.held["a"], bare->size_bytes());
  bare.reset();
  EXPECT_EQ(books_.held["a"], 0U);
  EXPECT_EQ(books_.allowances, 0);
}

TEST_F(RationTest, HoldsNothingWholeWhileBareObjectsExceedTheBound) {
  std::vector<ObjectPtr> bare;
  std::uint64_t bytes = 0;
  while (bytes <= 2 * kBytesMax) {
    bare.push_back(ration_.hold_or_bare(object("a", 60'000)));
    bytes += bare.back()->size_bytes();
  }

  EXPECT_LE(books_.held["a"], kBytesMax);
  EXPECT_GT(books_.held["a"], kBytesMax - 2 * bare.front()->size_bytes());
  EXPECT_FALSE(ration_.has_room("a", 1));
  EXPECT_FALSE(ration_.hold(object("a", 0)).has_value());
  EXPECT_TRUE(ration_.hold(object("b", 6'000)).has_value());
  bare.erase(bare.begin() + 1, bare.end());
  EXPECT_EQ(books_.held["a"], bare.front()->size_bytes());
  EXPECT_TRUE(ration_.hold(object("a", 6'000)).has_value());
}

TEST_F(RationTest, TellsWhetherThereIsRoomAndTakesNone) {
  const ObjectPtr held = ration_.hold(object("a", 6'000)).value();

  EXPECT_TRUE(ration_.has_room("a", 3'000));
  EXPECT_FALSE(ration_.has_room("a", 6'000));
  EXPECT_TRUE(ration_.has_room("b", 6'000));
  EXPECT_EQ(books_.held["a"], held->size_bytes());
  EXPECT_EQ(books_.held["b"], 0U);
}

TEST_F(RationTest, CountsBytesBesidesObjectsUntilNobodyHoldsThem) {
  const ObjectPtr held = ration_.hold(object("a", 4'000)).value();

  std::shared_ptr<const void> bytes = ration_.hold_bytes("a", 3'000).value();

  EXPECT_EQ(books_.held["a"], held->size_bytes() + 3'000);
  const Result<std::shared_ptr<const void>> more = ration_.hold_bytes("a", 6'000);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(books_.held["a"], held->size_bytes() + 3'000);
  EXPECT_TRUE(ration_.hold_bytes("b", 6'000).has_value());
  bytes.reset();
  EXPECT_EQ(books_.held["a"], held->size_bytes());
  EXPECT_EQ(ration_.hold_bytes("", 60'000).value(), nullptr);
}

TEST_F(RationTest, BoundsNoObjectOutsideOfNamespaces) {
  EXPECT_FALSE(ration_.hold_or_bare(object("", 60'000))->is_bare());
  EXPECT_TRUE(ration_.has_room("", 60'000));
  EXPECT_TRUE(books_.held.empty());
}

TEST_F(RationTest, MayEndBeforeItsObjects) {
  ObjectPtr held;
  {
    const Ration ration(
        [this](const std::string& name) { return std::make_unique<Purse>(books_, name); });
    held = ration.hold(object("a", 4'000)).value();
  }
  EXPECT_GT(books_.held["a"], 4'000U);
  held.reset();
  EXPECT_EQ(books_.held["a"], 0U);
}

}  // namespace
}  // namespace hangar::kube
