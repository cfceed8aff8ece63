#include "kube/discovery.h"

#include "base/consumer.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "kube/test_api_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::kube {
namespace {

Consumer consumer(const std::string& namespace_, std::string name = "one") {
  return {.tenant = Tenant::of_namespace(namespace_), .name = std::move(name)};
}

// The server serves the kind Thing of real.io; it answers nothing about groups whose names begin
// with "held" until let_go().
class DiscoveryTest : public ApiServerTest {
 protected:
  using Found = std::optional<Result<Resource>>;

  void TearDown() override {
    let_go();
    run_until([this] { return ended() == found_.size(); });
    discovery_.reset();
    ApiServerTest::TearDown();
  }

  // Starts to look for the kind Thing.
  std::shared_ptr<Found> find(const std::string& group, Consumer whose, std::stop_token stop = {}) {
    auto found = std::make_shared<Found>();
    found_.push_back(found);
    loop_.spawn(find_into(found, GroupKind{group, "Thing"}, std::move(whose), std::move(stop)));
    return found;
  }
  std::shared_ptr<Found> find(GroupVersionResource named) {
    auto found = std::make_shared<Found>();
    found_.push_back(found);
    loop_.spawn(find_resource_into(found, std::move(named)));
    return found;
  }
  void let_go() {
    is_holding_ = false;
    let_go_.notify_all();
  }
  [[nodiscard]] std::size_t asked(const std::string& group) const {
    return static_cast<std::size_t>(std::ranges::count(asked_, "/apis/" + group));
  }
  [[nodiscard]] std::size_t ended() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(found_, [](const auto& one) { return one->has_value(); }));
  }

  std::optional<Discovery> discovery_{client()};
  std::vector<std::string> asked_;  // Paths, in order.

 private:
  io::Task<void> find_into(std::shared_ptr<Found> found, GroupKind kind, Consumer whose,
                           std::stop_token stop) {
    *found = co_await discovery_->find(std::move(kind), std::move(whose), std::move(stop));
  }
  io::Task<void> find_resource_into(std::shared_ptr<Found> found, GroupVersionResource named) {
    *found = co_await discovery_->find(std::move(named), consumer("team"), {});
  }
  io::Task<http::Response> answer(http::ServerRequest request) override {
    asked_.push_back(request.path);
    if (request.path == "/apis") co_return json(R"({"kind":"APIGroupList","groups":[]})");
    if (is_holding_ && request.path.starts_with("/apis/held")) (void)co_await let_go_.wait({});
    if (request.path.ends_with(".real.io") || request.path == "/apis/real.io") {
      co_return json(R"({"kind":"APIGroup","versions":[{"version":"v1"}]})");
    }
    if (request.path.ends_with("real.io/v1")) {
      co_return json(R"({"resources":[{"name":"things","kind":"Thing","namespaced":true}]})");
    }
    co_return http::Response{.status = 404, .body = "404 page not found"};
  }
  bool is_holding_ = true;
  io::Event let_go_{loop_};
  std::vector<std::shared_ptr<Found>> found_;
};

TEST_F(DiscoveryTest, HoldsNoTenantUpForTheInventedGroupsOfAnother) {
  for (int index = 0; index < 200; ++index)
    find(fmt::format("none{}.io", index), consumer("attacker"));
  const auto found = find("real.io", consumer("victim"));

  run_until([&] { return found->has_value(); });

  EXPECT_TRUE(**found) << (*found)->error().message();
  EXPECT_LT(asked_.size(), 30U) << "of 200 that the attacker waits for";
}

TEST_F(DiscoveryTest, HoldsNoTenantUpForAGroupWhoseServerHangs) {
  for (int index = 0; index < 50; ++index)
    find(fmt::format("held{}.io", index), consumer("attacker"));
  const auto found = find("real.io", consumer("victim"));

  run_until([&] { return found->has_value(); });

  EXPECT_TRUE(**found);
  EXPECT_EQ(asked("held0.io") + asked("held1.io"), 2U);
  EXPECT_EQ(asked("held2.io"), 0U) << "a tenant asks for two groups at a time";
}

