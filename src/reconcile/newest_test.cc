#include "reconcile/newest.h"

#include "kube/cache/store.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

namespace hangar::reconcile {
namespace {

using News = Newest::News;
using Origin = Newest::Origin;
using Type = kube::Delta::Type;

kube::ObjectPtr object(int version, int generation = 1, std::string_view uid = "u") {
  return kube::Object::make(
             fmt::format(
                 R"({{"apiVersion":"v1","kind":"Thing","metadata":{{"namespace":"ns","name":"a",)"
                 R"("uid":"{}","resourceVersion":"{}","generation":{}}}}})",
                 uid, version, generation))
      .value();
}

kube::Delta modified(int version, int generation = 1) {
  return {.type = Type::Modified,
          .object = object(version, generation),
          .previous = object(version - 1, generation)};
}

TEST(Newest, IsTheCacheAsLongAsWeHaveWrittenNothing) {
  const Newest newest;
  const kube::ObjectPtr cached = object(5);

  EXPECT_EQ(newest.of(cached), cached);
  EXPECT_EQ(newest.of(nullptr), nullptr);
}

TEST(Newest, IsTheAnswerToOurWriteUntilTheCacheHasIt) {
  Newest newest;
  const kube::ObjectPtr answer = object(7);
  newest.remember(answer, object(5), Origin::OwnWrite);

  EXPECT_EQ(newest.of(object(5)), answer);
  EXPECT_EQ(newest.of(object(6)), answer);
  const kube::ObjectPtr caught_up = object(7);
  EXPECT_EQ(newest.of(caught_up), caught_up);
}

TEST(Newest, KeepsNothingThatTheWatchHasToldAlready) {
  Newest newest;
  newest.remember(object(7), object(7), Origin::OwnWrite);
  newest.remember(object(7), object(9), Origin::OwnWrite);
  newest.remember(object(7), nullptr, Origin::OwnWrite);

  EXPECT_EQ(newest.size(), 0U);
}

TEST(Newest, TakesDeltasUpToOurWriteForItsEcho) {
  Newest newest;
  newest.remember(object(7), object(5), Origin::OwnWrite);

  EXPECT_EQ(newest.on_delta(modified(6)), News::Echo);
  EXPECT_EQ(newest.on_delta(modified(7)), News::Echo);
  EXPECT_EQ(newest.on_delta(modified(8)), News::Change);
  EXPECT_EQ(newest.size(), 0U);
}

TEST(Newest, IsToldOfWhatComesAfterOurWriteAlthoughItsEchoWasMerged) {
  Newest newest;
  newest.remember(object(7), object(5), Origin::OwnWrite);

  EXPECT_EQ(newest.on_delta(modified(9)), News::Change);
  EXPECT_EQ(newest.size(), 0U);
}

TEST(Newest, TakesNoChangeOfTheSpecForAnEcho) {
  Newest newest;
  newest.remember(object(7, /*generation=*/2), object(5), Origin::OwnWrite);

  EXPECT_EQ(newest.on_delta(modified(6, /*generation=*/2)), News::Change);
  EXPECT_EQ(newest.on_delta(modified(7, /*generation=*/2)), News::Change);
}

TEST(Newest, TakesNothingThatWasReadForAnEcho) {
  Newest newest;
  newest.remember(object(6), object(5), Origin::Read);
  // Our own later write does not hide the changes of others.
  newest.remember(object(7), object(5), Origin::OwnWrite);

  EXPECT_EQ(newest.of(object(5))->resource_version(), "7");
  EXPECT_EQ(newest.on_delta(modified(6)), News::Change);
  EXPECT_EQ(newest.on_delta(modified(7)), News::Change);
}

TEST(Newest, KeepsTheNewerOfTwoAnswersWhateverTheirOrder) {
  Newest newest;
  newest.remember(object(8), object(5), Origin::OwnWrite);
  newest.remember(object(7), object(5), Origin::OwnWrite);

  EXPECT_EQ(newest.of(object(5))->resource_version(), "8");
}

TEST(Newest, HasTheContentOfAStateThatTheCacheHasBare) {
  Newest newest;
  const kube::ObjectPtr bare = kube::bare_of(*object(7));
  const kube::ObjectPtr whole = object(7);

  newest.remember(whole, bare, Origin::Whole);

  EXPECT_EQ(newest.of(bare), whole);
  // A later state, bare or not, is the newest.
  const kube::ObjectPtr later = kube::bare_of(*object(8));
  EXPECT_EQ(newest.of(later), later);
  EXPECT_EQ(newest.on_delta({.type = Type::Modified, .object = later, .previous = bare}),
            News::Change);
  EXPECT_EQ(newest.size(), 0U);
}

TEST(Newest, KeepsNoAnswerToOurWriteInPlaceOfTheSameStateBare) {
  Newest newest;
  const kube::ObjectPtr bare = kube::bare_of(*object(7));

  newest.remember(object(7), bare, Origin::OwnWrite);

  EXPECT_EQ(newest.of(bare), bare);
  EXPECT_EQ(newest.size(), 0U);
}

TEST(Newest, ForgetsAnObjectThatIsGoneAndNeverMistakesItsSuccessorForIt) {
  Newest newest;
  newest.remember(object(7), object(5), Origin::OwnWrite);
  const kube::ObjectPtr successor = object(6, 1, "another");
  EXPECT_EQ(newest.of(successor), successor);

  EXPECT_EQ(newest.on_delta({.type = Type::Deleted, .object = object(6), .previous = object(6)}),
            News::Change);

  EXPECT_EQ(newest.size(), 0U);
}

}  // namespace
}  // namespace hangar::reconcile
