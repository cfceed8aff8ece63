#include "operators/outbound.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "io/descriptor.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/fence.h"
#include "operators/limits.h"
#include "tenants/rules.h"
#include "tenants/tenant_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(IsOutbound, IsAnHttpsUrlOfAnotherServerThanTheApiServer) {
  for (const std::string_view uri :
       {"https://acme.example.org", "https://acme.example.org/a?b", "https://10.0.0.1/",
        "https://kubernetes.example.org/", "https://hangar.example.org/", "https:///a",
        "https://kubernetes@evil.example/", "https://kubernetes.default.svcx/",
        "https://127.example.org/"}) {
    EXPECT_TRUE(is_outbound(uri)) << uri;
  }
  for (const std::string_view uri :
       {"/api/v1/pods", "http://acme.example.org/", "https://hangar/api", "https://HANGAR:443/api",
        "https://kubernetes/api", "https://kubernetes.default:443/api",
        "https://kubernetes.default.svc/api", "https://kubernetes.default.svc.cluster.local./api",
        "https://localhost:8080/api", "https://127.0.0.1:6443/api", "https://[::1]:6443/api",
        "ftp://acme.example.org/", "HTTPS://acme.example.org/"}) {
    EXPECT_FALSE(is_outbound(uri)) << uri;
  }
}

TEST(OutboundTargets, AreSentAsTheyWereChecked) {
  const Result<OutboundTarget> target =
      parse_outbound("https://ACME.example.org.:443/a%2Fb/../c?secret=d");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->url(), "https://acme.example.org/a%2Fb/../c?secret=d");
  EXPECT_EQ(target->shown(), "https://acme.example.org");
  EXPECT_EQ(parse_outbound("https://acme.example.org")->url(), "https://acme.example.org/");
  EXPECT_EQ(parse_outbound("https://acme.example.org:8443?a")->url(),
            "https://acme.example.org:8443/?a");
}

TEST(OutboundTargets, ThatAreAmbiguousAreRefused) {
  for (const std::string_view uri :
       {"https://", "https://me:secret@acme.example.org/", "https://acme.example.org/a#b",
        "https://acme.example.org\\@evil.example/", "https://[fd00::1]/", "https://2130706433/"}) {
    EXPECT_FALSE(parse_outbound(uri)) << uri;
  }
}

TEST(EndToEnd, LeavesOutWhatBelongsToAConnectionOrToTheHost) {
  const http::Headers kept = end_to_end({{"authorization", "Bearer mine"},
                                         {"Connection", "close, X-Hop"},
                                         {"x-hop", "1"},
                                         {"host", "evil.example"},
                                         {"content-length", "5"},
                                         {"transfer-encoding", "chunked"},
                                         {"proxy-authorization", "Basic x"},
                                         {"te", "trailers"},
                                         {"upgrade", "websocket"},
                                         {"expect", "100-continue"},
                                         {"Hangar-Error", "forged"},
                                         {"content-type", "text/plain"}});

  EXPECT_THAT(
      kept, ElementsAre(Pair("authorization", "Bearer mine"), Pair("content-type", "text/plain")));
}

// Each header compared with each name would take the loop an hour.
TEST(EndToEnd, LooksAtEachHeaderOnceHoweverManyTheConnectionNames) {
  constexpr std::size_t kHeaders = 1'000'000;
  std::string names;
  http::Headers headers;
  for (std::size_t index = 0; index < kHeaders; ++index) {
    names += fmt::format("x-{},", index);
    headers.emplace_back(fmt::format("y-{}", index), "");
  }
  headers.emplace_back("X-7", "1");
  headers.emplace_back("Connection", std::move(names));

  const http::Headers kept = end_to_end(std::move(headers));

  EXPECT_EQ(kept.size(), kHeaders);
  EXPECT_FALSE(http::find_header(kept, "x-7"));
}

budget::Consumer consumer_in(std::string namespace_name, std::string name = "operator/o") {
  return {.tenant = budget::Tenant::of_namespace(std::move(namespace_name)),
          .name = std::move(name)};
}

// Has to be looked up, so a request waits at least for the next round of the loop.
constexpr const char* kUnresolved = "https://server.invalid/";

struct Received final : gateway::Answer {
  void on_understood(const gateway::RequestTarget& /*target*/,
                     const gateway::Request& request) override {
    shown = request.target;
    if (drops != nullptr) drops->reset();
  }
  void on_bound(const std::string& message) override { bounds.push_back(message); }
  void on_head(int status_in, http::Headers headers_in) override {
    status = status_in;
    headers = std::move(headers_in);
  }
  void on_piece(gateway::Piece piece) override { body += gateway::text_of(piece); }
  void on_bookmark(std::string /*line*/) override {}
  void on_end() override { has_ended = true; }

