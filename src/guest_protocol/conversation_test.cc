#include "guest_protocol/conversation.h"

#include "base/result.h"
#include "base/time.h"
#include "guest_protocol/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace hangar::guest_protocol {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Move = Conversation::Move;

const Instant kNow = Instant() + std::chrono::hours(1);
const Conversation::Patience kPatience;
const Conversation::Terms kFlight{.memory_bytes_max = 100, .timeout = seconds(10)};

const Conversation::Terms kTurn{.work = Conversation::Work::Turn,
                                .memory_bytes_max = 100,
                                .timeout = seconds(10),
                                .snapshot_bytes = 2 * kPieceBytes + 1};
const Conversation::Terms kSleep{
    .work = Conversation::Work::Sleep, .timeout = seconds(10), .snapshot_bytes = 2 * kPieceBytes};
const Conversation::Terms kSleepOnLayer{.work = Conversation::Work::Sleep,
                                        .timeout = seconds(10),
                                        .snapshot_bytes = 2 * kPieceBytes,
                                        .layer_pages = 3,
                                        .layer_pages_max = 8,
                                        .layer_end_max = 64};

std::string pages(std::size_t count) {
  return std::string(count * kLayerPageBytes, 'p');
}

class ConversationTest : public testing::Test {
 public:
  void expect_breach(const FromGuest& message, const std::string& text) {
    const Result<> heard = talk_.hear(message, kNow);
    ASSERT_FALSE(heard.has_value());
    EXPECT_EQ(heard.error().kind(), ErrorKind::GuestFault);
    EXPECT_THAT(heard.error().message(), HasSubstr(text));
  }
  void expect_fine(const FromGuest& message, Instant now = kNow) {
    const Result<> heard = talk_.hear(message, now);
    EXPECT_TRUE(heard.has_value()) << heard.error().message();
  }

 protected:
  Conversation talk_;
};

TEST_F(ConversationTest, IsAboutRunsThatAreUnderWay) {
  expect_breach(EndRun{.run = 1}, "not in progress");
  talk_.begin(1, kFlight, kNow);

  expect_breach(LookUp{.run = 2}, "not in progress");
  expect_breach(MapKind{.run = 2}, "not in progress");
  expect_breach(AskMemory{.run = 2}, "not in progress");
  expect_fine(EndRun{.run = 1});
}

TEST_F(ConversationTest, EndsEachRunOnce) {
  talk_.begin(1, kFlight, kNow);
  talk_.begin(2, kFlight, kNow);

  expect_fine(EndRun{.run = 1});

  EXPECT_EQ(talk_.under_way(), 1U);
  expect_breach(EndRun{.run = 1}, "not in progress");
}

TEST_F(ConversationTest, HasOneQuestionOfARunAtATime) {
  talk_.begin(1, kFlight, kNow);
  talk_.begin(2, kFlight, kNow);

  expect_fine(LookUp{.run = 1});
  expect_fine(MapKind{.run = 2});
  expect_breach(MapKind{.run = 1}, "two requests");
  talk_.answered(1, kNow);
  expect_fine(LookUp{.run = 1});
}

TEST_F(ConversationTest, EndsNoRunThatWaitsForAnAnswer) {
  talk_.begin(1, kFlight, kNow);
  expect_fine(LookUp{.run = 1});

  expect_breach(EndRun{.run = 1}, "waited for an answer");
}

TEST_F(ConversationTest, GivesConvertersNothingOfTheCluster) {
  talk_.begin(1, {.work = Conversation::Work::Converter}, kNow);

  expect_breach(LookUp{.run = 1}, "not a flight");
  expect_breach(MapKind{.run = 1}, "not a flight");
}

TEST_F(ConversationTest, GivesMachinesNothingAndTakesNoMoreThanAnAnswer) {
  talk_.begin(1, {.work = Conversation::Work::Machine}, kNow);
  talk_.begin(2, {.work = Conversation::Work::Machine}, kNow);
  talk_.begin(3, {.work = Conversation::Work::Machine}, kNow);

  expect_breach(LookUp{.run = 1}, "not a flight");
  expect_breach(AskPiece{.run = 1}, "does not allow");
  expect_fine(EndRun{.run = 1,
                     .stdout_bytes = std::string(kMachineAnswerBytesMax, 'x'),
                     .stderr_bytes = std::string(kMachineLogBytesMax, 'x')});
  expect_breach(EndRun{.run = 2, .stdout_bytes = std::string(kMachineAnswerBytesMax + 1, 'x')},
                "answer is longer than it may be");
  expect_breach(EndRun{.run = 3, .stderr_bytes = std::string(kMachineLogBytesMax + 1, 'x')},
                "output is longer than it may be");
}

