#include "kube/internal/list_page.h"

#include "base/consumer.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/limits.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kListSlice = limits::kListSliceBytes;
const GroupVersionKind kThings{.group = "example.com", .version = "v1", .kind = "Thing"};

// A page of items with these names, each of about `item_bytes`.
std::string page_of(std::string_view prefix, std::size_t count, std::size_t item_bytes = 0) {
  std::string items;
  for (std::size_t index = 0; index < count; ++index) {
    items += fmt::format(R"({}{{"metadata":{{"name":"{}-{}"}},"data":"{}"}})", index > 0 ? "," : "",
                         prefix, index, std::string(item_bytes, 'x'));
  }
  return fmt::format(
      R"({{"kind":"ThingList","items":[{}],"metadata":{{"resourceVersion":"7","continue":"{}"}}}})",
      items, prefix);
}

std::vector<std::string> names_of(const std::vector<ObjectPtr>& items) {
  std::vector<std::string> names;
  names.reserve(items.size());
  for (const ObjectPtr& item : items)
    names.push_back(item->key().name);
  return names;
}

TEST(PageReader, StopsAfterTheItemThatReachesTheBound) {
  const std::string body = page_of("a", 4, 100);
  PageReader reader(body, kThings);
  const std::size_t item_bytes = body.find(R"(,{"metadata")") - body.find(R"({"metadata")");
  const std::size_t begin = body.find(R"({"metadata")");

  // Up to the last byte of the first item, and one byte more.
  EXPECT_EQ(reader.step(begin + item_bytes - 1), false);
  EXPECT_THAT(names_of(reader.items()), ElementsAre("a-0"));
  EXPECT_EQ(reader.step(item_bytes + 2), false);
  EXPECT_THAT(names_of(reader.items()), ElementsAre("a-1", "a-2"));
  EXPECT_EQ(reader.step(body.size()), true);
  EXPECT_THAT(names_of(reader.items()), ElementsAre("a-3"));
  EXPECT_EQ(reader.end().resource_version, "7");
  EXPECT_EQ(reader.end().continue_token, "a");
  EXPECT_EQ(reader.end().item_count, 4U);
}

TEST(PageReader, GivesItemsTheirKindAndKeepsTheirBytes) {
  PageReader reader(
      R"({"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"remainingItemCount":3},)"
      R"("items":[{"metadata":{"name":"a","uid":"1"}},{"metadata":{"name":"b","uid":"2"}}]})"
      "\n",
      kThings);

  ASSERT_EQ(reader.step(1'000), true);
  ASSERT_EQ(reader.items().size(), 2U);
  EXPECT_EQ(reader.items()[1]->text().str(), R"({"kind":"Thing","apiVersion":"example.com/v1",)"
                                             R"("metadata":{"name":"b","uid":"2"}})");
}

TEST(PageReader, ReadsPagesWithoutItems) {
  for (const std::string_view body :
       {R"({"items":null,"metadata":{"resourceVersion":"1"}})", R"({"items":[]})"}) {
    PageReader reader(body, kThings);
    EXPECT_EQ(reader.step(1), true) << body;
    EXPECT_THAT(reader.items(), IsEmpty());
  }
}

TEST(PageReader, RefusesWhatIsNoPage) {
  const std::string whole = page_of("a", 3, 10);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string body = whole.substr(0, size);
    PageReader reader(body, kThings);
    Result<bool> step = false;
    for (int steps = 0; step && !*step; ++steps) {
      ASSERT_LE(steps, 4) << size;
      step = reader.step(1);
    }
    ASSERT_FALSE(step) << size;
    EXPECT_EQ(step.error().kind(), ErrorKind::InvalidInput);
  }
  for (const std::string_view body :
       {"[]", "{}", R"({"kind":"Status","metadata":{}})", R"({"items":{}})", R"({"items":[1]})",
        R"({"items":[{}]})", R"({"metadata":1})", R"({"items":[]}x)"}) {
    EXPECT_FALSE(PageReader(body, kThings).step(100)) << body;
  }
}