TEST_F(DiscoveryTest, EndsEachWaitWhenItsStopIsRequested) {
  std::stop_source stop;
  const auto first = find("held.real.io", consumer("team"));
  const auto other = find("held2.real.io", consumer("team"));
  const auto joined = find("held.real.io", consumer("team"), stop.get_token());
  const auto queued = find("held3.real.io", consumer("team"), stop.get_token());
  run_until([&] { return asked("held.real.io") == 1 && asked("held2.real.io") == 1; });

  stop.request_stop();
  run_until([&] { return joined->has_value() && queued->has_value(); });

  EXPECT_EQ((*joined)->error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ((*queued)->error().kind(), ErrorKind::Cancelled);
  EXPECT_FALSE(first->has_value() || other->has_value());
  let_go();
  run_until([&] { return first->has_value() && other->has_value(); });
  EXPECT_TRUE(**first && **other);
  EXPECT_EQ(asked("held3.real.io"), 0U);
}

TEST_F(DiscoveryTest, AsksOnceForAllThatLookForAGroup) {
  std::stop_source stop;
  const auto first = find("held.real.io", consumer("first"), stop.get_token());
  std::vector<std::shared_ptr<Found>> others;
  for (int index = 0; index < 10; ++index)
    others.push_back(find("held.real.io", consumer(fmt::format("team{}", index))));
  run_until([&] { return asked("held.real.io") == 1; });

  stop.request_stop();
  run_until([&] { return first->has_value(); });
  let_go();
  run_until([&] { return ended() == 11; });

  EXPECT_EQ((*first)->error().kind(), ErrorKind::Cancelled);
  for (const auto& other : others)
    EXPECT_TRUE(**other) << "the request goes on without its first caller";
  EXPECT_EQ(asked("held.real.io"), 1U);
}

TEST_F(DiscoveryTest, AsksAgainAfterARequestThatAllItsCallersHaveLeft) {
  std::stop_source stop;
  const auto left = find("held.real.io", consumer("team"), stop.get_token());
  run_until([&] { return asked("held.real.io") == 1; });
  stop.request_stop();
  run_until([&] { return left->has_value(); });
  const auto found = find("held.real.io", consumer("team"));
  run_until([&] { return asked("held.real.io") == 2; });

  let_go();
  run_until([&] { return found->has_value(); });

  EXPECT_EQ((*left)->error().kind(), ErrorKind::Cancelled);
  EXPECT_TRUE(**found);
}

TEST_F(DiscoveryTest, RefusesAConsumerOfWhichTooManyWaitAndNoOther) {
  for (int index = 0; index < 300; ++index)
    find(fmt::format("held{}.io", index), consumer("team", "many"));
  const auto other = find("held300.io", consumer("team", "other"));
  run_until([&] { return ended() == 42; });

  const auto late = find("held301.io", consumer("team", "many"));
  run_until([&] { return late->has_value(); });

  EXPECT_EQ((*late)->error().kind(), ErrorKind::LimitExceeded);
  EXPECT_FALSE(other->has_value());
}

TEST_F(DiscoveryTest, AsksForAGroupNotEachTimeForAVersionThatItLacks) {
  const auto found = find("real.io", consumer("team"));
  run_until([&] { return found->has_value(); });

  for (int index = 0; index < 100; ++index) {
    const auto none = find({"real.io", fmt::format("v{}", 900 + index), "things"});
    run_until([&] { return none->has_value(); });
    EXPECT_EQ((*none)->error().kind(), ErrorKind::NotFound);
  }
  const auto served = find({"real.io", "v1", "things"});
  run_until([&] { return served->has_value(); });

  EXPECT_TRUE(**served);
  EXPECT_LT(asked("real.io"), 50U);
}

TEST_F(DiscoveryTest, AsksForNothingThatIsNotTheNameOfAGroup) {
  for (const std::string& name :
       {std::string("a/b"), std::string("%2e"), std::string(".."), std::string(254, 'a')}) {
    const auto found = find(name, consumer("team"));
    run_until([&] { return found->has_value(); });
    EXPECT_EQ((*found)->error().kind(), ErrorKind::NotFound);
  }
  EXPECT_EQ(asked_, std::vector<std::string>{"/apis"});
}

}  // namespace
}  // namespace hangar::kube