TEST_F(ConversationTest, HearsOfMemoryUpToTheLimitOnly) {
  talk_.begin(1, kFlight, kNow);

  expect_fine(AskMemory{.run = 1, .bytes = 100});
  expect_breach(AskMemory{.run = 1, .bytes = 101}, "more memory");
}

TEST_F(ConversationTest, HearsNoAnswerThatNobodyAskedFor) {
  talk_.begin(1, kFlight, kNow);

  expect_breach(Pong{}, "had not sent");
}

TEST_F(ConversationTest, AsksOneThatIsQuietAndEndsItWhenItStaysSilent) {
  talk_.begin(1, {.timeout = std::nullopt}, kNow);

  const Instant quiet = kNow + kPatience.quiet_max;
  EXPECT_EQ(talk_.look(quiet - milliseconds(1)).value(), Move::Wait);
  EXPECT_EQ(talk_.look_at(), quiet);
  EXPECT_EQ(talk_.look(quiet).value(), Move::Ping);
  EXPECT_EQ(talk_.look(quiet + seconds(1)).value(), Move::Wait);
  const Instant silent = quiet + kPatience.silence_max;
  EXPECT_EQ(talk_.look_at(), silent);
  EXPECT_FALSE(talk_.look(silent).has_value());
}

TEST_F(ConversationTest, GoesOnWithOneThatAnswers) {
  talk_.begin(1, {.timeout = std::nullopt}, kNow);
  const Instant quiet = kNow + kPatience.quiet_max;
  EXPECT_EQ(talk_.look(quiet).value(), Move::Ping);

  expect_fine(Pong{}, quiet + seconds(1));

  EXPECT_EQ(talk_.look(quiet + seconds(2)).value(), Move::Wait);
  EXPECT_EQ(talk_.look(quiet + seconds(1) + kPatience.quiet_max).value(), Move::Ping);
}

TEST_F(ConversationTest, AsksNothingWhileNothingIsUnderWay) {
  EXPECT_EQ(talk_.look(kNow + std::chrono::hours(1)).value(), Move::Wait);
  EXPECT_EQ(talk_.look_at(), std::nullopt);
}

TEST_F(ConversationTest, WaitsTheGraceOnlyForARunThatIsCancelled) {
  talk_.begin(1, {.timeout = std::nullopt}, kNow);

  talk_.cancel(1, kNow + seconds(1));
  talk_.cancel(2, kNow);  // This run has ended meanwhile.

  const Instant due = kNow + seconds(1) + kPatience.run_grace;
  Conversation asked = talk_;
  EXPECT_TRUE(asked.look(due - milliseconds(1)).has_value());
  EXPECT_FALSE(talk_.look(due).has_value());
}

TEST_F(ConversationTest, EndsWithOneThatFloodsTheHost) {
  talk_.begin(1, kFlight, kNow);
  const auto ask_often = [this](Instant now) {
    for (double count = 0; count < kMessagesPerSecondMax; ++count)
      expect_fine(AskMemory{.run = 1, .bytes = 1}, now);
  };

  ask_often(kNow);
  ask_often(kNow + seconds(1));
  const Result<> heard = talk_.hear(AskMemory{.run = 1, .bytes = 1}, kNow + seconds(1));

  ASSERT_FALSE(heard.has_value());
  EXPECT_THAT(heard.error().message(), HasSubstr("more messages"));
}

TEST_F(ConversationTest, GivesARunItsTimeAfterThoseThatBeganBefore) {
  talk_.begin(1, kFlight, kNow);
  talk_.begin(2, kFlight, kNow);
  expect_fine(EndRun{.run = 1});

  const Instant due = kNow + 2 * seconds(10) + kPatience.run_grace;
  Conversation asked = talk_;
  EXPECT_TRUE(asked.look(due - milliseconds(1)).has_value());
  const auto late = talk_.look(due);
  ASSERT_FALSE(late.has_value());
  EXPECT_THAT(late.error().message(), HasSubstr("in time"));
}

TEST_F(ConversationTest, GivesARunNoTimeForThoseThatHaveEnded) {
  talk_.begin(0, kFlight, kNow);
  for (std::uint64_t run = 1; run < 100; ++run) {
    talk_.begin(run, kFlight, kNow);
    expect_fine(EndRun{.run = run - 1});
  }

  EXPECT_FALSE(talk_.look(kNow + 2 * seconds(10) + kPatience.run_grace).has_value());
}

