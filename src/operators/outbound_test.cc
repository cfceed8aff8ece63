#include "operators/outbound.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "http/client.h"
#include "io/loop.h"
#include "json/value.h"
#include "operators/limits.h"
#include "tenants/rules.h"
#include "tenants/tenant_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
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
  OutboundTest() {
    // The environment of a test machine may name a proxy, which would decide about addresses.
    ::setenv("NO_PROXY", "*", 1);  // NOLINT(concurrency-mt-unsafe): before any thread starts.
    ::setenv("no_proxy", "*", 1);  // NOLINT(concurrency-mt-unsafe)
    client_ = std::make_unique<http::Client>(loop_);
    outbound_ = std::make_unique<Outbound>(
        Outbound::Parts{.loop = loop_,
                        .client = *client_,
                        .metrics = metrics_,
                        .rules_of = [this](const std::string& /*name*/) { return rules_; }});
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
    return outbound_->begin(
        {.tenant = budget::Tenant::of_namespace("n"), .name = "operator/o"},
        {.method = "POST", .target = std::move(url), .headers = {}, .body = std::move(body)},
        received);
  }

  [[nodiscard]] std::unique_ptr<const Received> ask(std::string url) {
    auto received = std::make_unique<Received>();
    const auto exchange = begin(std::move(url), *received);
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
