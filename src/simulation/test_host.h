// For tests of what a shell does to a cluster: one host's clients and caches, the model of the API
// server, and virtual time, so that no test waits.
//
// A test says what the server refuses and what others do at that moment (on_arrival_), what they do
// otherwise (send()), and how much time passes (run_for()).
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/time.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "io/workers.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/fence.h"
#include "reconcile/acting_rights.h"
#include "reconcile/event_recorder.h"
#include "reconcile/platform.h"
#include "reconcile/turnstile.h"
#include "simulation/api_server.h"
#include "simulation/network.h"
#include "simulation/statuses.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::simulation {

// The parts of one host that leads, put together as in simulated_host.h. The shells on it have
// stopped before it is destroyed.
struct TestHost {
  // `name`: its token, by which the network knows it.
  explicit TestHost(const std::string& name)
      : credentials(std::make_shared<kube::Credentials>(
            loop,
            kube::Login{.source = "a test",
                        .cluster = {.server = "https://cluster.simulated:6443"},
                        .user = {.token = name},
                        .namespace_ = "kube-system"},
            Log())),
        client(loop, http, credentials, metrics, Log(), {.fence = fence}),
        watch_client(loop, http, credentials, metrics, Log(), {.has_own_connections = true}) {
    fence->open_until(Instant::max(), WallTime::max());
  }
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;
  ~TestHost() {
    bool has_stopped = false;
    loop.spawn([](TestHost& host, bool& done) -> io::Task<void> {
      co_await host.events.stop();
      done = true;
    }(*this, has_stopped));
    io::VirtualTime& time = *io::VirtualTime::current();
    const Instant end = time.world() + std::chrono::minutes(10);
    while (!has_stopped && time.world() < end)
      time.step();
    cache.stop();
    while (loop.spawned_count() > 0 && time.world() < end)
      time.step();
    EXPECT_EQ(loop.spawned_count(), 0U) << "the host has not ended";
    // Work that was posted refers to the parts.
    time.run_for(std::chrono::seconds(1));
  }

  // It has lost its Lease.
  void stop_leading() const { fence->shut(); }

  io::Loop loop;
  Metrics metrics;
  io::Workers workers{loop, 2};
  const std::shared_ptr<kube::Fence> fence = std::make_shared<kube::Fence>();
  http::Client http{loop};
  const std::shared_ptr<kube::Credentials> credentials;
  const kube::Client client;
  const kube::Client watch_client;
  kube::Discovery discovery{client};
  kube::Cache cache{loop, watch_client, metrics, Log()};
  reconcile::ActingRights acting{client};
  reconcile::EventRecorder events{loop, client, Log(), "hangar", "host"};
  reconcile::Turnstile turnstile{loop, 4};
  const reconcile::Platform platform{.loop = loop,
                                     .workers = workers,
                                     .client = client,
                                     .cache = cache,
                                     .discovery = discovery,
                                     .acting = acting,
                                     .events = events,
                                     .turnstile = turnstile,
                                     .metrics = metrics,
                                     .log = Log()};
};

class HostTest : public ::testing::Test {
 protected:
  HostTest() {
    network_.set_on_arrival([this](const ApiRequest& request) {
      return on_arrival_ ? on_arrival_(request) : std::nullopt;
    });
    network_.set_on_act([this](const Network::Acted& acted) {
      std::string line = acted.request.method + " " + path_of(acted.request);
      if (acted.request.method == "GET") {
        reads_.push_back(std::move(line));
      } else if (acted.answer.status < 300) {
        writes_.push_back(std::move(line));
      }
    });
    host_ = std::make_unique<TestHost>("host");
  }

  // on_arrival_ may refer to what the test has on its stack.
  void TearDown() override { on_arrival_ = nullptr; }

  static std::string path_of(const ApiRequest& request) {
    return request.target.substr(0, request.target.find('?'));
  }
  static json::Value yaml(std::string_view text) { return json::parse_yaml(text).value(); }

  // As another client; `body` is YAML, a patch is a merge patch.
  ApiAnswer send(std::string_view method, std::string target, std::string_view body = "{}") {
    return server_.handle(
        {.method = std::string(method),
         .target = std::move(target),
         .content_type = method == "PATCH" ? "application/merge-patch+json" : "application/json",
         .body = json::dump(yaml(body))},
        time_.wall_now());
  }

  using Act = std::function<std::optional<ApiAnswer>(const ApiRequest& request)>;
  // `act` is what on_arrival_ does, once: for a request of that method whose path contains `part`.
  void on_next(std::string method, std::string part, Act act) {
    on_arrival_ = [method = std::move(method), part = std::move(part), act = std::move(act),
                   has_acted =
                       false](const ApiRequest& request) mutable -> std::optional<ApiAnswer> {
      if (has_acted || request.method != method || !path_of(request).contains(part)) {
        return std::nullopt;
      }
      has_acted = true;
      return act(request);
    };
  }
  // The next such request is carried out, and answered as if it had not been.
  void lose_next_answer(std::string method, std::string part) {
    on_next(std::move(method), std::move(part), [this](const ApiRequest& request) {
      (void)server_.handle(request, time_.wall_now());
      return std::optional(failure());
    });
  }
  static ApiAnswer failure() { return status(500, "InternalError", "the storage timed out"); }

  void run_for(Duration duration) { time_.run_for(duration); }
  void run_until(const std::function<bool()>& done) {
    const Instant end = time_.world() + std::chrono::minutes(20);
    while (!done() && time_.world() < end)
      time_.step();
    EXPECT_TRUE(done());
  }
  template <class T>
  T await(io::Task<T> task) {
    const auto value = std::make_shared<std::optional<T>>();
    host_->loop.spawn(
        [](io::Task<T> awaited, std::shared_ptr<std::optional<T>> into) -> io::Task<void> {
          into->emplace(co_await std::move(awaited));
        }(std::move(task), value));
    run_until([&value] { return value->has_value(); });
    return std::move(*value).value();
  }
  void await(io::Task<void> task) {
    const auto has_ended = std::make_shared<bool>(false);
    host_->loop.spawn([](io::Task<void> awaited, std::shared_ptr<bool> done) -> io::Task<void> {
      co_await std::move(awaited);
      *done = true;
    }(std::move(task), has_ended));
    run_until([&has_ended] { return *has_ended; });
  }

  io::VirtualTime time_{{.seed = 1}};
  ApiServer server_{/*seed=*/1};
  Network network_{time_, server_};
  // Called when a request of the host arrives: its result answers in place of the server.
  Act on_arrival_;
  std::vector<std::string>
      writes_;                      // Of the host, without those that failed: "DELETE /api/v1/...".
  std::vector<std::string> reads_;  // The same, without watches.
  std::unique_ptr<TestHost> host_;
};

}  // namespace hangar::simulation