TEST_F(ConversationTest, HasMessagesThatFitTheWorkOfTheRun) {
  talk_.begin(1, kFlight, kNow);
  talk_.begin(2, kTurn, kNow);
  talk_.begin(3, kSleep, kNow);

  expect_breach(LookUp{.run = 2}, "not a flight");
  expect_breach(MapKind{.run = 3}, "not a flight");
  expect_breach(EndRun{.run = 2}, "does not allow");
  expect_breach(EndTurn{.run = 1}, "does not allow");
  expect_breach(EndTurn{.run = 3}, "does not allow");
  expect_breach(EndSleep{.run = 2, .is_error = true}, "does not allow");
  expect_breach(TurnCall{.run = 1}, "does not allow");
  expect_breach(TurnAnswer{.run = 3}, "does not allow");
  expect_breach(AskPiece{.run = 3}, "does not allow");
  expect_breach(KeepPiece{.run = 2}, "does not allow");
  expect_breach(MakeLayer{.run = 2}, "does not allow");
  expect_breach(KeepPages{.run = 1}, "does not allow");
  expect_fine(EndTurn{.run = 2});
  expect_fine(EndSleep{.run = 3, .is_error = true});
  EXPECT_EQ(talk_.under_way(), 1U);
}

TEST_F(ConversationTest, GivesATurnItsGuestOnce) {
  talk_.begin(1, kTurn, kNow);  // Two whole pieces and a byte.

  for (int piece = 0; piece < 3; ++piece) {
    expect_fine(AskPiece{.run = 1});
    talk_.answered(1, kNow);
  }

  expect_breach(AskPiece{.run = 1}, "more pieces");
}

TEST_F(ConversationTest, GivesATurnOnePieceAtATime) {
  talk_.begin(1, kTurn, kNow);
  expect_fine(AskPiece{.run = 1});

  expect_breach(AskPiece{.run = 1}, "two requests");
  expect_breach(EndTurn{.run = 1}, "waited for an answer");
}

TEST_F(ConversationTest, HasNoGuestForATurnOfOneThatIsAwake) {
  talk_.begin(1, {.work = Conversation::Work::Turn}, kNow);

  expect_breach(AskPiece{.run = 1}, "more pieces");
}

TEST_F(ConversationTest, BoundsTheRequestsAndAnswersOfATurn) {
  talk_.begin(1, kTurn, kNow);
  for (std::size_t count = 0; count < kTurnCallsMax; ++count)
    expect_fine(TurnCall{.run = 1});
  expect_breach(TurnCall{.run = 1}, "more requests");

  talk_.begin(2, kTurn, kNow);
  const std::string largest(kRequestBytesMax, 'x');
  for (std::size_t bytes = 0; bytes < kTurnCallBytesMax; bytes += largest.size())
    expect_fine(TurnCall{.run = 2, .request = largest});
  expect_breach(TurnCall{.run = 2, .request = "x"}, "more requests");

  talk_.begin(3, kTurn, kNow);
  for (std::size_t count = 0; count < kTurnAnswersMax; ++count)
    expect_fine(TurnAnswer{.run = 3});
  expect_breach(TurnAnswer{.run = 3}, "more answers");
}

TEST_F(ConversationTest, KeepsASleepingGuestInWholePieces) {
  talk_.begin(1, kSleep, kNow);
  constexpr std::uint32_t kTotal = kPieceBytes + 2;

  expect_fine(KeepPiece{.run = 1, .total_bytes = kTotal, .bytes = std::string(kPieceBytes, 'x')});
  talk_.answered(1, kNow);
  expect_breach(EndSleep{.run = 1}, "incomplete");
  expect_fine(KeepPiece{.run = 1, .total_bytes = kTotal, .bytes = "xy"});
  talk_.answered(1, kNow);

  expect_fine(EndSleep{.run = 1});
}

TEST_F(ConversationTest, KeepsNoSleepingGuestOfAnotherSize) {
  const auto begin = [this](std::uint64_t run) { talk_.begin(run, kSleep, kNow); };
  begin(1);
  expect_breach(KeepPiece{.run = 1, .total_bytes = 0}, "total size");
  expect_breach(EndSleep{.run = 1}, "incomplete");
  begin(2);
  expect_breach(KeepPiece{.run = 2,
                          .total_bytes = static_cast<std::uint32_t>(kSleep.snapshot_bytes + 1),
                          .bytes = std::string(kPieceBytes, 'x')},
                "total size");
  begin(3);
  expect_breach(KeepPiece{.run = 3, .total_bytes = 7, .bytes = "six..."}, "a piece of a snapshot");
  begin(4);
  expect_fine(KeepPiece{.run = 4, .total_bytes = 3, .bytes = "all"});
  talk_.answered(4, kNow);
  expect_breach(KeepPiece{.run = 4, .total_bytes = 4, .bytes = "x"}, "total size");
  expect_breach(KeepPiece{.run = 4, .total_bytes = 3, .bytes = ""}, "a piece of a snapshot");
}

