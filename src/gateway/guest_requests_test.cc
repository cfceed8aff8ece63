// What requests of guests cost the host and other namespaces.
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "gateway/feeds.h"
#include "gateway/gateway.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "gateway/tenant_bounds.h"
#include "http/client.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "kube/test_api_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using testing::ElementsAre;

class Guest final : public Answer {
 public:
  void on_progress(std::uint64_t bytes) override {
    most_under_way = std::max(most_under_way, bytes);
  }
  void on_head(int code, http::Headers) override { status = code; }
  void on_piece(Piece) override {}
  void on_bookmark(std::string) override {}
  void on_end() override { has_ended = true; }

  int status = 0;
  bool has_ended = false;
  std::uint64_t most_under_way = 0;
  std::unique_ptr<Exchange> exchange;
};

constexpr std::size_t kHalfLineBytes = 1000;

// The server allows everything. It serves the kinds Thing and Known of real.io in version v1, and
// answers no request for their objects until the test ends: only, that there is nothing of Known at
// version 100.
class GuestRequestsTest : public kube::ApiServerTest {
 protected:
  void TearDown() override {
    guests_.clear();
    stop_.request_stop();
    gateway_.reset();
    feeds_.clear();
    cache_.stop();
    is_holding_ = false;
    let_go_.notify_all();
    ApiServerTest::TearDown();
  }

  Guest& begin(const std::string& namespace_, std::string target) {
    Guest& guest = *guests_.emplace_back(std::make_unique<Guest>());
    guest.exchange = gateway_->begin(kube::service_account(namespace_, "guest"),
                                     {.method = "GET", .target = std::move(target)}, guest);
    return guest;
  }
  // Returns its status.
  int ask(const std::string& namespace_, std::string target) {
    const Guest& guest = begin(namespace_, std::move(target));
    run_until([&guest] { return guest.has_ended; });
    return guest.status;
  }
  // Opens a feed of all objects of the kind.
  void open_feed(const std::string& plural, const std::string& namespace_) {
    const Result<RequestTarget> target =
        parse_target("GET", fmt::format("/apis/real.io/v1/{}?watch=true", plural));
    loop_.spawn(open({.group = "real.io", .version = "v1", .plural = plural, .kind = "Thing"},
                     *ReadScope::of(*target), namespace_));
  }
  Result<kube::Resource> find_thing() {
    std::optional<Result<kube::Resource>> found;
    loop_.spawn(find_into(found));
    run_until([&found] { return found.has_value(); });
    return *std::move(found);
  }
  // The requests whose path ends so.
  [[nodiscard]] std::size_t asked(std::string_view end) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(asked_, [end](const auto& path) { return path.ends_with(end); }));
  }

  [[nodiscard]] std::size_t exact_lists() const { return exact_lists_; }
  [[nodiscard]] Gateway::Use use_of(const std::string& namespace_) const {
    return gateway_->use_of(namespace_);
  }
  // All guests but the first cancel their requests.
  void leave_the_first() { guests_.resize(1); }

 private:
  io::Task<void> open(kube::Resource resource, ReadScope scope, std::string tenant) {
    (void)co_await feeds_.open(std::move(resource), scope, std::move(tenant), stop_.get_token());
  }
  io::Task<void> find_into(std::optional<Result<kube::Resource>>& found) {
    found = co_await discovery_.find(kube::GroupVersionResource{"real.io", "v1", "things"},
                                     {.tenant = budget::Tenant::of_namespace("other")}, {});
  }
  io::Task<http::Response> answer(http::ServerRequest request) override {
    const std::string_view path = request.path;
    asked_.push_back(request.path);
    if (path.ends_with("reviews")) co_return json(R"({"status":{"allowed":true}})");
    if (path == "/apis") co_return json(R"({"kind":"APIGroupList","groups":[]})");
    if (path == "/apis/real.io") {
      co_return json(R"({"kind":"APIGroup","versions":[{"version":"v1"}]})");
    }
    if (path == "/apis/real.io/v1") {
      co_return json(R"({"resources":[{"name":"things","kind":"Thing","namespaced":true},)"
                     R"({"name":"known","kind":"Known","namespaced":true}]})");
    }
    if (path == "/version") co_return json(R"({"major":"1"})");
    if (!path.starts_with("/apis/real.io/v1/")) {
      co_return http::Response{.status = 404, .body = "404 page not found"};
    }
    if (path.ends_with("/known") && request.query.contains("sendInitialEvents")) {
      co_return json(
          R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}})"
          "\n");
    }
    if (path.ends_with("/half")) co_return json(std::string(kHalfLineBytes, 'x'));
    if (request.query.contains("Exact")) ++exact_lists_;
    while (is_holding_)
      (void)co_await let_go_.wait({});
    co_return http::Response{.status = 503, .body = "stopping"};
  }

  const kube::Client client_ = client();
  kube::Cache cache_{loop_, client_, metrics_, Log()};
  kube::Discovery discovery_{client_};
  OwnWrites own_writes_{metrics_};
  Feeds feeds_{loop_, cache_, own_writes_, metrics_,
               std::make_shared<budget::Accounts>(budget::Accounts::Limits())};
  std::optional<Gateway> gateway_{Gateway::Parts{.loop = loop_,
                                                 .client = client_,
                                                 .cache = cache_,
                                                 .discovery = discovery_,
                                                 .metrics = metrics_,
                                                 .log = Log()}};
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<std::string> asked_;  // Paths, in order.
  std::size_t exact_lists_ = 0;
  std::stop_source stop_;
  bool is_holding_ = true;
  io::Event let_go_{loop_};
};

