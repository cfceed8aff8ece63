// Which viewers a feed shows a change to, when, and who pays for it.
#include "gateway/feed.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "gateway/authorizer.h"
#include "gateway/feed_memory.h"
#include "gateway/gateway.h"
#include "gateway/limits.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "http/client.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/test_api_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The slice of the feed.
constexpr std::uint64_t kUnits = 8;
constexpr std::size_t kMany = 5 * kUnits;

constexpr std::string_view kEverywhere = "/api/v1/configmaps?watch=true";

// Writes down each call.
class Spectator final : public Feed::Viewer {
 public:
  Spectator(Feed::Window window, std::string name, std::string tenant,
            std::vector<std::string>& happened)
      : Feed::Viewer(std::move(window)),
        name_(std::move(name)),
        tenant_(budget::Tenant::of_namespace(std::move(tenant))),
        happened_(happened) {}

  void on_line(WatchLine line) override {
    happened_.push_back(fmt::format("{} {}", name_, line.object->resource_version()));
    if (on_shown) on_shown();
  }
  void on_progress(std::uint64_t version) override {
    happened_.push_back(fmt::format("{} at {}", name_, version));
  }
  void on_lost(std::uint64_t version) override {
    happened_.push_back(fmt::format("{} lost after {}", name_, version));
  }
  void on_gone() override { happened_.push_back(name_ + " gone"); }
  [[nodiscard]] budget::Tenant tenant() const override { return tenant_; }

  std::function<void()> on_shown;

 private:
  const std::string name_;
  const budget::Tenant tenant_;
  std::vector<std::string>& happened_;
};

std::string change(std::string_view name, std::uint64_t version, std::string_view namespace_ = "ns",
                   std::size_t bytes = 0) {
  return fmt::format(
      R"({{"type":"MODIFIED","object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":)"
      R"({{"namespace":"{}","name":"{}","uid":"u-{}","resourceVersion":"{}"}},)"
      R"("data":{{"text":"{}"}}}}}})"
      "\n",
      namespace_, name, name, version, std::string(bytes, 'x'));
}