TEST_F(ConversationTest, EndsNoSleepThatWaitsForAnAnswer) {
  talk_.begin(1, kSleep, kNow);
  expect_fine(KeepPiece{.run = 1, .total_bytes = 3, .bytes = "all"});

  expect_breach(EndSleep{.run = 1}, "waited for an answer");
}

TEST_F(ConversationTest, BoundsASleepByTheSleepsInProgressAlone) {
  talk_.begin(1, {.work = Conversation::Work::Turn, .timeout = std::chrono::hours(2)}, kNow);
  talk_.begin(2, kSleep, kNow);
  talk_.begin(3, kSleep, kNow);

  const Instant first = kNow + *kSleep.timeout + kPatience.run_grace;
  expect_fine(AskMemory{.run = 1}, first - milliseconds(1));
  EXPECT_EQ(talk_.look_at(), first);
  EXPECT_TRUE(talk_.look(first - milliseconds(1)).has_value());
  EXPECT_THAT(talk_.look(first).error().message(), HasSubstr("did not finish in time"));
  expect_fine(EndSleep{.run = 2, .is_error = true}, first);

  const Instant second = first + *kSleep.timeout;
  expect_fine(AskMemory{.run = 1}, second - milliseconds(1));
  EXPECT_TRUE(talk_.look(second - milliseconds(1)).has_value());
  EXPECT_FALSE(talk_.look(second).has_value());
  expect_fine(EndSleep{.run = 3, .is_error = true}, second);

  talk_.begin(4, kSleep, second);
  expect_fine(AskMemory{.run = 1}, second + *kSleep.timeout + kPatience.run_grace);
  EXPECT_EQ(talk_.look_at(), second + *kSleep.timeout + kPatience.run_grace);
}

TEST_F(ConversationTest, DoesNotCountTheTimeThatTheHostTakesToStoreASleepingGuest) {
  talk_.begin(1, kSleep, kNow);
  expect_fine(KeepPiece{.run = 1, .total_bytes = 3, .bytes = "all"}, kNow + seconds(1));

  const Instant late = kNow + std::chrono::hours(1);
  EXPECT_EQ(talk_.look(late).value(), Move::Ping);
  EXPECT_GT(talk_.look_at(), late) << "it is not too late";
  expect_fine(Pong{}, late);
  talk_.answered(1, late);

  const Instant due = late + *kSleep.timeout + kPatience.run_grace - seconds(1);
  expect_fine(AskMemory{.run = 1}, due - milliseconds(1));
  EXPECT_TRUE(talk_.look(due - milliseconds(1)).has_value());
  EXPECT_FALSE(talk_.look(due).has_value());
}

class LayerConversationTest : public ConversationTest {
 public:
  LayerConversationTest() { talk_.begin(1, kSleepOnLayer, kNow); }

  void expect_kept(const FromGuest& message) {
    expect_fine(message);
    talk_.answered(1, kNow);
  }
  void expect_breach_at_first(const FromGuest& message, const std::string& text) {
    const Conversation before = talk_;
    expect_breach(message, text);
    talk_ = before;
  }

  const KeepPiece kAll{.run = 1, .total_bytes = 3, .bytes = "all"};
};

TEST_F(LayerConversationTest, KeepsPagesOfTheLayerThatAGuestHas) {
  expect_kept(KeepPages{.run = 1, .pages = {{0, 1}}, .bytes = pages(1)});
  expect_kept(KeepPages{.run = 1, .pages = {{2, 1}}, .bytes = pages(1)});
  expect_kept(kAll);

  expect_fine(EndSleep{.run = 1, .is_on_layer = true});
}

TEST_F(LayerConversationTest, KeepsNoPagesOutsideOfTheLayer) {
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{3, 1}}, .bytes = pages(1)}, "outside");
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{2, 2}}, .bytes = pages(2)}, "outside");
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{kMost, 1}}, .bytes = pages(1)}, "outside");
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{1, kMost}}, .bytes = pages(1)}, "outside");
  expect_breach_at_first(KeepPages{.run = 1}, "outside");
  talk_.begin(2, kSleep, kNow);
  expect_breach(KeepPages{.run = 2, .pages = {{0, 1}}, .bytes = pages(1)}, "outside");
}