class PageReadingTest : public testing::Test {
 protected:
  PageReadingTest() { count_rounds(); }

  // Starts to read a page; `names_` gets its items, and "round" for each round of the loop between.
  void read(std::string body, std::stop_token stop = {},
            std::function<Result<>(const Object&)> on_item = {}) {
    const auto task = [](PageReadingTest& self, std::string text, std::stop_token until,
                         std::function<Result<>(const Object&)> check) -> io::Task<void> {
      Result<PageEnd> end = co_await self.reading_.read(
          std::move(text), kThings, unnamed_consumer(),
          [&self, &check](ObjectPtr item) -> Result<> {
            self.names_.push_back(item->key().name);
            return check ? check(*item) : Result<>();
          },
          std::move(until));
      self.ends_.push_back(std::move(end));
    };
    loop_.spawn(task(*this, std::move(body), std::move(stop), std::move(on_item)));
  }
  void run() {
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
    counter_.cancel();
  }
  // Notes each round of the loop; the timer is due before each slice that waits.
  void count_rounds() {
    counter_ = loop_.after(Duration::zero(), [this] {
      names_.emplace_back("round");
      count_rounds();
    });
  }
  // The names in their order, without rounds.
  [[nodiscard]] std::vector<std::string> items() const {
    std::vector<std::string> items = names_;
    std::erase(items, "round");
    return items;
  }
  [[nodiscard]] bool is_round_between(std::string_view first, std::string_view second) const {
    const auto from = std::ranges::find(names_, first);
    return std::find(from, std::ranges::find(names_, second), "round") !=
           std::ranges::find(names_, second);
  }

  io::Loop loop_;
  io::Loop::Timer counter_;
  PageReading reading_{loop_};
  std::vector<std::string> names_;
  std::vector<Result<PageEnd>> ends_;
};

constexpr std::size_t kHalf = limits::kListSliceBytes / 2;

TEST_F(PageReadingTest, ReadsAShortPageAtOnce) {
  read(page_of("a", 3, kHalf / 2));
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_.front()->continue_token, "a");
  EXPECT_THAT(names_, ElementsAre("a-0", "a-1", "a-2"));
}

TEST_F(PageReadingTest, LetsTheLoopRunBetweenTheSlicesOfALongOne) {
  read(page_of("a", 6, kHalf));
  EXPECT_THAT(names_, ElementsAre("a-0", "a-1"));
  run();

  EXPECT_THAT(items(), ElementsAre("a-0", "a-1", "a-2", "a-3", "a-4", "a-5"));
  EXPECT_TRUE(is_round_between("a-1", "a-2"));
  EXPECT_TRUE(is_round_between("a-3", "a-4"));
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_.front()->item_count, 6U);
}

TEST_F(PageReadingTest, GivesLongPagesOneSliceEachInTurn) {
  read(page_of("a", 6, kHalf));
  read(page_of("b", 6, kHalf));
  run();

  EXPECT_THAT(items(), ElementsAre("a-0", "a-1", "b-0", "b-1", "a-2", "a-3", "b-2", "b-3", "a-4",
                                   "a-5", "b-4", "b-5"));
  EXPECT_TRUE(is_round_between("a-3", "b-2"));
  EXPECT_TRUE(is_round_between("b-3", "a-4"));
}

TEST_F(PageReadingTest, LeavesALongPageToAWorker) {
  io::Workers workers(loop_, 1);
  PageReading reading(loop_, &workers);
  std::vector<std::string> names;
  const auto read = [&](std::string body) {
    return io::run_to_end(loop_, reading.read(std::move(body), kThings, unnamed_consumer(),
                                              [&](ObjectPtr item) -> Result<> {
                                                names.push_back(item->key().name);
                                                if (names.back() == "stop-1") {
                                                  return fail(ErrorKind::LimitExceeded, "enough");
                                                }
                                                return {};
                                              },
                                              {}));
  };
  // An item longer than a slice, which the loop would read at once.
  const auto large = read(page_of("a", 2, 3 * kListSlice));
  ASSERT_TRUE(large) << large.error().message();
  EXPECT_THAT(names, ElementsAre("a-0", "a-1"));
  EXPECT_EQ(large->item_count, 2U);
  EXPECT_EQ(large->continue_token, "a");
  EXPECT_EQ(large->resource_version, "7");

  EXPECT_EQ(read(page_of("stop", 4, kListSlice)).error().message(), "enough");
  EXPECT_EQ(names.back(), "stop-1");
  EXPECT_FALSE(read(page_of("b", 1, kListSlice) + "x"));
  EXPECT_EQ(names.back(), "stop-1");
}

