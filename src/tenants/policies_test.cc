// What happens to known policies when the API server seems to have lost their kind.
#include "tenants/policies.h"

#include "base/log.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/event.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/test_api_server.h"
#include "tenants/tenant_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tenants {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kGroups =
    R"({"kind":"APIGroupList","groups":[{"name":"apiextensions.k8s.io"},{"name":"hangar.dev"}]})";
constexpr std::string_view kOtherGroups =
    R"({"kind":"APIGroupList","groups":[{"name":"apiextensions.k8s.io"},{"name":"apps"}]})";
constexpr std::string_view kResources =
    R"({"kind":"APIResourceList","resources":[{"name":"operators"},{"name":"tenantpolicies"}]})";
constexpr std::string_view kOtherResources =
    R"({"kind":"APIResourceList","resources":[{"name":"operators"}]})";
constexpr std::string_view kNotFound;

class Lines final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message,
             std::span<const LogField>) override {
    messages.emplace_back(message);
  }

  std::vector<std::string> messages;
};

// The server serves the policies `a` and `b`, for all namespaces, until lose().
class PoliciesTest : public kube::ApiServerTest {
 protected:
  void SetUp() override {
    policies_.emplace(Policies::Parts{.loop = loop_,
                                      .cache = cache_,
                                      .client = client_,
                                      .metrics = metrics_,
                                      .log = Log(lines_, "tenants")});
    policies_->start();
    // Subscribed later, so each call of it comes after that of the policies.
    seen_ = cache_.subscribe({.resource = tenant_policy_resource()},
                             {.on_delta =
                                  [this](const kube::Delta& delta) {
                                    if (delta.type == kube::Delta::Type::Deleted) ++deleted_;
                                  },
                              .on_failed = [this](const Error& /*error*/) { has_failed_ = true; }});
    run_until([this] { return policies_->is_settled() && seen_->is_synced(); });
    ASSERT_THAT(applied(), ElementsAre("a", "b"));
  }
  void TearDown() override {
    seen_.reset();
    policies_.reset();
    cache_.stop();
    is_served_ = false;
    changed_.notify_all();
    ApiServerTest::TearDown();
  }

  // From now on the paths of policies are answered with 404, and discovery with these documents.
  void lose(std::string_view groups, std::string_view resources) {
    groups_ = groups;
    resources_ = resources;
    is_served_ = false;
    changed_.notify_all();
  }
  void serve(std::vector<std::string> names) {
    names_ = std::move(names);
    is_served_ = true;
  }
  // Retries failed requests of the cache at once.
  void retry_until(const std::function<bool()>& done) {
    run_until([&] {
      if (std::exchange(has_failed_, false)) cache_.kick("hangar.dev");
      return done();
    });
  }
  // Until the cache has lost all policies, and discovery has answered.
  void await_loss() {
    const std::size_t before = asked_;
    // A request is sent only after the answer to the one before has been handled.
    retry_until([&] { return deleted_ >= 2 && asked_ >= before + 3; });
  }
  // The names of the policies that apply to a namespace.
  [[nodiscard]] std::vector<std::string> applied() const {
    std::vector<std::string> names;
    const std::shared_ptr<const Rules> rules = policies_->rules_of("shop");
    for (const auto& policy : rules->policies())
      names.push_back(policy->name);
    return names;
  }

  [[nodiscard]] Policies& policies() { return *policies_; }
  [[nodiscard]] const std::vector<std::string>& log() const { return lines_.messages; }