  [[nodiscard]] std::string error() const {
    return std::string(http::find_header(headers, kErrorHeader).value_or(""));
  }

  std::unique_ptr<gateway::Exchange>* drops = nullptr;  // Once the request is understood.
  std::string shown;
  std::vector<std::string> bounds;
  int status = 0;
  http::Headers headers;
  std::string body;
  bool has_ended = false;
};

class OutboundTest : public ::testing::Test {
 protected:
  explicit OutboundTest(http::AddressPolicy addresses = http::AddressPolicy::public_only()) {
    // The environment of a test machine may name a proxy, which would decide about addresses.
    ::setenv("NO_PROXY", "*", 1);  // NOLINT(concurrency-mt-unsafe): before any thread starts.
    ::setenv("no_proxy", "*", 1);  // NOLINT(concurrency-mt-unsafe)
    client_ = std::make_unique<http::Client>(loop_);
    fence_->open_until(io::Loop::now() + std::chrono::hours(1),
                       io::Loop::wall_now() + std::chrono::hours(1));
    outbound_ = std::make_unique<Outbound>(
        Outbound::Parts{.loop = loop_,
                        .client = *client_,
                        .metrics = metrics_,
                        .rules_of = [this](const std::string& /*name*/) { return rules_; },
                        .addresses = std::move(addresses),
                        .fence = fence_,
                        // Servers that do not answer keep their places: with a sanitizer, beginning
                        // twenty handshakes takes seconds.
                        .connect_timeout = std::chrono::minutes(5)});
  }

  void set_policy(std::string_view outbound) {
    tenants::TenantPolicy policy = tenants::parse_tenant_policy(
        json::parse(
            fmt::format(R"({{"metadata":{{"name":"a"}},"spec":{{"outbound":{}}}}})", outbound))
            .value());
    EXPECT_EQ(policy.problem, "");
    rules_ = std::make_shared<const tenants::Rules>(
        tenants::Rules::Policies{std::make_shared<const tenants::TenantPolicy>(std::move(policy))});
  }

  [[nodiscard]] std::unique_ptr<gateway::Exchange> begin(std::string url, Received& received,
                                                         std::string body = {}) {
    return begin_as(consumer_in("n"), std::move(url), received, std::move(body));
  }
  [[nodiscard]] std::unique_ptr<gateway::Exchange> begin_as(budget::Consumer consumer,
                                                            std::string url, Received& received,
                                                            std::string body = {},
                                                            std::string method = "POST") {
    return outbound_->begin(std::move(consumer),
                            {.method = std::move(method),
                             .target = std::move(url),
                             .headers = {},
                             .body = std::move(body)},
                            received);
  }

  [[nodiscard]] std::unique_ptr<const Received> ask(std::string url, std::string method = "POST") {
    auto received = std::make_unique<Received>();
    const auto exchange =
        begin_as(consumer_in("n"), std::move(url), *received, {}, std::move(method));
    EXPECT_FALSE(received->has_ended) << "in a later turn";
    loop_.run_until([&received] { return received->has_ended; });
    return received;
  }

  [[nodiscard]] double counted(std::string_view result) const {
    for (const Metrics::Family& family : metrics_.collect()) {
      if (family.name != "hangar_operator_outbound_requests_total") continue;
      for (const Metrics::Sample& sample : family.samples) {
        if (sample.labels == MetricLabels{{"namespace", "n"}, {"result", std::string(result)}}) {
          return sample.value;
        }
      }
    }
    return 0;
  }

  io::Loop loop_;
  Metrics metrics_;
  std::shared_ptr<const tenants::Rules> rules_ = std::make_shared<const tenants::Rules>();
  const std::shared_ptr<kube::Fence> fence_ = std::make_shared<kube::Fence>();
  std::unique_ptr<http::Client> client_;
  std::unique_ptr<Outbound> outbound_;
};

TEST_F(OutboundTest, WithoutAPolicyNothingIsSent) {
  const auto received = ask("https://acme.example.org/a?secret=b");

  EXPECT_EQ(received->status, 403);
  EXPECT_EQ(received->error(),
            "requests to acme.example.org are not allowed here: no TenantPolicy lists servers for "
            "this namespace (outbound.hosts)");
  EXPECT_THAT(received->body, HasSubstr("\"reason\":\"Forbidden\""));
  EXPECT_THAT(received->bounds, ElementsAre(received->error()));
  EXPECT_EQ(received->shown, "https://acme.example.org");
  EXPECT_EQ(counted("refused"), 1);
}