TEST_F(PageReadingTest, LeavesOneLongPageOfEachTenantToTheWorkersAtATime) {
  io::Workers workers(loop_, 1);
  PageReading reading(loop_, &workers);
  std::vector<std::string> names;
  const auto read = [&](const std::string& tenant, std::string name) {
    loop_.spawn([](PageReading& pages, std::vector<std::string>& read_, std::string whose,
                   std::string text) -> io::Task<void> {
      const Result<PageEnd> end =
          co_await pages.read(std::move(text), kThings,
                              {.tenant = Tenant::of_namespace(std::move(whose)), .name = "lister"},
                              [&](ObjectPtr item) -> Result<> {
                                read_.push_back(item->key().name);
                                return {};
                              },
                              {});
      EXPECT_TRUE(end) << end.error().message();
    }(reading, names, tenant, page_of(std::move(name), 1, 3 * kListSlice)));
  };
  read("greedy", "first");
  read("greedy", "second");
  read("greedy", "third");
  read("team", "other");
  run();

  EXPECT_THAT(names, ElementsAre("first-0", "other-0", "second-0", "third-0"));
}

TEST_F(PageReadingTest, EndsBetweenTwoSlicesWhenItIsStopped) {
  std::stop_source stop;
  read(page_of("a", 6, kHalf), stop.get_token());
  read(page_of("b", 6, kHalf));
  stop.request_stop();
  run();

  EXPECT_THAT(items(), ElementsAre("a-0", "a-1", "b-0", "b-1", "b-2", "b-3", "b-4", "b-5"));
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_EQ(ends_.front().error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ(ends_.back()->item_count, 6U);
}

TEST_F(PageReadingTest, EndsWithTheErrorOfWhoTakesTheItems) {
  read(page_of("a", 6, kHalf), {}, [](const Object& item) -> Result<> {
    if (item.key().name != "a-2") return {};
    return fail(ErrorKind::LimitExceeded, "too much");
  });
  read(page_of("b", 3, kHalf));
  run();

  EXPECT_THAT(items(), ElementsAre("a-0", "a-1", "b-0", "b-1", "a-2", "b-2"));
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_EQ(ends_.front().error().message(), "too much");
  EXPECT_TRUE(ends_.back());
}

TEST_F(PageReadingTest, EndsAtAMistakeInALaterSlice) {
  std::string body = page_of("a", 6, kHalf);
  body.resize(body.size() - 3);
  read(std::move(body));
  run();

  ASSERT_EQ(ends_.size(), 1U);
  ASSERT_FALSE(ends_.front());
  EXPECT_EQ(ends_.front().error().kind(), ErrorKind::InvalidInput);
}

TEST(NextPageSize, IsSmallerAfterALargePageOnly) {
  constexpr std::uint64_t kWanted = limits::kListPageBytesWanted;
  EXPECT_EQ(next_page_size(500, 500, kWanted), 500U);
  EXPECT_EQ(next_page_size(500, 500, kWanted + 1), 499U);
  EXPECT_EQ(next_page_size(500, 25, 8 * kWanted), 3U);
  EXPECT_EQ(next_page_size(500, 1, 8 * kWanted), 1U);
  EXPECT_EQ(next_page_size(2, 100, 2 * kWanted), 2U);
  // Without pages there is nothing to ask for.
  EXPECT_EQ(next_page_size(0, 500, 8 * kWanted), 0U);
}

}  // namespace
}  // namespace hangar::kube::internal
