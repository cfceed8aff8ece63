#include "ops/endpoints.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::ops {
namespace {

using testing::HasSubstr;

class EndpointsTest : public testing::Test {
 protected:
  EndpointsTest() {
    endpoints_.add_check("leader", [this] { return leader_; });
    endpoints_.add_check("cache", [] { return Result<>(); });
    EXPECT_TRUE(endpoints_.listen("127.0.0.1:0").has_value());
  }
  ~EndpointsTest() override {
    loop_.spawn(endpoints_.stop());
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }

  http::Response ask(std::string_view target, std::string method = "GET", std::uint16_t port = 0) {
    http::Request request = {
        .method = std::move(method),
        .url = fmt::format("http://127.0.0.1:{}{}", port == 0 ? endpoints_.port() : port, target),
        .transport = std::make_shared<const http::Transport>(http::Transport{.direct = true})};
    return io::run_to_end(loop_, client_.send(std::move(request), {})).value();
  }

  // All except the fixture's own server, which still accepts.
  [[nodiscard]] bool connections_are_over() const { return loop_.spawned_count() <= 1; }

  io::Loop loop_;
  Metrics metrics_;
  http::Client client_{loop_};
  Result<> leader_;
  Endpoints endpoints_{loop_, loop_, metrics_, Log()};
};

TEST_F(EndpointsTest, IsHealthyAndReadyInTheWordsOfKubernetes) {
  for (const std::string_view path : {"/healthz", "/livez", "/readyz", "/readyz/leader"}) {
    const http::Response response = ask(path);

    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.body, "ok") << path;
    EXPECT_EQ(http::find_header(response.headers, "content-type"), "text/plain; charset=utf-8");
  }
  EXPECT_EQ(ask("/readyz?verbose").body, "[+]leader ok\n[+]cache ok\nreadyz check passed\n");
}

TEST_F(EndpointsTest, IsNotReadyWhileACheckFails) {
  leader_ = fail(ErrorKind::Unavailable, "no lease");

  EXPECT_EQ(ask("/readyz").status, 500);
  EXPECT_EQ(ask("/readyz").body, "[-]leader failed: no lease\n[+]cache ok\nreadyz check failed\n");
  EXPECT_EQ(ask("/readyz/leader").status, 500);
  EXPECT_EQ(ask("/readyz/cache").status, 200);
  EXPECT_EQ(ask("/healthz").status, 200);

  leader_ = {};
  EXPECT_EQ(ask("/readyz").status, 200);
}

TEST_F(EndpointsTest, ServesMetricsAsTheyAreNow) {
  Counter& counter = metrics_.counter("c_total", "a counter");
  counter.add(1);
  EXPECT_THAT(ask("/metrics").body, HasSubstr("\nc_total 1"));
  counter.add(1);

  const http::Response response = ask("/metrics");

  EXPECT_THAT(response.body, HasSubstr("\nc_total 2"));
  EXPECT_EQ(http::find_header(response.headers, "content-type"),
            "text/plain; version=0.0.4; charset=utf-8");
}

TEST_F(EndpointsTest, CollectsMetricsOnceForAllThatAskMeanwhile) {
  int collections = 0;
  metrics_.gauge_read("g", "a gauge",
                      [&collections] { return static_cast<double>(++collections); });
  int answered = 0;
  const auto one = [&]() -> io::Task<void> {
    const auto response = co_await client_.send(
        {.url = fmt::format("http://127.0.0.1:{}/metrics", endpoints_.port()),
         .transport = std::make_shared<const http::Transport>(http::Transport{.direct = true})},
        {});
    EXPECT_EQ(response.value().status, 200);
    ++answered;
  };
  // A client has at most 16 connections to one server.
  constexpr int kRequests = 16;
  for (int i = 0; i < kRequests; ++i)
    loop_.spawn(one());
  loop_.run_until([&] { return answered == kRequests; });

  EXPECT_LT(collections, kRequests);
  const int next = collections + 1;
  const http::Response later = ask("/metrics");
  EXPECT_THAT(later.body, HasSubstr(fmt::format("\ng {}", next))) << "as they are then";
}

// Connections whose requests wait cannot make room, and without one for its probes the kubelet
// restarts the host.
TEST_F(EndpointsTest, FewRequestsOfOneAddressWaitForTheMainLoop) {
  Endpoints endpoints(loop_, loop_, metrics_, Log());
  io::Event go(loop_);
  bool has_gone = false;
  std::size_t waiting = 0;
  std::size_t answered = 0;
  endpoints.set_operators([&](std::string, std::string) -> io::Task<Result<std::string>> {
    ++waiting;
    while (!has_gone)
      (void)co_await go.wait({});
    co_return "up 1\n";
  });
  ASSERT_TRUE(endpoints.listen("127.0.0.1:0"));
  const auto one = [&](http::Client& client) -> io::Task<void> {
    const auto response = co_await client.send(
        {.url = fmt::format("http://127.0.0.1:{}/metrics/operators/a/b", endpoints.port()),
         .transport = std::make_shared<const http::Transport>(http::Transport{.direct = true})},
        {});
    EXPECT_EQ(response.value().status, 200);
    ++answered;
  };
  // A client has at most 16 connections to one server.
  std::vector<std::unique_ptr<http::Client>> clients;
  for (std::size_t i = 0; i < kWaitingRequestsOfSourceMax; ++i) {
    if (i % 16 == 0) clients.push_back(std::make_unique<http::Client>(loop_));
    loop_.spawn(one(*clients.back()));
  }
  loop_.run_until([&] { return waiting == kWaitingRequestsOfSourceMax; });

  EXPECT_EQ(ask("/metrics/operators/a/b", "GET", endpoints.port()).status, 503);
  EXPECT_EQ(ask("/metrics", "GET", endpoints.port()).status, 503);
  EXPECT_EQ(ask("/healthz", "GET", endpoints.port()).body, "ok");

  has_gone = true;
  go.notify_all();
  loop_.run_until([&] { return answered == kWaitingRequestsOfSourceMax; });
  EXPECT_EQ(ask("/metrics", "GET", endpoints.port()).status, 200);
  loop_.spawn(endpoints.stop());
  loop_.run_until([this] { return connections_are_over(); });
}

