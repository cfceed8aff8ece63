#include "kube/client.h"

#include "base/consumer.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {
namespace {

constexpr std::string_view kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class Ledger final : public RequestObserver {
 public:
  std::string on_request(std::uint64_t body_bytes) override {
    text_ += fmt::format("sent {};", body_bytes);
    return std::string(kTrace);
  }
  void on_response(int status, std::uint64_t body_bytes) override {
    text_ += fmt::format("{} {};", status, body_bytes);
  }
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

// The API server is one of our own HTTP servers: it answers /BYTES with a document of that size,
// and refuses a path that begins with 0.
class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    server_.emplace(loop_, http::ServerOptions(),
                    [this](http::ServerRequest request) { return answer(std::move(request)); });
    EXPECT_TRUE(server_->start().has_value());
    Login login;
    login.cluster.server = fmt::format("http://127.0.0.1:{}", server_->port());
    credentials_ = std::make_shared<Credentials>(loop_, std::move(login), Log());
  }
  ~ClientTest() override {
    server_.reset();
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }

  Client client(ClientOptions options) {
    return {loop_, http_, credentials_, metrics_, Log(), std::move(options)};
  }
  Result<json::Value> get(const Client& client, std::size_t bytes) {
    return io::run_to_end(loop_, client.get_path(fmt::format("/{}", bytes), {}));
  }

  io::Loop loop_;
  io::Workers workers_{loop_, 1};
  Metrics metrics_;
  http::Client http_{loop_};
  std::optional<http::Server> server_;
  std::shared_ptr<Credentials> credentials_;
  std::string traceparent_;  // Of the last request.

 private:
  io::Task<http::Response> answer(http::ServerRequest request) {
    traceparent_ = http::find_header(request.headers, "traceparent").value_or("");
    const std::size_t bytes = std::stoul(request.path.substr(1));
    co_return http::Response{.status = request.path.starts_with("/0") ? 403 : 200,
                             .body = fmt::format(R"({{"text":"{}"}})", std::string(bytes, 'x'))};
  }
};

TEST_F(ClientTest, SharesConnectionsUnlessItHasItsOwn) {
  const Client first = client({});
  const Client second = client({});
  const Client apart = client({.has_own_connections = true});

  ASSERT_TRUE(get(first, 1));
  ASSERT_TRUE(get(second, 1));
  EXPECT_EQ(server_->connection_count(), 1U);
  ASSERT_TRUE(get(apart, 1));
  EXPECT_EQ(server_->connection_count(), 2U);
  ASSERT_TRUE(get(apart.as({.user = "jane"}), 1));
  EXPECT_EQ(server_->connection_count(), 2U) << "all of one client have the same";
}

TEST_F(ClientTest, TellsWhatItSendsAndReceives) {
  Ledger ledger;
  const Client observed = client({}).observed_by(&ledger);

  ASSERT_TRUE(io::run_to_end(loop_, observed.post_path("/10", json::Object{{"a", 1}}, {})));
  EXPECT_EQ(ledger.take(), "sent 7;200 21;");
  EXPECT_EQ(traceparent_, kTrace);
  ASSERT_TRUE(get(observed.as({.user = "jane"}), 10));
  EXPECT_EQ(ledger.take(), "sent 0;200 21;");
  ASSERT_FALSE(io::run_to_end(loop_, observed.get_path("/010", {})));
  EXPECT_EQ(ledger.take(), "sent 0;403 21;");
  ASSERT_TRUE(io::run_to_end(loop_, observed.send({.target = "/10", .body = "{}"}, {})));
  EXPECT_EQ(ledger.take(), "sent 2;200 21;");
  EXPECT_EQ(traceparent_, kTrace);
  // Nothing was sent.
  ASSERT_FALSE(io::run_to_end(loop_, observed.get_path("/a b", {})));
  EXPECT_EQ(ledger.take(), "");
  // Nobody waits for the answer.
  std::stop_source stop;
  stop.request_stop();
  ASSERT_FALSE(io::run_to_end(loop_, observed.get_path("/10", stop.get_token())));
  EXPECT_EQ(ledger.take(), "sent 0;");
  ASSERT_TRUE(get(observed.observed_by(nullptr), 10));
  EXPECT_EQ(ledger.take(), "");
  EXPECT_EQ(traceparent_, "");
}

TEST_F(ClientTest, LeavesLongAnswersToAWorker) {
  const Client client_with_readers = client({.readers = &workers_});
  std::promise<void> released;
  workers_.submit(unnamed_consumer(), [held = released.get_future().share()] { held.wait(); });
  std::optional<Result<json::Value>> answer;
  const auto ask = [](const Client& asked,
                      std::optional<Result<json::Value>>& into) -> io::Task<void> {
    into.emplace(co_await asked.get_path(fmt::format("/{}", limits::kListSliceBytes), {}));
  };

  loop_.spawn(ask(client_with_readers, answer));
  EXPECT_TRUE(get(client_with_readers, 1)) << "a short one needs no worker";
  // The long response arrives at the latest before a later response on its connection.
  for (int later = 0; later < 3; ++later)
    EXPECT_TRUE(get(client({}), limits::kListSliceBytes));
  EXPECT_FALSE(answer) << "the loop has read it";
  released.set_value();
  loop_.run_until([&] { return answer.has_value(); });
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(json::string_at(**answer, {"text"}).size(), limits::kListSliceBytes);
}

}  // namespace
}  // namespace hangar::kube