TEST_F(OutboundTest, AServerThatAPolicyDoesNotListIsRefusedInItsName) {
  set_policy(R"({"hosts":["vault.example.org"]})");

  EXPECT_EQ(ask("https://acme.example.org/")->error(),
            "requests to acme.example.org are not allowed here: TenantPolicy a does not list it: "
            "it allows vault.example.org");
  EXPECT_EQ(ask("https://vault.example.org:8200/")->status, 403);
}

TEST_F(OutboundTest, PrivateAddressesAreNotReached) {
  for (const std::string_view is_private : {"false", "true"}) {
    set_policy(fmt::format(R"({{"hosts":["10.9.8.7"],"privateAddresses":{}}})", is_private));
    const auto received = ask("https://10.9.8.7/");
    EXPECT_EQ(received->status, 403);
    EXPECT_THAT(received->error(), HasSubstr("its address is private"));
    EXPECT_EQ(received->bounds.size(), 1U);
  }
}

TEST_F(OutboundTest, ATargetThatIsAmbiguousIsRefused) {
  EXPECT_EQ(ask("https://me@acme.example.org/")->status, 400);
}

TEST_F(OutboundTest, OfAFormerLeaderAreSentOnlyIfTheyRead) {
  set_policy(R"({"hosts":["10.9.8.7"]})");
  fence_->shut();

  for (const char* const method : {"POST", "PUT", "PATCH", "DELETE"}) {
    const auto received = ask("https://10.9.8.7/", method);
    EXPECT_EQ(received->status, 503) << method;
    EXPECT_EQ(received->error(),
              "nothing was sent: this host does not hold its Lease at the moment");
  }
  EXPECT_EQ(counted("failed"), 4);
  for (const char* const method : {"GET", "HEAD", "OPTIONS"}) {
    EXPECT_THAT(ask("https://10.9.8.7/", method)->error(), HasSubstr("its address is private"))
        << method;
  }
}

