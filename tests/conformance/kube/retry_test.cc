// The client's reaction to answers that a healthy API server never gives, or not on demand: a test
// server on loopback gives them.
#include "base/consumer.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/fence.h"
#include "kube/limits.h"
#include "kube/object.h"
#include "objects.h"
#include "testing/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Session;

class RetryTest : public ::testing::Test {
 protected:
  // Answers the next requests with these, then with the last one for ever.
  void serve(std::vector<http::Response> answers) {
    serve_by([this, answers = std::move(answers)](const http::ServerRequest&) {
      return answers.at(std::min(seen_.size(), answers.size()) - 1);
    });
  }
  void serve_by(std::function<http::Response(const http::ServerRequest&)> answer) {
    reset();  // A second server in one test: parts of the first loop go before it.
    // The server needs the session's loop before its own address is known.
    session_ = std::make_unique<Session>(Login{.cluster = {.server = "http://127.0.0.1:1"}});
    server_ = std::make_unique<http::Server>(
        session_->loop, http::ServerOptions{},
        [this,
         answer = std::move(answer)](http::ServerRequest request) -> io::Task<http::Response> {
          seen_.push_back(request);
          co_return answer(request);
        });
    ASSERT_TRUE(server_->start().has_value());
    credentials_ = std::make_shared<Credentials>(
        session_->loop,
        Login{.cluster = {.server = fmt::format("http://127.0.0.1:{}/prefix", server_->port())},
              .user = {.token = "t"}},
        Log());
    client_.emplace(session_->loop, session_->http, credentials_, session_->metrics, Log(),
                    ClientOptions{.fence = fence_});
  }
  // Opens it from now on until `duration` has passed.
  void open_fence(Duration duration) {
    fence_->open_until(io::Loop::now() + duration, io::Loop::wall_now() + duration);
  }
  void reset() {
    client_.reset();
    credentials_.reset();
    server_.reset();
    // The server's connections end in later turns of the loop.
    if (session_) session_->loop.run_until([this] { return session_->loop.spawned_count() == 0; });
  }
  void TearDown() override { reset(); }

  std::vector<http::ServerRequest> seen_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<http::Server> server_;
  std::shared_ptr<Fence> fence_;  // Of the client; null: none.
  std::shared_ptr<Credentials> credentials_;
  std::optional<Client> client_;
};

const http::Response kGood{.status = 200, .body = R"({"kind":"ConfigMap"})"};
const http::Response kBusy{
    .status = 429,
    .headers = {{"Retry-After", "0"}},
    .body = R"({"kind":"Status","message":"too many requests","reason":"TooManyRequests"})"};
const http::Response kDown{.status = 503, .body = "down"};

TEST_F(RetryTest, RepeatsAWriteThatTheServerPutOff) {
  serve({kBusy, kBusy, kGood});

  const auto created =
      session_->run(client_->create(kConfigMaps, config_map("ns", "a"), {.dry_run = true}, {}));

  ASSERT_TRUE(created.has_value()) << created.error().message();
  ASSERT_EQ(seen_.size(), 3);
  EXPECT_EQ(seen_[2].method, "POST");
  EXPECT_EQ(seen_[2].path, "/prefix/api/v1/namespaces/ns/configmaps");
  EXPECT_EQ(seen_[2].query, "fieldManager=hangar&dryRun=All");
  EXPECT_EQ(seen_[2].body, seen_[0].body);
  EXPECT_EQ(http::find_header(seen_[2].headers, "authorization"), "Bearer t");
  EXPECT_THAT(std::string(http::find_header(seen_[2].headers, "user-agent").value_or("")),
              ::testing::StartsWith("hangar/"));
}

