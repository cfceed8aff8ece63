#include "commands/uninstall.h"

#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/test_api_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kFlights = "/apis/yoke.cd/v1alpha1/flights";
constexpr std::string_view kWebhooks =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
constexpr std::string_view kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr std::string_view kFinalizer = "yoke.cd/mayday.flight";
// Begins the token that replaces an expired one: a server never gives the same again.
constexpr std::string_view kFresh = "fresh-";

http::Response status_of(int code, std::string_view message, std::string_view token = "") {
  return {
      .status = code,
      .body = fmt::format(R"({{"kind":"Status","message":"{}","metadata":{{"continue":"{}"}}}})",
                          message, token)};
}

// The value of a parameter of a query.
std::string parameter(const std::string& query, std::string_view name) {
  const std::string key = fmt::format("{}=", name);
  std::size_t begin = query.starts_with(key) ? 0 : query.find("&" + key);
  if (begin == std::string::npos) return "";
  begin = query.find('=', begin) + 1;
  return query.substr(begin, query.find('&', begin) - begin);
}

// The server has Flights in one namespace, and nothing of the other kinds.
class UninstallTest : public kube::ApiServerTest {
 protected:
  using Finalizers = std::vector<std::string>;

  Result<> uninstall(UninstallOptions options = {}) {
    std::optional<Result<>> done;
    loop_.spawn(run_into(done, std::move(options)));
    run_until([&done] { return done.has_value(); });
    return done.value_or(fail(ErrorKind::Cancelled, "it does not end"));
  }

  io::Task<void> run_into(std::optional<Result<>>& done, UninstallOptions options) {
    const kube::Client client = this->client();
    done = co_await let_go_of_cluster(
        client, "hangar", std::move(options),
        {.out = [this](std::string_view line) { out_.emplace_back(line); },
         .say = [this](std::string_view line) { said_.emplace_back(line); }});
  }

  io::Task<http::Response> answer(http::ServerRequest request) override {
    if (request.method == "PATCH") {
      const std::string name = request.path.substr(request.path.rfind('/') + 1);
      if (const auto before = std::exchange(before_patch_, nullptr)) before();
      if (auto& refusals = refusals_[name]; !refusals.empty()) {
        http::Response refusal = std::move(refusals.front());
        refusals.erase(refusals.begin());
        co_return refusal;
      }
      co_return patch(name, request.body);
    }
    if (request.method == "DELETE") co_return status_of(403, "not this one");
    if (unlisted_.contains(request.path)) co_return status_of(500, "no such table");
    if (request.path == kWebhooks) {
      co_return json(fmt::format(R"({{"items":[{}]}})", fmt::join(webhooks_, ",")));
    }
    if (request.path == kFlights) co_return list(request);
    if (request.path.contains("/flights/")) {
      const std::string name = request.path.substr(request.path.rfind('/') + 1);
      co_return flights_.contains(name) ? json(text_of(name)) : status_of(404, "not found");
    }
    co_return json(R"({"items":[]})");
  }

  // As many as the request has asked for; the token is the name of the first that follows.
  http::Response list(const http::ServerRequest& request) {
    std::string token = parameter(request.query, "continue");
    if (token.starts_with(kFresh)) token.erase(0, kFresh.size());
    accepted_.emplace_back(http::find_header(request.headers, "accept").value_or(""));
    held_before_pages_.push_back(held_before(token));
    if (!token.empty() && std::exchange(expires_, false)) {
      return status_of(410, "too old", std::string(kFresh) + token);
    }
    const std::string limit = parameter(request.query, "limit");
    std::size_t left = limit.empty() ? flights_.size() : std::stoul(limit);
    std::string items;
    std::string next;
    for (auto flight = flights_.lower_bound(token); flight != flights_.end(); ++flight) {
      if (left-- == 0) {
        next = flight->first;
        break;
      }
      items += (items.empty() ? "" : ",") + text_of(flight->first);
    }
    return json(fmt::format(R"({{"metadata":{{"continue":"{}"}},"items":[{}]}})", next, items));
  }

  http::Response patch(const std::string& name, const std::string& body) {
    const auto operations = json::parse(body);
    if (!operations || !flights_.contains(name)) return status_of(404, "not found");
    Finalizers& finalizers = flights_[name];
    for (const json::Value& operation : operations->as_array()) {
      const std::string path(json::string_at(operation, {"path"}));
      const std::size_t index = std::stoul(path.substr(path.rfind('/') + 1));
      if (json::string_at(operation, {"op"}) == "test") {
        if (index >= finalizers.size() ||
            finalizers[index] != json::string_at(operation, {"value"}))
          return status_of(422, "testing path failed");
      } else {
        finalizers.erase(finalizers.begin() + static_cast<std::ptrdiff_t>(index));
      }
    }
    return json(text_of(name));
  }