// What the first `count` viewers write down.
std::vector<std::string> all_of(std::size_t count, std::string_view what) {
  std::vector<std::string> lines;
  for (std::size_t index = 0; index < count; ++index)
    lines.push_back(fmt::format("{} {}", index, what));
  return lines;
}
std::vector<std::string> operator+(std::vector<std::string> first,
                                   const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A feed of all ConfigMaps, which the tenant `team` has opened. At first there are none, at version
// 100.
class FeedTest : public kube::ApiServerTest {
 protected:
  void SetUp() override {
    feed_->start();
    run_feed_until([this] { return feed_->is_ready(); });
    ASSERT_EQ(feed_->version(), 100U);
  }
  void TearDown() override {
    for (const auto& viewer : viewers_)
      feed_->detach(*viewer);
    viewers_.clear();
    feed_.reset();
    cache_.stop();
    is_serving_ = false;
    pushed_.notify_all();
    ApiServerTest::TearDown();
  }

  // The server sends these events.
  void push(std::string_view events) {
    events_ += events;
    pushed_.notify_all();
  }
  // Checks `done` after each turn of the loop.
  void run_feed_until(const std::function<bool()>& done) {
    run_until([&] {
      cache_.kick("");  // The watch begins again at once, whenever the server has ended it.
      return done();
    });
  }
  // Until the feed has shown its viewers all changes up to `version`. Returns the most calls of
  // viewers in one turn of the loop.
  std::size_t run_until_shown(std::uint64_t version) {
    std::size_t most = 0;
    std::size_t before = happened_.size();
    run_feed_until([&] {
      most = std::max(most, happened_.size() - std::exchange(before, happened_.size()));
      return feed_->version() >= version && feed_->has_shown_all();
    });
    return most;
  }
  // Until some of kMany viewers have been shown a change, and others have not.
  void run_into_the_middle() {
    const std::size_t before = happened_.size();
    run_feed_until([&] { return happened_.size() > before; });
    ASSERT_LT(happened_.size() - before, kMany);
    ASSERT_FALSE(feed_->has_shown_all());
  }
  void add_many(const std::string& tenant = "team", std::size_t count = kMany) {
    for (std::size_t index = 0; index < count; ++index)
      add_viewer(tenant);
  }

  // A viewer that is not attached yet. Its name is its index.
  Spectator& make_viewer(const std::string& tenant = "team",
                         std::string_view target = kEverywhere) {
    const Result<RequestTarget> parsed = parse_target("GET", target);
    std::optional<AuthorizedScope> authorized;
    loop_.spawn(authorize(*ReadScope::of(*parsed), authorized));
    run_until([&] { return authorized.has_value(); });
    auto window = feed_->open(*std::move(authorized));
    EXPECT_TRUE(window.has_value());
    return *viewers_.emplace_back(std::make_shared<Spectator>(
        *std::move(window), std::to_string(viewers_.size()), tenant, happened_));
  }
  // As a watch does it that has read the history.
  void attach(const Spectator& viewer) { attach(viewer, feed_->history().version()); }
  void attach(const Spectator& viewer, std::uint64_t seen) {
    for (const auto& one : viewers_)
      if (one.get() == &viewer) feed_->attach(one, seen);
  }
  Spectator& add_viewer(const std::string& tenant = "team", std::string_view target = kEverywhere) {
    Spectator& viewer = make_viewer(tenant, target);
    attach(viewer);
    return viewer;
  }
  [[nodiscard]] Duration paid_by(const std::string& tenant) const {
    return rates_.use_of(budget::Tenant::of_namespace(tenant), io::Loop::now()).total;
  }

  std::vector<std::string> happened_;  // All calls of viewers.
  std::vector<std::shared_ptr<Spectator>> viewers_;

 private:
  io::Task<void> authorize(ReadScope scope, std::optional<AuthorizedScope>& authorized) {
    Result<std::optional<AuthorizedScope>> allowed =
        co_await authorizer_.authorize(kube::Identity(), std::move(scope), {});
    if (allowed) authorized = *std::move(allowed);
  }
  io::Task<http::Response> answer(http::ServerRequest request) override {
    if (!request.path.ends_with("/configmaps")) co_return http::Response{.status = 404};
    if (request.query.contains("sendInitialEvents")) {
      co_return json(
          R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}})"
          "\n");
    }
    // This server sends only whole answers: the events that it has, then the watch ends.
    while (is_serving_ && events_.empty())
      (void)co_await pushed_.wait({});
    co_return json(std::exchange(events_, {}));
  }

  // Objects are kept as they are, so that their size is known.
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  const kube::Client client_ = client();
  kube::Cache cache_{loop_, client_, metrics_, Log(),
                     kube::Cache::Options{.packing = {.kind_min = kNever, .text_min = kNever}}};
  Authorizer authorizer_{client_};
  OwnWrites own_writes_{metrics_};
  budget::Rates rates_;
  std::string events_;
  bool is_serving_ = true;
  io::Event pushed_{loop_};

 protected:
  const std::shared_ptr<budget::Accounts> accounts_ =
      std::make_shared<budget::Accounts>(budget::Accounts::Limits());
  std::shared_ptr<Feed> feed_ = std::make_shared<Feed>(
      loop_, io::SharedSlice(loop_, kUnits), cache_, own_writes_,
      kube::Scope{.resource = {"", "v1", "configmaps", "ConfigMap", true}},
      metrics_.counter("shown", "Lines that were shown."),
      std::make_shared<FeedMemory>(
          accounts_,
          budget::Consumer{.tenant = budget::Tenant::of_namespace("team"), .name = "feeds"},
          "configmaps"),
      &rates_);
};

TEST_F(FeedTest, ShowsEachChangeToThoseWhomItConcernsInTheOrderInWhichTheyCame) {
  add_viewer();
  add_viewer("team", "/api/v1/namespaces/ns/configmaps?watch=true");
  add_viewer("team", "/api/v1/namespaces/other/configmaps?watch=true");
  add_viewer();

  push(change("a", 101) + change("b", 102, "other"));
  run_until_shown(102);

  EXPECT_THAT(happened_, ElementsAre("0 101", "1 101", "3 101", "0 102", "2 102", "3 102"));
}

