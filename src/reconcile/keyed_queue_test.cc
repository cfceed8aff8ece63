#include "reconcile/keyed_queue.h"

#include "base/time.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hangar::reconcile {
namespace {

using std::chrono::seconds;

const Instant kNow = Instant() + std::chrono::hours(1);
const KeyedQueue::Key kA{"ns", "a"};
const KeyedQueue::Key kB{"ns", "b"};

TEST(KeyedQueue, NeverHandsOutAKeyThatIsBeingWorkedOn) {
  KeyedQueue queue;
  queue.add(kA, kNow);
  auto first = queue.take(kNow);
  ASSERT_TRUE(first.has_value());

  queue.add(kA, kNow);
  EXPECT_FALSE(queue.take(kNow).has_value());

  first.reset();
  const auto second = queue.take(kNow);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->key(), kA);
}

TEST(KeyedQueue, AddingTwiceIsAddingOnce) {
  KeyedQueue queue;
  EXPECT_TRUE(queue.add(kA, kNow));
  EXPECT_FALSE(queue.add(kA, kNow));

  const auto only = queue.take(kNow);

  EXPECT_TRUE(only.has_value());
  EXPECT_FALSE(queue.take(kNow).has_value());
}

TEST(KeyedQueue, HandsOutInTheOrderOfAdding) {
  KeyedQueue queue;
  queue.add(kB, kNow);
  queue.add(kA, kNow);

  const auto first = queue.take(kNow + seconds(3));
  const auto second = queue.take(kNow + seconds(3));

  EXPECT_EQ(first->key(), kB);
  EXPECT_EQ(first->waited(), seconds(3));
  EXPECT_EQ(first->added_at(), kNow);
  EXPECT_EQ(second->key(), kA);
}

TEST(KeyedQueue, NamespacesTakeTurnsByHowLongTheirKeysAreWorkedOn) {
  KeyedQueue queue;
  for (const char* const name : {"1", "2", "3"}) {
    queue.add({"slow", name}, kNow);
    queue.add({"quick", name}, kNow);
  }
  std::string order;
  while (auto ticket = queue.take(kNow)) {
    order += ticket->key().namespace_.front();
    if (ticket->key().namespace_ == "slow") ticket->charge(seconds(60));
  }

  EXPECT_EQ(order.substr(1), order.front() == 's' ? "qqqss" : "sqqss");
}

TEST(KeyedQueue, DeletionsComeFirstAlsoThoseThatBeganToWaitAsOtherWork) {
  std::set<KeyedQueue::Key> deleted;
  KeyedQueue queue([&](const KeyedQueue::Key& key) { return deleted.contains(key); });
  queue.add(kA, kNow);
  queue.add(kB, kNow);
  deleted.insert(kB);

  EXPECT_FALSE(queue.add(kB, kNow));

  const auto first = queue.take(kNow);
  EXPECT_EQ(first->key(), kB);
  EXPECT_TRUE(first->is_deletion());
  EXPECT_EQ(queue.take(kNow)->key(), kA);
  EXPECT_FALSE(queue.take(kNow).has_value());
}

TEST(KeyedQueue, PassesOverNamespacesThatMayRunNothing) {
  KeyedQueue queue;
  queue.add({"full", "a"}, kNow);
  queue.add({"free", "a"}, kNow);

  const auto ticket = queue.take(kNow, [](const budget::Tenant& tenant, bool /*is_deletion*/) {
    return tenant.namespace_name() == "free";
  });

  ASSERT_TRUE(ticket.has_value());
  EXPECT_EQ(ticket->key().namespace_, "free");
  EXPECT_EQ(queue.depth(), 1U);
}

