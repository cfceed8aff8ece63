#include "operators/mailbox.h"

#include "base/time.h"
#include "operators/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::operators {
namespace {

using Room = Mailbox::Room;
using std::chrono::seconds;

const Instant kNow = Instant() + seconds(100);

Mailbox::Arrival text(std::uint64_t id, std::size_t bytes) {
  return {.id = id, .what = gateway::Piece(std::string(bytes, 'x'))};
}
Mailbox::Arrival end(std::uint64_t id) {
  return {.id = id, .what = Mailbox::End{}};
}

TEST(Mailbox, GivesWhatArrivedInItsOrder) {
  Mailbox mailbox;
  EXPECT_EQ(mailbox.put(text(2, 1), kNow), Room::Enough);
  EXPECT_EQ(mailbox.put(text(1, 1), kNow), Room::Enough);
  EXPECT_EQ(mailbox.put(end(2), kNow), Room::Enough);

  const std::vector<Mailbox::Arrival> taken = mailbox.take();

  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].id, 2U);
  EXPECT_EQ(taken[1].id, 1U);
  EXPECT_TRUE(std::holds_alternative<Mailbox::End>(taken[2].what));
  EXPECT_TRUE(mailbox.is_idle());
}

TEST(Mailbox, SaysSinceWhenTheOldestWaits) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.first_arrival().has_value());
  EXPECT_EQ(mailbox.put(end(1), kNow), Room::Enough);
  EXPECT_EQ(mailbox.put(end(2), kNow + seconds(1)), Room::Enough);
  EXPECT_EQ(mailbox.first_arrival(), kNow);

  static_cast<void>(mailbox.take());
  EXPECT_EQ(mailbox.put(end(3), kNow + seconds(2)), Room::Enough);

  EXPECT_EQ(mailbox.first_arrival(), kNow + seconds(2));
}

TEST(Mailbox, WhatIsInNoHasteWaitsForWhatIs) {
  Mailbox mailbox;
  EXPECT_EQ(mailbox.put(text(1, 1), kNow, Mailbox::Haste::None), Room::Enough);
  EXPECT_FALSE(mailbox.due().has_value());
  EXPECT_EQ(mailbox.put(text(1, 1), kNow, Mailbox::Haste::Little), Room::Enough);
  EXPECT_EQ(mailbox.put(text(1, 1), kNow + seconds(1), Mailbox::Haste::Little), Room::Enough);
  EXPECT_EQ(mailbox.due(), kNow + limits::kOperatorEventHold);

  EXPECT_EQ(mailbox.put(end(2), kNow, Mailbox::Haste::Full), Room::Enough);

  EXPECT_EQ(mailbox.due(), kNow);
  EXPECT_EQ(mailbox.take().size(), 4U);
  EXPECT_FALSE(mailbox.due().has_value());
}

TEST(Mailbox, TakesAsMuchAsItHasRoomForAndNotAByteMore) {
  Mailbox mailbox(10);
  EXPECT_EQ(mailbox.put(text(1, 10), kNow), Room::Enough);

  EXPECT_EQ(mailbox.put(text(2, 1), kNow), Room::Overflow);

  EXPECT_TRUE(mailbox.is_closed());
  EXPECT_TRUE(mailbox.is_idle()) << "what nobody takes is not kept";
}

TEST(Mailbox, HasRoomAgainForWhatWasTaken) {
  Mailbox mailbox(10);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(mailbox.put(text(1, 10), kNow), Room::Enough);
    static_cast<void>(mailbox.take());
  }
}

TEST(Mailbox, DropsWhatTheGuestDoesNotWaitForAndHasRoomAgain) {
  Mailbox mailbox(10);
  EXPECT_EQ(mailbox.put(text(1, 6), kNow), Room::Enough);
  EXPECT_EQ(mailbox.put(text(2, 4), kNow), Room::Enough);
  const std::vector<std::uint64_t> cancelled = {1, 7};

  mailbox.drop(cancelled);

  EXPECT_EQ(mailbox.size(), 1U);
  EXPECT_EQ(mailbox.put(text(3, 6), kNow), Room::Enough);
  EXPECT_EQ(mailbox.put(text(3, 1), kNow), Room::Overflow);
}

TEST(Mailbox, CountsWhatIsUnderWay) {
  Mailbox mailbox(10);
  EXPECT_EQ(mailbox.set_under_way(0, 6), Room::Enough);
  EXPECT_FALSE(mailbox.is_idle());
  EXPECT_TRUE(mailbox.is_empty());
  EXPECT_EQ(mailbox.put(text(1, 4), kNow), Room::Enough);
  EXPECT_EQ(mailbox.set_under_way(6, 5), Room::Enough);
  EXPECT_EQ(mailbox.put(text(1, 1), kNow), Room::Enough);

  EXPECT_EQ(mailbox.set_under_way(5, 6), Room::Overflow);
}

TEST(Mailbox, CountsTheHeadersOfAnswers) {
  Mailbox mailbox(10'000);
  const http::Headers headers(100, {"a", "b"});
  EXPECT_EQ(mailbox.put({.id = 1, .what = Mailbox::Head{.status = 200, .headers = headers}}, kNow),
            Room::Enough);
  EXPECT_EQ(mailbox.bytes(), 100 * (2 + 2 * sizeof(std::string)));
  mailbox.drop(std::vector<std::uint64_t>{1});
  EXPECT_EQ(mailbox.bytes(), 0U);

  for (std::uint64_t id = 2; id < 4; ++id) {
    static_cast<void>(
        mailbox.put({.id = id, .what = Mailbox::Head{.status = 200, .headers = headers}}, kNow));
  }
  EXPECT_TRUE(mailbox.is_closed());
}

TEST(Mailbox, SaysOnceThatItOverflowsAndTakesNothingUntilItIsReopened) {
  Mailbox mailbox(1);
  EXPECT_EQ(mailbox.put(text(1, 2), kNow), Room::Overflow);

  EXPECT_EQ(mailbox.put(text(1, 2), kNow), Room::Closed);
  EXPECT_EQ(mailbox.put(end(1), kNow), Room::Closed);
  EXPECT_EQ(mailbox.set_under_way(0, 1), Room::Closed);
  mailbox.clear();
  EXPECT_TRUE(mailbox.is_closed()) << "its guest is still there";
  mailbox.reopen();

  EXPECT_EQ(mailbox.put(end(1), kNow), Room::Enough);
}

}  // namespace
}  // namespace hangar::operators