TEST_F(OutboundTest, MoreThanMayWaitAreRefused) {
  set_policy(R"({"hosts":["server.invalid","10.9.8.7"]})");
  std::vector<std::unique_ptr<Received>> all;
  std::vector<std::unique_ptr<gateway::Exchange>> exchanges;
  for (std::size_t count = 0; count < limits::kOutboundPendingMax; ++count)
    exchanges.push_back(begin(kUnresolved, *all.emplace_back(std::make_unique<Received>())));

  EXPECT_EQ(ask("https://10.9.8.7/")->status, 429);
  EXPECT_EQ(counted("limited"), 1);
  exchanges.clear();
  EXPECT_EQ(ask("https://10.9.8.7/")->status, 403) << "there is room again";
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(OutboundTest, BodiesThatWaitAreBounded) {
  set_policy(R"({"hosts":["server.invalid"]})");
  const std::string half(limits::kOutboundBodyBytesMax / 2, 'x');
  Received first;
  Received second;
  Received third;
  auto one = begin(kUnresolved, first, half);
  auto two = begin(kUnresolved, second, half);

  const auto three = begin(kUnresolved, third, "x");
  loop_.run_until([&] { return third.has_ended; });

  EXPECT_EQ(third.status, 429);
  EXPECT_FALSE(first.status == 429 || second.status == 429);
  one.reset();
  two.reset();
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(OutboundTest, ANamespaceThatSendsManyRequestsWaitsAndAnotherDoesNot) {
  set_policy(R"({"hosts":["10.9.8.7"]})");
  constexpr std::size_t kBeyondBurst = 20;
  constexpr std::size_t kCount = static_cast<std::size_t>(limits::kOutboundBurst) + kBeyondBurst;
  std::vector<std::unique_ptr<Received>> all;
  std::vector<std::unique_ptr<gateway::Exchange>> exchanges;
  const Instant began = io::Loop::now();
  for (std::size_t count = 0; count < kCount; ++count) {
    exchanges.push_back(begin_as(consumer_in("n", count % 2 == 0 ? "operator/o" : "operator/p"),
                                 "https://10.9.8.7/",
                                 *all.emplace_back(std::make_unique<Received>())));
  }
  const auto has_ended = [](const auto& one) { return one->has_ended; };

  Received other;
  const auto others = begin_as(consumer_in("m"), "https://10.9.8.7/", other);
  loop_.run_until([&other] { return other.has_ended; });
  EXPECT_FALSE(std::ranges::all_of(all, has_ended));

  loop_.run_until([&] { return std::ranges::all_of(all, has_ended); });
  // Each wait is rounded down to a nanosecond.
  const auto due = std::chrono::duration<double>(kBeyondBurst / limits::kOutboundPerSecond);
  EXPECT_GE(io::Loop::now() - began + std::chrono::milliseconds(1), due);
  for (const auto& received : all)
    EXPECT_EQ(received->status, 403) << received->error();
}

class ReachableServerTest : public OutboundTest {
 protected:
  ReachableServerTest() : OutboundTest(http::AddressPolicy()) {
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {INADDR_ANY}, .sin_zero = {}};
    socklen_t length = sizeof(address);
    listener_ = io::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.value(), generic, length), 0);
    EXPECT_EQ(::listen(listener_.value(), SOMAXCONN), 0);
    EXPECT_EQ(::getsockname(listener_.value(), generic, &length), 0);
    port_ = ntohs(address.sin_port);
  }

  // Each number is a server of its own, to which there is a connection of its own.
  [[nodiscard]] std::string authority(std::size_t number) const {
    return fmt::format("127.0.1.{}:{}", number + 1, port_);
  }

  // Allows the first servers.
  void allow_servers(std::size_t count) {
    std::string hosts;
    for (std::size_t number = 0; number < count; ++number) {
      hosts += fmt::format("{}\"{}\"", number == 0 ? "" : ",", authority(number));
    }
    set_policy(fmt::format(R"({{"hosts":[{}],"privateAddresses":true}})", hosts));
  }

  // Connections so far. Nobody answers on them.
  std::size_t connection_count() {
    while (true) {
      io::Descriptor accepted(::accept4(listener_.value(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted.is_open()) return accepted_.size();
      accepted_.push_back(std::move(accepted));
    }
  }

 private:
  io::Descriptor listener_;
  std::uint16_t port_ = 0;
  std::vector<io::Descriptor> accepted_;
};

TEST_F(ReachableServerTest, ANamespaceHasItsShareOfTheRequestsUnderWay) {
  constexpr std::size_t kMax = limits::kOutboundRequestsPerTenantMax;
  constexpr std::size_t kCount = kMax + 4;
  allow_servers(kCount + 1);
  std::vector<std::unique_ptr<Received>> all;
  std::vector<std::unique_ptr<gateway::Exchange>> exchanges;
  const auto ask_as = [&](budget::Consumer consumer, std::size_t number) {
    exchanges.push_back(begin_as(std::move(consumer), fmt::format("https://{}/", authority(number)),
                                 *all.emplace_back(std::make_unique<Received>())));
  };
  for (std::size_t number = 0; number < kCount; ++number) {
    ask_as(consumer_in("n", number % 2 == 0 ? "operator/o" : "operator/p"), number);
  }
  loop_.run_until([&] { return connection_count() >= kMax; });

  // By the time that a later one is under way, those before it have had their chance.
  ask_as(consumer_in("m"), kCount);
  loop_.run_until([&] { return connection_count() >= kMax + 1; });
  EXPECT_EQ(connection_count(), kMax + 1);

  exchanges.front().reset();
  loop_.run_until([&] { return connection_count() >= kMax + 2; });
  EXPECT_EQ(connection_count(), kMax + 2) << "the next one has the place";
  exchanges.clear();
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(ReachableServerTest, WhatWaitedUntilTheLeaseWasLostIsNotSent) {
  constexpr std::size_t kMax = limits::kOutboundRequestsPerTenantMax;
  allow_servers(kMax + 1);
  std::vector<std::unique_ptr<Received>> all;
  std::vector<std::unique_ptr<gateway::Exchange>> exchanges;
  for (std::size_t number = 0; number <= kMax; ++number) {
    exchanges.push_back(begin(fmt::format("https://{}/", authority(number)),
                              *all.emplace_back(std::make_unique<Received>())));
  }
  loop_.run_until([&] { return connection_count() >= kMax; });

  fence_->shut();
  exchanges.front().reset();
  loop_.run_until([&] { return all.back()->has_ended; });

  EXPECT_EQ(all.back()->status, 503);
  EXPECT_THAT(all.back()->error(), HasSubstr("does not hold its Lease"));
  EXPECT_EQ(connection_count(), kMax);
  exchanges.clear();
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(OutboundTest, NobodyIsToldWhoDoesNotWait) {
  Received early;
  Received late;
  set_policy(R"({"hosts":["10.9.8.7"]})");
  begin("https://10.9.8.7/", early).reset();
  auto exchange = begin("https://10.9.8.7/", late);
  late.drops = &exchange;

  loop_.run_until([&] { return !exchange && loop_.spawned_count() == 0; });

  EXPECT_FALSE(early.has_ended || late.has_ended);
  EXPECT_THAT(early.shown, IsEmpty());
}

}  // namespace
}  // namespace hangar::operators