  [[nodiscard]] std::string text_of(const std::string& name) const {
    const Finalizers& finalizers = flights_.at(name);
    return fmt::format(R"({{"metadata":{{"name":"{}","namespace":"shop","finalizers":[{}{}{}]}}}})",
                       name, finalizers.empty() ? "" : "\"", fmt::join(finalizers, R"(",")"),
                       finalizers.empty() ? "" : "\"");
  }

  // Flights before the one of the token that still have the finalizer.
  [[nodiscard]] std::size_t held_before(const std::string& token) const {
    return static_cast<std::size_t>(
        std::count_if(flights_.begin(), flights_.lower_bound(token), [](const auto& flight) {
          return std::ranges::find(flight.second, kFinalizer) != flight.second.end();
        }));
  }

  std::map<std::string, Finalizers> flights_;
  std::vector<std::string> webhooks_;
  std::map<std::string, std::vector<http::Response>> refusals_;  // Of patches, by name.
  std::set<std::string> unlisted_;                               // Paths of lists that fail.
  std::function<void()> before_patch_;                           // Of the first one.
  bool expires_ = false;                                         // The next continuation.
  std::vector<std::string> accepted_;                            // By the requests for pages.
  std::vector<std::size_t> held_before_pages_;
  std::vector<std::string> out_;
  std::vector<std::string> said_;
};

TEST_F(UninstallTest, GoesOnAfterAnObjectThatCannotBeWritten) {
  for (const char* name : {"a", "b", "c"})
    flights_[name] = {std::string(kFinalizer)};
  refusals_["b"] = {status_of(422, R"(spec.wasmUrl: \u001b[2J)")};

  const Result<> done = uninstall();

  EXPECT_THAT(flights_["a"], IsEmpty());
  EXPECT_THAT(flights_["c"], IsEmpty());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), AllOf(HasSubstr("not done: 1"), HasSubstr("kubectl patch")));
  ASSERT_THAT(said_, ElementsAre(HasSubstr("flights.yoke.cd/shop/b: spec.wasmUrl")));
  EXPECT_THAT(said_.front(), Not(HasSubstr("\x1b"))) << "tenants choose what is in messages";
}

TEST_F(UninstallTest, GoesOnAfterAConfigurationOrAKindThatFails) {
  webhooks_ = {R"({"metadata":{"name":"kept"}})"};
  unlisted_ = {std::string(kDefinitions)};
  flights_["a"] = {std::string(kFinalizer)};

  const Result<> done = uninstall();

  EXPECT_THAT(flights_["a"], IsEmpty());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("validatingwebhookconfigurations"),
                                 HasSubstr("customresourcedefinitions")));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("not done: 2"));
}

// However many objects a tenant makes, and however large they are.
TEST_F(UninstallTest, HasTheMetadataOfFewObjectsInMemory) {
  constexpr std::size_t kCount = 100;
  for (std::size_t index = 0; index < kCount; ++index)
    flights_[fmt::format("f{:03}", index)] = {std::string(kFinalizer)};

  ASSERT_TRUE(uninstall());

  EXPECT_EQ(held_before("~"), 0U);
  EXPECT_EQ(out_.size(), kCount);
  EXPECT_GE(accepted_.size(), 4U);
  EXPECT_THAT(accepted_, Each(HasSubstr("as=PartialObjectMetadataList")));
  EXPECT_THAT(held_before_pages_, Each(0U)) << "a page is requested when the last one is done";
}

TEST_F(UninstallTest, ContinuesAnExpiredList) {
  for (std::size_t index = 0; index < 40; ++index)
    flights_[fmt::format("f{:03}", index)] = {std::string(kFinalizer)};
  expires_ = true;

  ASSERT_TRUE(uninstall());

  EXPECT_EQ(held_before("~"), 0U);
  EXPECT_EQ(std::ranges::count(held_before_pages_, 0U), accepted_.size());
}

TEST_F(UninstallTest, RepeatsConflicts) {
  flights_["a"] = {"another.io/one", std::string(kFinalizer)};
  refusals_["a"] = {status_of(409, "changed"), status_of(409, "changed")};

  ASSERT_TRUE(uninstall());

  EXPECT_THAT(flights_["a"], ElementsAre("another.io/one")) << "the finalizers of others stay";
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(UninstallTest, FindsAFinalizerThatHasMoved) {
  flights_["a"] = {"another.io/one", std::string(kFinalizer)};
  before_patch_ = [this] { flights_["a"] = {std::string(kFinalizer), "another.io/two"}; };

  ASSERT_TRUE(uninstall());

  EXPECT_THAT(flights_["a"], ElementsAre("another.io/two"));
}

TEST_F(UninstallTest, IsContentWithWhatGoesMeanwhile) {
  flights_["a"] = {std::string(kFinalizer)};
  before_patch_ = [this] { flights_.erase("a"); };

  EXPECT_TRUE(uninstall());
  EXPECT_THAT(out_, IsEmpty());
}

}  // namespace
}  // namespace hangar::commands