TEST_F(LayerConversationTest, KeepsEachPageAtMostOnce) {
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{1, 1}, {1, 1}}, .bytes = pages(2)},
                         "out of order");
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{1, 1}, {0, 1}}, .bytes = pages(2)},
                         "out of order");
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{1, 0}}}, "out of order");
  expect_kept(KeepPages{.run = 1, .pages = {{1, 1}}, .bytes = pages(1)});
  expect_breach(KeepPages{.run = 1, .pages = {{1, 1}}, .bytes = pages(1)}, "out of order");
}

TEST_F(LayerConversationTest, KeepsWholePagesOnly) {
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{0, 1}}, .bytes = pages(2)}, "wrong size");
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{0, 2}}, .bytes = pages(1)}, "wrong size");
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{0, 1}}, .bytes = "p"}, "wrong size");
}

TEST_F(LayerConversationTest, TakesANewLayerWithAllOfItsPages) {
  expect_kept(MakeLayer{.run = 1, .pieces = {{10, 2}, {60, 4}}});
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{1, 1}}, .bytes = pages(1)}, "out of order");
  expect_kept(KeepPages{.run = 1, .pages = {{0, 2}, {2, 3}}, .bytes = pages(5)});
  expect_breach_at_first(KeepPages{.run = 1, .pages = {{5, 2}}, .bytes = pages(2)}, "outside");
  Conversation incomplete = talk_;
  expect_kept(kAll);
  expect_breach_at_first(EndSleep{.run = 1, .is_on_layer = true}, "layer is incomplete");
  talk_ = incomplete;
  expect_kept(KeepPages{.run = 1, .pages = {{5, 1}}, .bytes = pages(1)});
  expect_kept(kAll);

  expect_fine(EndSleep{.run = 1, .is_on_layer = true});
}

TEST_F(LayerConversationTest, TakesNoNewLayerOfAnotherSize) {
  expect_breach_at_first(MakeLayer{.run = 1}, "size of a layer");
  expect_breach_at_first(MakeLayer{.run = 1, .pieces = {{0, 9}}}, "size of a layer");
  expect_breach_at_first(MakeLayer{.run = 1, .pieces = {{60, 5}}}, "size of a layer");
  expect_breach_at_first(MakeLayer{.run = 1, .pieces = {{4, 0}}}, "pieces");
  expect_breach_at_first(MakeLayer{.run = 1, .pieces = {{4, 2}, {5, 1}}}, "pieces");
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  expect_breach_at_first(MakeLayer{.run = 1, .pieces = {{kMost, kMost}}}, "size of a layer");
  talk_.begin(2, kSleep, kNow);
  expect_breach(MakeLayer{.run = 2, .pieces = {{0, 1}}}, "size of a layer");
}

TEST_F(LayerConversationTest, TakesOneNewLayerBeforeAllElse) {
  const MakeLayer order{.run = 1, .pieces = {{0, 1}}};
  const Conversation before = talk_;
  expect_kept(order);
  expect_breach(order, "too late");
  talk_ = before;
  expect_kept(KeepPages{.run = 1, .pages = {{0, 1}}, .bytes = pages(1)});
  expect_breach_at_first(order, "too late");
  expect_kept(kAll);
  expect_breach_at_first(order, "too late");
  expect_breach(KeepPages{.run = 1, .pages = {{1, 1}}, .bytes = pages(1)}, "too late");
}

TEST_F(LayerConversationTest, HasNoGuestOnALayerThatDoesNotExist) {
  talk_.begin(2, kSleep, kNow);
  expect_fine(KeepPiece{.run = 2, .total_bytes = 3, .bytes = "all"});
  talk_.answered(2, kNow);

  expect_breach(EndSleep{.run = 2, .is_on_layer = true}, "layer is incomplete");
}

TEST_F(LayerConversationTest, HearsOnlyTheEndAfterARefusal) {
  expect_fine(MakeLayer{.run = 1, .pieces = {{0, 8}}});
  talk_.refused(1, kNow);
  const KeepPages written{.run = 1, .pages = {{0, 8}}, .bytes = pages(8)};
  expect_breach_at_first(written, "was refused");
  expect_breach_at_first(kAll, "was refused");
  expect_breach_at_first(EndSleep{.run = 1}, "was refused");

  expect_fine(EndSleep{.run = 1, .is_error = true});
}

}  // namespace
}  // namespace hangar::guest_protocol