TEST_F(FeedTest, ShowsNoChangeThatTheViewerHasSeen) {
  add_viewer();
  attach(make_viewer(), 101);

  push(change("a", 101) + change("a", 102));
  run_until_shown(102);

  EXPECT_THAT(happened_, ElementsAre("0 101", "0 102", "1 102"));
}

TEST_F(FeedTest, ShowsNothingToAViewerThatACallOfAnEarlierOneDetaches) {
  Spectator& first = add_viewer();
  add_viewer();
  add_viewer();
  first.on_shown = [this] { feed_->detach(*viewers_[1]); };

  push(change("a", 101));
  run_until_shown(101);

  EXPECT_THAT(happened_, ElementsAre("0 101", "2 101"));
}

TEST_F(FeedTest, ShowsAViewerThatIsAttachedMeanwhileOnlyLaterChanges) {
  Spectator& first = add_viewer();
  add_viewer();
  const Spectator& late = make_viewer();
  first.on_shown = [this, &late] {
    if (!late.is_attached()) attach(late);
  };

  push(change("a", 101) + change("a", 102));
  run_until_shown(102);

  EXPECT_THAT(happened_, ElementsAre("0 101", "1 101", "0 102", "1 102", "2 102"));
}

TEST_F(FeedTest, TellsViewersHowFarTheyAreWhenItIsCaredFor) {
  add_viewer();
  push(change("a", 101));
  run_until_shown(101);
  EXPECT_THAT(happened_, ElementsAre("0 101"));

  feed_->on_care();

  EXPECT_THAT(happened_, ElementsAre("0 101", "0 at 101"));
}

TEST_F(FeedTest, ChargesAChangeInEqualPartsToTheTenantsThatItConcerns) {
  add_viewer("a");
  add_viewer("b");
  add_viewer("c", "/api/v1/namespaces/other/configmaps?watch=true");

  push(change("a", 101));
  run_until_shown(101);

  EXPECT_GT(paid_by("a"), Duration::zero());
  EXPECT_EQ(paid_by("a"), paid_by("b"));
  EXPECT_EQ(paid_by("c"), Duration::zero());
  EXPECT_EQ(paid_by("team"), Duration::zero());
}

TEST_F(FeedTest, ChargesItsPayerWithAChangeThatConcernsNobody) {
  add_viewer("c", "/api/v1/namespaces/other/configmaps?watch=true");

  push(change("a", 101));
  run_until_shown(101);

  EXPECT_GT(paid_by("team"), Duration::zero());
  EXPECT_EQ(paid_by("c"), Duration::zero());
  EXPECT_THAT(happened_, IsEmpty());
}

TEST_F(FeedTest, EndsWhereNobodyWhoWatchesCanPay) {
  accounts_->limit_tenants({.namespaces = {{"poor", {.bytes_max = 1}}}});
  push(change("a", 101, "ns", kFeedCountedStep));
  run_until_shown(101);
  add_viewer("poor");
  add_viewer("poor");

  feed_->on_care();

  EXPECT_THAT(happened_, ElementsAre("0 gone", "1 gone"));
  EXPECT_FALSE(feed_->is_ready());
  ASSERT_TRUE(feed_->error().has_value());
  EXPECT_EQ(feed_->error()->kind(), ErrorKind::Unavailable);
}

TEST_F(FeedTest, ShowsAChangeToManyViewersInSeveralTurns) {
  add_many();

  push(change("a", 101));
  const std::size_t most = run_until_shown(101);

  EXPECT_LE(most, kUnits);
  EXPECT_EQ(happened_, all_of(kMany, "101"));
}

TEST_F(FeedTest, ShowsAChangeThatComesMeanwhileAfterTheFirst) {
  add_many();

  push(change("a", 101) + change("b", 102));
  const std::size_t most = run_until_shown(102);

  EXPECT_LE(most, kUnits);
  EXPECT_EQ(happened_, all_of(kMany, "101") + all_of(kMany, "102"));
}

