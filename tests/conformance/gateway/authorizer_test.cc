// How many reviews the host asks an API server for at a time, and for whom: a test server on
// loopback counts them.
#include "gateway/authorizer.h"

#include "base/log.h"
#include "base/result.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "http/client.h"
#include "http/server.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/client.h"
#include "testing/session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using std::chrono::milliseconds;
using Answer = Result<std::optional<AuthorizedScope>>;

// Longer than what is remembered.
const std::string kLong(3000, 'x');

class AuthorizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    session_.emplace(kube::Login{.cluster = {.server = "http://127.0.0.1:1"}});
    server_.emplace(session_->loop, http::ServerOptions{},
                    [this](http::ServerRequest request) -> io::Task<http::Response> {
                      reviews_.push_back(request.body);
                      most_ = std::max(most_, ++under_way_);
                      (void)co_await session_->loop.sleep(milliseconds(5), {});
                      --under_way_;
                      co_return http::Response{.status = 201,
                                               .body = R"({"status":{"allowed":true}})"};
                    });
    ASSERT_TRUE(server_->start().has_value());
    client_.emplace(
        session_->loop, session_->http,
        std::make_shared<kube::Credentials>(
            session_->loop,
            kube::Login{.cluster = {.server = fmt::format("http://127.0.0.1:{}", server_->port())},
                        .user = {.token = "t"}},
            Log()),
        session_->metrics, Log(), kube::ClientOptions());
    authorizer_.emplace(*client_);
  }
  void TearDown() override {
    authorizer_.reset();
    client_.reset();
    server_.reset();
    session_->loop.run_until([this] { return session_->loop.spawned_count() == 0; });
  }

  static ReadScope scope(const std::string& namespace_, const std::string& selector) {
    const auto target = parse_target(
        "GET", fmt::format("/api/v1/namespaces/{}/configmaps?watch=true&labelSelector=l%3D{}",
                           namespace_, selector));
    return ReadScope::of(target.value()).value();
  }
  // `selector` is divided into values that a label may have.
  io::Task<Answer> ask(const std::string& namespace_, const std::string& selector) {
    std::string terms = selector.substr(0, 60);
    for (std::size_t at = 60; at < selector.size(); at += 120)
      terms += fmt::format(",k{}!%3D{}", at, selector.substr(at, 60));
    return authorizer_->authorize(kube::service_account(namespace_, "guest"),
                                  scope(namespace_, terms), {});
  }

  // Reviews the right of an open watch again.
  io::Task<void> recheck() {
    const auto allowed = co_await authorizer_->allows(kube::service_account("a", "guest"),
                                                      scope("a", "n99").attributes(), {});
    EXPECT_TRUE(allowed && *allowed);
    asked_when_rechecked_ = reviews_.size();
  }

  std::optional<testing::Session> session_;
  std::optional<http::Server> server_;
  std::optional<kube::Client> client_;
  std::optional<Authorizer> authorizer_;
  std::vector<std::string> reviews_;
  std::size_t under_way_ = 0;
  std::size_t most_ = 0;
  std::optional<std::size_t> asked_when_rechecked_;
};

TEST_F(AuthorizerTest, SharesAReviewThatIsUnderWayHoweverLongItsQuestion) {
  std::vector<io::Task<Answer>> tasks;
  for (int index = 0; index < 100; ++index)
    tasks.push_back(ask("a", kLong));

  for (const Answer& answer : session_->run_all(std::move(tasks)))
    EXPECT_TRUE(answer && *answer);
  ASSERT_EQ(reviews_.size(), 1U);
  EXPECT_GT(reviews_.front().size(), 1024U);
  // It is not kept.
  EXPECT_TRUE(session_->run(ask("a", kLong)).has_value());
  EXPECT_EQ(reviews_.size(), 2U);
}

TEST_F(AuthorizerTest, AsksForATenantInItsSlotsOnly) {
  std::vector<io::Task<Answer>> tasks;
  for (int index = 0; index < 200; ++index)
    tasks.push_back(ask("a", fmt::format("n{}{}", index, kLong)));

  for (const Answer& answer : session_->run_all(std::move(tasks)))
    EXPECT_TRUE(answer && *answer);
  EXPECT_EQ(reviews_.size(), 200U);
  EXPECT_EQ(most_, kReviewsPerTenantMax);
}

TEST_F(AuthorizerTest, RefusesATenantThatHasTooManyReviewsWaitingAndNobodyElse) {
  constexpr std::size_t kFits = kReviewsPerTenantMax + kReviewsWaitingPerTenantMax;
  std::vector<io::Task<Answer>> tasks;
  for (std::size_t index = 0; index < kFits + 10; ++index)
    tasks.push_back(ask("a", fmt::format("n{}", index)));
  tasks.push_back(ask("b", "x"));

  const std::vector<Answer> answers = session_->run_all(std::move(tasks));

  std::size_t refused = 0;
  for (const Answer& answer : answers)
    if (!answer && answer.error().kind() == ErrorKind::LimitExceeded) ++refused;
  EXPECT_EQ(refused, 10U);
  EXPECT_TRUE(answers.back().has_value());
  // Not behind all that the other asked for.
  const auto other = std::ranges::find_if(
      reviews_, [](const std::string& review) { return review.contains(R"("namespace":"b")"); });
  EXPECT_LE(other - reviews_.begin(), 3 * static_cast<std::ptrdiff_t>(kReviewsPerTenantMax));
}

TEST_F(AuthorizerTest, ReviewsOfOpenWatchesDoNotWaitForTheTenants) {
  std::vector<io::Task<Answer>> tasks;
  for (std::size_t index = 0; index < 100; ++index)
    tasks.push_back(ask("a", fmt::format("n{}", index)));
  session_->loop.spawn(recheck());

  (void)session_->run_all(std::move(tasks));

  ASSERT_TRUE(asked_when_rechecked_.has_value());
  EXPECT_LT(*asked_when_rechecked_, 50U);
}

}  // namespace
}  // namespace hangar::gateway