TEST_F(RetryTest, SendsNoWriteWhileTheFenceIsShutButReads) {
  fence_ = std::make_shared<Fence>();
  serve({kGood});
  const Client guest = client_->as(service_account("ns", "guest"));

  const auto created = session_->run(client_->create(kConfigMaps, config_map("ns", "a"), {}, {}));
  const auto removed = session_->run(client_->remove(kConfigMaps, {"ns", "a"}, {}, {}));
  const auto passed_on = session_->run(guest.send(
      {.method = "PUT", .target = "/api/v1/namespaces/ns/configmaps/a", .body = "{}"}, {}));
  const auto streamed = session_->run(guest.stream(
      {.method = "PATCH", .target = "/api/v1/namespaces/ns/configmaps/a", .body = "{}"},
      {.on_headers = [](int, const http::Headers&) { return Result<>(); },
       .on_bytes = [](std::string_view) { return Result<>(); }},
      {}));
  const auto read = session_->run(client_->get(kConfigMaps, {"ns", "a"}, {}));

  for (const ErrorKind kind : {created.error().kind(), removed.error().kind(),
                               passed_on.error().kind(), streamed.error().kind()}) {
    EXPECT_EQ(kind, ErrorKind::Unavailable);
  }
  EXPECT_TRUE(read);
  EXPECT_EQ(seen_.size(), 1);

  open_fence(std::chrono::hours(1));
  EXPECT_TRUE(session_->run(client_->create(kConfigMaps, config_map("ns", "a"), {}, {})));
}