TEST_F(FeedTest, ShowsNothingMoreToAViewerThatLeavesInTheMiddle) {
  add_many();
  push(change("a", 101));
  run_into_the_middle();

  feed_->detach(*viewers_.front());
  feed_->detach(*viewers_.back());
  viewers_.pop_back();
  push(change("a", 102));
  run_until_shown(102);

  std::vector<std::string> second = all_of(kMany - 1, "102");
  second.erase(second.begin());
  EXPECT_EQ(happened_, all_of(kMany - 1, "101") + second);
}

TEST_F(FeedTest, ShowsAViewerThatJoinsInTheMiddleOnlyLaterChanges) {
  add_many();
  push(change("a", 101));
  run_into_the_middle();

  add_viewer();
  push(change("a", 102));
  run_until_shown(102);

  EXPECT_EQ(happened_, all_of(kMany, "101") + all_of(kMany + 1, "102"));
}

TEST_F(FeedTest, ShowsAViewerThatLeavesAndJoinsAgainInTheMiddleOnlyLaterChanges) {
  add_many();
  push(change("a", 101));
  run_into_the_middle();

  feed_->detach(*viewers_.back());
  attach(*viewers_.back());
  push(change("a", 102));
  run_until_shown(102);

  EXPECT_EQ(happened_, all_of(kMany - 1, "101") + all_of(kMany, "102"))
      << "the history has told it of the first";
}

TEST_F(FeedTest, ShowsNothingMoreWhenItFailsInTheMiddle) {
  accounts_->limit_tenants({.namespaces = {{"poor", {.bytes_max = 1}}}});
  push(change("a", 101, "ns", kFeedCountedStep));
  run_until_shown(101);
  add_many("poor");
  push(change("b", 102) + change("b", 103));
  run_into_the_middle();
  const std::size_t shown = happened_.size();

  feed_->on_care();
  run_feed_until([this] { return feed_->has_shown_all(); });

  EXPECT_FALSE(feed_->is_ready());
  EXPECT_EQ(happened_, all_of(shown, "102") + all_of(kMany, "gone"));
  EXPECT_GT(paid_by("poor"), Duration::zero()) << "for the part that was shown";
}

TEST_F(FeedTest, TellsViewersHowFarTheyAreAfterAllHaveBeenShownTheChange) {
  add_many();
  push(change("a", 101));
  run_into_the_middle();

  feed_->on_care();
  run_until_shown(101);

  EXPECT_EQ(happened_, all_of(kMany, "101") + all_of(kMany, "at 101"));
}

TEST_F(FeedTest, ChargesAChangeOnceWhenAllHaveBeenShownIt) {
  add_many("a");
  add_many("b");
  push(change("a", 101));
  run_into_the_middle();
  EXPECT_EQ(paid_by("a"), Duration::zero());

  run_until_shown(101);

  EXPECT_GT(paid_by("a"), Duration::zero());
  EXPECT_EQ(paid_by("a"), paid_by("b")) << "whose viewers came later";
}

// The API server's stream cannot be slowed down.
TEST_F(FeedTest, ShowsChangesAtOnceBeyondTheBytesThatMayWait) {
  constexpr std::size_t kViewers = 500 * kUnits;
  constexpr std::size_t kBytes = limits::kMiB;
  // Each has the state before, too.
  constexpr std::uint64_t kChanges = 2 * limits::kGatewayUnshownBytesMax / (2 * kBytes);
  add_many("team", kViewers);

  std::string events;
  std::vector<std::string> expected;
  for (std::uint64_t version = 101; version <= 100 + kChanges; ++version) {
    events += change("a", version, "ns", kBytes);
    expected = std::move(expected) + all_of(kViewers, std::to_string(version));
  }
  push(events);
  const std::size_t most = run_until_shown(100 + kChanges);

  EXPECT_GT(most, kUnits) << "not all of them have waited";
  EXPECT_TRUE(happened_ == expected) << "each viewer was shown each, in order";
}

}  // namespace
}  // namespace hangar::gateway