 private:
  io::Task<http::Response> answer(http::ServerRequest request) override {
    if (request.path == "/apis") ++asked_;
    if (request.path == "/apis") co_return document(groups_);
    if (request.path == "/apis/hangar.dev/v1alpha1") co_return document(resources_);
    if (!request.path.ends_with("/tenantpolicies")) co_return document(kNotFound);

    // Lists instead of initial events: this server sends only whole answers.
    if (is_served_ && request.query.contains("sendInitialEvents")) {
      co_return http::Response{.status = 400, .body = "no initial events"};
    }
    if (request.query.contains("watch=true")) {
      while (is_served_)
        (void)co_await changed_.wait({});
    }
    co_return document(is_served_ ? list() : std::string(kNotFound));
  }
  static http::Response document(std::string_view text) {
    if (text.empty()) return {.status = 404, .body = "404 page not found"};
    return json(std::string(text));
  }
  [[nodiscard]] std::string list() const {
    std::string items;
    for (const std::string& name : names_) {
      items += fmt::format(
          R"({}{{"apiVersion":"hangar.dev/v1alpha1","kind":"TenantPolicy","metadata":{{"name":"{}",)"
          R"("uid":"{}","resourceVersion":"1"}},"spec":{{"serviceAccounts":[]}}}})",
          items.empty() ? "" : ",", name, name);
    }
    return fmt::format(R"({{"apiVersion":"hangar.dev/v1alpha1","kind":"TenantPolicyList",)"
                       R"("metadata":{{"resourceVersion":"1"}},"items":[{}]}})",
                       items);
  }

  const kube::Client client_ = client();
  kube::Cache cache_{loop_, client_, metrics_, Log()};
  Lines lines_;
  std::optional<Policies> policies_;
  std::unique_ptr<kube::Cache::Subscription> seen_;
  std::vector<std::string> names_ = {"a", "b"};
  std::string groups_;  // Empty: 404.
  std::string resources_;
  bool is_served_ = true;
  io::Event changed_{loop_};
  std::size_t deleted_ = 0;
  std::size_t asked_ = 0;  // Requests for the groups.
  bool has_failed_ = false;
};

struct Unclear {
  std::string_view name;
  std::string_view groups;
  std::string_view resources;
};

class UnclearLossTest : public PoliciesTest, public testing::WithParamInterface<Unclear> {};

TEST_P(UnclearLossTest, LiftsNoPolicy) {
  lose(GetParam().groups, GetParam().resources);

  await_loss();

  EXPECT_THAT(applied(), ElementsAre("a", "b"));
  EXPECT_THAT(log(), Contains(HasSubstr("those known last count")));
  EXPECT_THAT(log(), Not(Contains(HasSubstr("any more: only the host's own settings count"))));
}

INSTANTIATE_TEST_SUITE_P(
    Discovery, UnclearLossTest,
    testing::Values(
        Unclear{.name = "AnswersEverythingWith404", .groups = kNotFound, .resources = kNotFound},
        Unclear{.name = "ListsTheKind", .groups = kGroups, .resources = kResources},
        Unclear{.name = "ListsTheGroupAndAnswers404", .groups = kGroups, .resources = kNotFound},
        Unclear{.name = "IsOfAServerThatStarts",
                .groups = R"({"kind":"APIGroupList","groups":[{"name":"apiregistration.k8s.io"}]})",
                .resources = kNotFound},
        Unclear{.name = "IsAnotherDocument", .groups = "{}", .resources = kNotFound},
        Unclear{.name = "HasAnotherDocumentOfTheGroup", .groups = kGroups, .resources = "{}"}),
    [](const auto& of) { return std::string(of.param.name); });

TEST_F(PoliciesTest, AreLiftedWhenTheirGroupLacksTheKind) {
  bool is_told = false;
  policies().listen([&](const std::string& /*namespace_name*/) { is_told = applied().empty(); });
  lose(kGroups, kOtherResources);

  retry_until([&] { return is_told; });

  EXPECT_THAT(applied(), IsEmpty());
  EXPECT_THAT(log(), Contains(HasSubstr("any more: only the host's own settings count")));
}

TEST_F(PoliciesTest, AreLiftedWhenTheirGroupDoesNotExist) {
  lose(kOtherGroups, kNotFound);

  retry_until([this] { return applied().empty(); });

  EXPECT_THAT(log(), Contains(HasSubstr("any more: only the host's own settings count")));
}

TEST_F(PoliciesTest, ThatWereDeletedDuringALossAreLiftedByTheNextList) {
  lose(kNotFound, kNotFound);
  await_loss();
  ASSERT_THAT(applied(), ElementsAre("a", "b"));

  serve({"b", "c"});
  retry_until([this] { return applied() == std::vector<std::string>{"b", "c"}; });

  EXPECT_THAT(applied(), ElementsAre("b", "c"));
}

}  // namespace
}  // namespace hangar::tenants