TEST_F(EndpointsTest, IsAliveAsItsOwnChecksSay) {
  Endpoints endpoints(loop_, loop_, metrics_, Log());
  Result<> alive;
  endpoints.add_liveness_check("main-loop", [&] { return alive; });
  ASSERT_TRUE(endpoints.listen("127.0.0.1:0"));

  EXPECT_EQ(ask("/healthz?verbose", "GET", endpoints.port()).body,
            "[+]main-loop ok\nhealthz check passed\n");
  alive = fail(ErrorKind::Unavailable, "held");
  EXPECT_EQ(ask("/livez", "GET", endpoints.port()).status, 500);
  EXPECT_EQ(ask("/healthz", "GET", endpoints.port()).body,
            "[-]main-loop failed: held\nhealthz check failed\n");

  loop_.spawn(endpoints.stop());
  loop_.run_until([this] { return connections_are_over(); });
}

TEST_F(EndpointsTest, AnswersWhileTheMainLoopDoesNot) {
  io::Loop main;  // Never runs.
  Endpoints endpoints(loop_, main, metrics_, Log());
  endpoints.add_check("cache", [] { return Result<>(); });
  ASSERT_TRUE(endpoints.listen("127.0.0.1:0"));

  EXPECT_EQ(ask("/healthz", "GET", endpoints.port()).body, "ok");
  EXPECT_EQ(ask("/readyz", "GET", endpoints.port()).body,
            "[-]main-loop failed: the main loop has not answered for 5s\nreadyz check failed\n");
  EXPECT_EQ(ask("/metrics", "GET", endpoints.port()).status, 503);

  loop_.spawn(endpoints.stop());
  loop_.run_until([this] { return connections_are_over(); });
}

TEST_F(EndpointsTest, ServesTheMetricsOfOperatorsAsTextOnly) {
  Endpoints endpoints(loop_, loop_, metrics_, Log());
  endpoints.set_operators(
      [](std::string namespace_name, std::string name) -> io::Task<Result<std::string>> {
        if (name == "none") co_return fail(ErrorKind::NotFound, "this host runs no such operator");
        if (name == "mute") co_return fail(ErrorKind::Unavailable, "it has not answered");
        co_return namespace_name + "_" + name + " 1\n";
      });
  ASSERT_TRUE(endpoints.listen("127.0.0.1:0"));
  const auto get = [&](std::string_view path) { return ask(path, "GET", endpoints.port()); };

  const http::Response response = get("/metrics/operators/a/b");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "a_b 1\n");
  EXPECT_EQ(http::find_header(response.headers, "content-type"),
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(http::find_header(response.headers, "x-content-type-options"), "nosniff");
  EXPECT_EQ(get("/metrics/operators/a/none").status, 404);
  EXPECT_EQ(get("/metrics/operators/a/none").body, "this host runs no such operator\n");
  EXPECT_EQ(get("/metrics/operators/a/mute").status, 503);
  for (const std::string_view path :
       {"/metrics/operators/", "/metrics/operators/a", "/metrics/operators/a/",
        "/metrics/operators//b", "/metrics/operators/a/b/c"}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }

  loop_.spawn(endpoints.stop());
  loop_.run_until([this] { return connections_are_over(); });
}

TEST_F(EndpointsTest, KnowsNothingElse) {
  EXPECT_EQ(ask("/").status, 404);
  EXPECT_EQ(ask("/readyzz").status, 404);
  EXPECT_EQ(ask("/readyz/nothing").status, 404);
  EXPECT_EQ(ask("/metrics/x").status, 404);
  EXPECT_EQ(ask("/metrics", "POST").status, 405);
  EXPECT_EQ(ask("/healthz", "HEAD").status, 200);
  EXPECT_EQ(ask("/healthz", "HEAD").body, "");
}

TEST_F(EndpointsTest, SaysWhyItCannotListen) {
  Endpoints other(loop_, loop_, metrics_, Log());
  for (const std::string_view address :
       {"", "x", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1", "a b:1", "[::1"}) {
    const Result<> listening = other.listen(address);

    ASSERT_FALSE(listening.has_value()) << address;
    EXPECT_EQ(listening.error().kind(), ErrorKind::InvalidInput) << address;
  }
  EXPECT_EQ(other.listen(fmt::format("127.0.0.1:{}", endpoints_.port())).error().kind(),
            ErrorKind::Unavailable);
}

}  // namespace
}  // namespace hangar::ops