TEST(KeyedQueue, HoldsADelayedKeyUntilItIsDue) {
  KeyedQueue queue;
  queue.add_at(kA, kNow + seconds(10));

  EXPECT_EQ(queue.depth(), 0U);
  EXPECT_FALSE(queue.take(kNow + seconds(9)).has_value());
  EXPECT_EQ(queue.next_due(), kNow + seconds(10));
  const auto ticket = queue.take(kNow + seconds(12));
  ASSERT_TRUE(ticket.has_value());
  EXPECT_EQ(ticket->waited(), seconds(2));
  EXPECT_FALSE(queue.next_due().has_value());
}

TEST(KeyedQueue, TheEarliestOfSeveralDelaysCounts) {
  KeyedQueue queue;
  queue.add_at(kA, kNow + seconds(10));
  queue.add_at(kA, kNow + seconds(5));
  queue.add_at(kA, kNow + seconds(20));

  EXPECT_TRUE(queue.take(kNow + seconds(5)).has_value());
  EXPECT_FALSE(queue.take(kNow + seconds(30)).has_value());
}

TEST(KeyedQueue, ADelayThatEndsDuringTheWorkRunsOnceMore) {
  KeyedQueue queue;
  queue.add(kA, kNow);
  auto ticket = queue.take(kNow);
  queue.add_at(kA, kNow + seconds(1));

  EXPECT_EQ(queue.advance(kNow + seconds(2)), 1U);
  EXPECT_FALSE(queue.take(kNow + seconds(2)).has_value());

  ticket.reset();
  EXPECT_TRUE(queue.take(kNow + seconds(2)).has_value());
}

// Against the obvious model: a key is ready if it was added, or became due, after it was last
// taken.
TEST(KeyedQueue, LosesNothingAndDoublesNothingInAnyOrder) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  KeyedQueue queue;
  struct Expected {
    bool is_ready = false;
    bool is_running = false;
    std::optional<Instant> due = {};
  };
  std::map<KeyedQueue::Key, Expected> model;
  std::vector<KeyedQueue::Ticket> working;
  Instant now = kNow;
  const auto take = [&] {
    for (auto& [key, expected] : model) {
      if (!expected.due || *expected.due > now) continue;
      expected.is_ready = true;
      expected.due.reset();
    }
    auto ticket = queue.take(now);
    if (ticket) {
      Expected& expected = model[ticket->key()];
      EXPECT_FALSE(expected.is_running) << "two workers on one key";
      EXPECT_TRUE(expected.is_ready) << "handed out for nothing";
      expected = {.is_ready = false, .is_running = true, .due = expected.due};
    } else {
      for (const auto& [key, expected] : model)
        EXPECT_FALSE(expected.is_ready && !expected.is_running) << "lost " << key.to_string();
    }
    return ticket;
  };

  for (int step = 0; step < 20'000; ++step) {
    const KeyedQueue::Key key{"ns", std::to_string(random() % 20)};
    switch (random() % 4) {
      case 0:
        queue.add(key, now);
        model[key].is_ready = true;
        break;
      case 1: {
        const Instant due = now + seconds(random() % 10);
        queue.add_at(key, due);
        std::optional<Instant>& expected = model[key].due;
        expected = std::min(expected.value_or(due), due);
        break;
      }
      case 2:
        if (auto ticket = take()) working.push_back(*std::move(ticket));
        break;
      default:
        now += seconds(random() % 3);
        if (working.empty()) break;
        std::vector<KeyedQueue::Ticket> rest;
        const std::size_t ended = random() % working.size();
        for (std::size_t index = 0; index < working.size(); ++index)
          if (index != ended) rest.push_back(std::move(working[index]));
        model[working[ended].key()].is_running = false;
        working.swap(rest);
    }
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
  for (const auto& ticket : working)
    model[ticket.key()].is_running = false;
  working.clear();
  now += seconds(60);
  while (const auto ticket = take())
    model[ticket->key()].is_running = false;
  EXPECT_EQ(queue.depth(), 0U);
  EXPECT_FALSE(queue.next_due().has_value());
}

}  // namespace
}  // namespace hangar::reconcile
