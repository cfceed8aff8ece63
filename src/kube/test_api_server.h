// For tests that need no more of an API server than answers: it is one of our own HTTP servers, on
// the loop of the test.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hangar::kube {

class ApiServerTest : public testing::Test {
 protected:
  ApiServerTest() {
    server_.emplace(loop_, http::ServerOptions(),
                    [this](http::ServerRequest request) { return answer(std::move(request)); });
    EXPECT_TRUE(server_->start().has_value());
    Login login;
    login.cluster.server = fmt::format("http://127.0.0.1:{}", server_->port());
    credentials_ = std::make_shared<Credentials>(loop_, std::move(login), Log());
  }
  // A test whose answers or requests wait for something ends them first.
  void TearDown() override {
    server_.reset();
    run_until([this] { return loop_.spawned_count() == 0; });
  }

  virtual io::Task<http::Response> answer(http::ServerRequest request) = 0;
  static http::Response json(std::string body) { return {.status = 200, .body = std::move(body)}; }

  Client client(ClientOptions options = {}) {
    return {loop_, http_, credentials_, metrics_, Log(), std::move(options)};
  }
  void run_until(const std::function<bool()>& done) {
    bool is_late = false;
    const io::Loop::Timer timer =
        loop_.after(std::chrono::seconds(20), [&is_late] { is_late = true; });
    loop_.run_until([&] { return is_late || done(); });
    EXPECT_FALSE(is_late);
  }

  io::Loop loop_;
  Metrics metrics_;
  http::Client http_{loop_};
  std::optional<http::Server> server_;
  std::shared_ptr<Credentials> credentials_;
};

}  // namespace hangar::kube