TEST_F(RetryTest, RepeatsNoWriteOnceTheFenceIsShut) {
  fence_ = std::make_shared<Fence>();
  serve_by([this](const http::ServerRequest&) {
    fence_->shut();
    return kBusy;
  });
  open_fence(std::chrono::hours(1));

  const auto created = session_->run(client_->create(kConfigMaps, config_map("ns", "a"), {}, {}));

  EXPECT_EQ(created.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(seen_.size(), 1);
}

// The request waits for its turn, and for credentials; meanwhile another process leads.
TEST_F(RetryTest, AsksTheFenceWhenTheRequestIsSentNotWhenItIsMade) {
  fence_ = std::make_shared<Fence>();
  serve({kGood});
  open_fence(std::chrono::hours(1));

  io::Task<Result<json::Value>> created =
      client_->create(kConfigMaps, config_map("ns", "a"), {}, {});
  session_->loop.post([this] { session_->loop.post([this] { fence_->shut(); }); });
  const auto ended = session_->run(std::move(created));

  EXPECT_EQ(ended.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(seen_, ::testing::IsEmpty());
}

TEST_F(RetryTest, GivesUpOnAServerThatPutsItOffForEver) {
  serve({kBusy});

  const auto read = session_->run(client_->get(kConfigMaps, {"ns", "a"}, {}));

  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(read.error().message(), "too many requests");
  EXPECT_EQ(seen_.size(), 11);
}

TEST_F(RetryTest, DoesNotWaitLongerThanItsCallerWould) {
  serve({{.status = 503, .headers = {{"Retry-After", "3600"}}, .body = ""}});

  const auto read = session_->run(client_->get(kConfigMaps, {"ns", "a"}, {}));

  EXPECT_EQ(read.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(seen_.size(), 1);
}

TEST_F(RetryTest, StopsWaitingWhenItIsStopped) {
  serve({{.status = 429, .headers = {{"Retry-After", "20"}}, .body = ""}});
  std::stop_source stop;
  const auto timer =
      session_->loop.after(std::chrono::milliseconds(200), [&] { stop.request_stop(); });

  const auto read = session_->run(client_->get(kConfigMaps, {"ns", "a"}, stop.get_token()));

  EXPECT_EQ(read.error().kind(), ErrorKind::Cancelled);
}

TEST_F(RetryTest, RepeatsReadsButNoWritesThatMayHaveHappened) {
  serve({kDown, kDown, kGood});

  const auto read = session_->run(client_->get(kConfigMaps, {"ns", "a"}, {}));
  const std::size_t reads = seen_.size();
  serve({kDown, kGood});
  seen_.clear();
  const auto write = session_->run(client_->create(kConfigMaps, config_map("ns", "a"), {}, {}));

  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(reads, 3);
  EXPECT_EQ(write.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(seen_.size(), 1);
}

TEST_F(RetryTest, SendsNoGroupsThatTheServerKnowsItself) {
  serve({kGood});

  session_->must(client_->as(service_account("ns", "robot")).get(kConfigMaps, {"ns", "a"}, {}));
  session_->must(
      client_->as({.user = "u", .groups = {"g", "h"}}).get(kConfigMaps, {"ns", "a"}, {}));

  EXPECT_EQ(http::find_header(seen_[0].headers, "impersonate-user"),
            "system:serviceaccount:ns:robot");
  EXPECT_EQ(http::find_header(seen_[0].headers, "impersonate-group"), std::nullopt);
  EXPECT_EQ(http::find_header(seen_[1].headers, "impersonate-group"), "g");
}

TEST_F(RetryTest, SaysSoWhenTheAnswerIsNoJson) {
  serve({{.status = 200, .body = "<html>log in here</html>"}});

  const auto read = session_->run(client_->get(kConfigMaps, {"ns", "a"}, {}));

  EXPECT_EQ(read.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(read.error().message(), HasSubstr("the server's answer"));
}

TEST_F(RetryTest, StartsAListAgainWhoseHistoryEndsInTheMiddle) {
  const auto page = [](std::string_view name, std::string_view version, std::string_view next) {
    return http::Response{
        .status = 200,
        .body = fmt::format(R"({{"metadata":{{"resourceVersion":"{}","continue":"{}"}},)"
                            R"("items":[{{"metadata":{{"name":"{}"}}}}]}})",
                            version, next, name)};
  };
  serve({page("old", "1", "a"),
         {.status = 410, .body = R"({"kind":"Status","reason":"Expired","message":"too old"})"},
         page("new", "2", "b"),
         page("newer", "2", "")});

  const auto list = session_->run(client_->list(kConfigMaps, {.page_size = 1}, {}));

  ASSERT_TRUE(list.has_value()) << list.error().message();
  EXPECT_EQ(list->resource_version, "2");
  ASSERT_EQ(list->items.size(), 2);
  EXPECT_EQ(list->items[0]->key().name, "new");
  EXPECT_EQ(list->items[1]->key().name, "newer");
  EXPECT_EQ(seen_[1].query, "limit=1&continue=a");
  EXPECT_EQ(seen_[2].query, "limit=1");
}

TEST_F(RetryTest, AsksForFewerItemsWhenAPageIsTooLarge) {
  const std::string large(limits::kListPageBytesMax / 2, 'x');
  serve_by([&](const http::ServerRequest& request) -> http::Response {
    std::size_t count = 0;
    const std::size_t at = request.query.find("limit=") + 6;
    std::from_chars(request.query.data() + at, request.query.data() + request.query.size(), count);
    const bool is_second = request.query.contains("continue=half");
    std::string items;
    for (std::size_t index = 0; index < count; ++index) {
      items += fmt::format(R"({}{{"metadata":{{"name":"of-{}"}},"data":{{"text":"{}"}}}})",
                           index > 0 ? "," : "", is_second ? "second" : "first", large);
    }
    return {.status = 200,
            .body = fmt::format(
                R"({{"metadata":{{"resourceVersion":"7","continue":"{}"}},"items":[{}]}})",
                is_second ? "" : "half", items)};
  });

  const auto list = session_->run(client_->list(kConfigMaps, {.page_size = 16}, {}));

  ASSERT_TRUE(list.has_value()) << list.error().message();
  ASSERT_EQ(list->items.size(), 2);
  EXPECT_EQ(list->items[0]->key().name, "of-first");
  EXPECT_EQ(list->items[1]->key().name, "of-second");
  std::vector<std::string> queries;
  for (const http::ServerRequest& request : seen_)
    queries.push_back(request.query);
  EXPECT_THAT(queries, ElementsAre("limit=16", "limit=2", "limit=1", "limit=1&continue=half"));
}

TEST_F(RetryTest, AsksForFewerItemsAfterALargePage) {
  const std::string large(std::size_t{900} << 10U, 'x');
  serve_by([&](const http::ServerRequest& request) -> http::Response {
    const bool is_second = request.query.contains("continue=next");
    std::string items;
    for (std::size_t index = 0; index < (is_second ? 1U : 4U); ++index) {
      items += fmt::format(R"({}{{"metadata":{{"name":"of-{}-{}"}},"data":{{"text":"{}"}}}})",
                           index > 0 ? "," : "", is_second ? "second" : "first", index, large);
    }
    return {.status = 200,
            .body = fmt::format(
                R"({{"metadata":{{"resourceVersion":"7","continue":"{}"}},"items":[{}]}})",
                is_second ? "" : "next", items)};
  });

  const auto list = session_->run(client_->list(kConfigMaps, {.page_size = 16}, {}));

  ASSERT_TRUE(list.has_value()) << list.error().message();
  std::vector<std::string> names;
  for (const ObjectPtr& item : list->items)
    names.push_back(item->key().name);
  EXPECT_THAT(names,
              ElementsAre("of-first-0", "of-first-1", "of-first-2", "of-first-3", "of-second-0"));
  std::vector<std::string> queries;
  for (const http::ServerRequest& request : seen_)
    queries.push_back(request.query);
  EXPECT_THAT(queries, ElementsAre("limit=16", "limit=2&continue=next"));
}

TEST_F(RetryTest, ReadsAListInOnePageWhenItExpiresAgainAndAgain) {
  serve_by([](const http::ServerRequest& request) -> http::Response {
    if (!request.query.contains("limit")) {
      return {.status = 200, .body = R"({"metadata":{"resourceVersion":"9"},"items":[]})"};
    }
    if (!request.query.contains("continue")) {
      return {.status = 200, .body = R"({"metadata":{"continue":"a"},"items":[]})"};
    }
    return {.status = 410, .body = ""};
  });

  const auto list = session_->run(client_->list(kConfigMaps, {}, {}));

  ASSERT_TRUE(list.has_value()) << list.error().message();
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(seen_.size(), 7);
}

TEST_F(RetryTest, EndsAListThatNeverEnds) {
  serve({{.status = 200, .body = R"({"metadata":{"continue":"again"},"items":[]})"}});

  const auto list = session_->run(client_->list(kConfigMaps, {}, {}));

  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().kind(), ErrorKind::Unavailable);
}

TEST_F(RetryTest, DiscoversGroupByGroupWhereTheServerHasNothingBetter) {
  serve_by([](const http::ServerRequest& request) -> http::Response {
    const auto json = [](std::string body) {
      return http::Response{.status = 200, .body = std::move(body)};
    };
    if (request.path == "/prefix/apis") return json(R"({"kind":"APIGroupList","groups":[]})");
    if (request.path == "/prefix/apis/a.io") {
      return json(R"({"kind":"APIGroup","versions":[{"version":"v2"},{"version":"v1"}],)"
                  R"("preferredVersion":{"version":"v1"}})");
    }
    if (request.path == "/prefix/apis/a.io/v1" || request.path == "/prefix/apis/a.io/v2") {
      return json(R"({"resources":[{"name":"things","kind":"Thing","namespaced":true}]})");
    }
    return {.status = 404, .body = "404 page not found"};
  });
  Discovery discovery(*client_);

  const auto preferred =
      session_->run(discovery.find(GroupKind{"a.io", "Thing"}, unnamed_consumer(), {}));
  const auto other = session_->run(
      discovery.find(GroupVersionKind{"a.io", "v2", "Thing"}, unnamed_consumer(), {}));
  const std::size_t asked = seen_.size();
  const auto missing =
      session_->run(discovery.find(GroupKind{"a.io", "Nothing"}, unnamed_consumer(), {}));

  EXPECT_EQ(preferred.value(), (Resource{"a.io", "v1", "things", "Thing", true}));
  EXPECT_EQ(other.value().version, "v2");
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(missing.error().kind(), ErrorKind::NotFound);
  // Asked a moment ago: the answer is used again.
  EXPECT_EQ(seen_.size(), asked);
}

}  // namespace
}  // namespace hangar::kube