TEST_F(GuestRequestsTest, ArePaidForByTheNamespaceOfTheGuest) {
  std::set<std::string> payers;
  loop_.set_on_work([&payers](const budget::Tenant& payer, Duration took) {
    if (took > Duration::zero()) payers.insert(std::string(payer.namespace_name()));
  });

  EXPECT_EQ(ask("team", "/version"), 200);

  EXPECT_THAT(payers, ElementsAre("team"));
}

// Guests choose the version. The lookups of all namespaces would wait for the group to be read.
TEST_F(GuestRequestsTest, ForVersionsThatDoNotExistDoNotMakeTheHostReadTheGroupAgain) {
  ASSERT_TRUE(find_thing());
  const std::size_t before = asked("/apis/real.io");
  const Instant began = io::Loop::now();

  for (int version = 900; version < 905; ++version) {
    EXPECT_EQ(
        ask("team", fmt::format("/apis/real.io/v{}/namespaces/team/things?watch=true", version)),
        404);
  }
  EXPECT_TRUE(find_thing());

  // A group that lacks something is read once a second.
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(io::Loop::now() - began);
  EXPECT_LE(asked("/apis/real.io") - before, 1 + static_cast<std::size_t>(seconds.count()));
}

TEST_F(GuestRequestsTest, StartAFeedInTheFirstSlotOfAllNamespacesThatWantIt) {
  for (std::size_t index = 0; index < kFeedStartsPerTenantMax; ++index)
    open_feed(fmt::format("held{}", index), "busy");
  run_until([this] { return asked("held0") == 1 && asked("held1") == 1; });
  open_feed("shared", "busy");
  open_feed("more", "busy");

  open_feed("shared", "other");
  run_until([this] { return asked("shared") == 1; });

  EXPECT_EQ(asked("more"), 0U) << "the busy namespace has no slot";
}

// The API server serves them like paths without the slash, which may be watches, or pods that never
// answer.
TEST_F(GuestRequestsTest, OfPathsThatEndWithASlashTakeNoSlots) {
  constexpr std::size_t kCount = kUpstreamRequestsPerTenantMax + 1;
  for (std::size_t index = 0; index < kCount; ++index)
    begin("busy", "/apis/real.io/v1/namespaces/busy/things/?watch=true");

  run_until([this] { return asked("/things/") == kCount; });

  EXPECT_EQ(use_of("busy").upstream_requests, 0U);
  EXPECT_EQ(use_of("busy").own_watches, kCount);
}

TEST_F(GuestRequestsTest, TellHowMuchOfALineHasArrived) {
  const Guest& guest =
      begin("team", "/apis/real.io/v1/namespaces/team/half?watch=true&fieldSelector=a%3Db");

  run_until([&guest] { return guest.has_ended; });

  EXPECT_EQ(guest.status, 200);
  EXPECT_GE(guest.most_under_way, kHalfLineBytes);
}

// A guest may begin and cancel as many as it likes while one waits for the API server.
TEST_F(GuestRequestsTest, ThatCatchUpOneByOneEndWhenTheyAreCancelled) {
  constexpr std::size_t kCount = 50;
  const std::string old = "/apis/real.io/v1/namespaces/team/known?watch=true&resourceVersion=5";
  begin("team", old);
  run_until([this] { return exact_lists() == 1; });
  const std::size_t before = loop_.spawned_count();
  for (std::size_t index = 0; index < kCount; ++index)
    begin("team", old);
  run_until([&] { return loop_.spawned_count() >= before + kCount; });

  leave_the_first();

  run_until([&] { return loop_.spawned_count() < before + kCount / 2; });
  EXPECT_EQ(exact_lists(), 1U);
}

}  // namespace
}  // namespace hangar::gateway
